#pragma once

// The instructions of compute capability 9.0 alone that gemm_sm90a.cu is made of, each written
// once: mbarriers, tiles brought by the copy engine (TMA), and products of a warpgroup (wgmma). The
// emulated device has none of them. Layouts are those of the PTX manual, "Asynchronous warpgroup
// level matrix instructions".
#include <cstdint>

#include "cuda/device/kernel.h"
#include "cuda/device/tensor_map.h"

namespace tacit::cuda::sm90a {

TACIT_IN_KERNEL uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// A barrier in shared memory. A phase ends when `arrivals` threads have arrived and all bytes that
// were announced are there; phases are counted by parity, and the first has parity 0.
struct alignas(8) Barrier {
  uint64_t word;
};
TACIT_IN_KERNEL void InitBarrier(Barrier& barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(&barrier)),
               "r"(arrivals)
               : "memory");
}
// Barriers that this thread made are seen by the copy engine. Other threads see them behind
// SyncBlock.
TACIT_IN_KERNEL void ShowBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
TACIT_IN_KERNEL void Arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(&barrier))
               : "memory");
}
// Arrives, and announces bytes that the copy engine will bring.
TACIT_IN_KERNEL void ArriveExpecting(Barrier& barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(&barrier)),
      "r"(bytes)
      : "memory");
}
// Returns when the phase of that parity has ended.
TACIT_IN_KERNEL void WaitBarrier(Barrier& barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(SharedAddress(&barrier)),
      "r"(parity)
      : "memory");
}

// Brings the tile whose first number is (row, col), which may lie outside; its bytes count for the
// barrier, those outside of the matrix too. For one thread.
TACIT_IN_KERNEL void BringTile(void* to, const TensorMap& map, uint32_t row, uint32_t col,
                               Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(SharedAddress(to)),
      "l"(&map), "r"(col), "r"(row), "r"(SharedAddress(&barrier))
      : "memory");
}
// Fetches the map itself ahead.
TACIT_IN_KERNEL void FetchMap(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// The place of a factor in shared memory, as wgmma wants it described, for tiles with rows of 128
// bytes in the swizzle of 128 bytes that begin at multiples of 1,024 bytes:
//   bits  0-13  address / 16
//   bits 16-29  "leading" distance / 16
//   bits 32-45  "stride" distance / 16
//   bits 62-63  1: swizzle of 128 bytes
// Along k (imm-trans 0): a row of the tile is a row of the factor, of 64 of k. Eight rows are 1,024
// bytes, the stride; the leading distance is not used. 16 of k further is 32 bytes further.
// Across (imm-trans 1): a row of the tile is one of k, of 64 rows of the factor. Eight of k are
// 1,024 bytes, the stride; the next 64 rows of the factor lie in the next tile, the leading
// distance. 16 of k further is 2,048 bytes further.
TACIT_IN_KERNEL uint64_t Describe(const void* begin, uint32_t leading_bytes) {
  constexpr uint64_t kStrideBytes = 1024, kSwizzle128 = 1;
  return (SharedAddress(begin) & 0x3ffff) >> 4 | uint64_t{leading_bytes >> 4} << 16 |
         (kStrideBytes >> 4) << 32 | kSwizzle128 << 62;
}

// Must stand between other uses of the sums and the first product.
TACIT_IN_KERNEL void FenceProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TACIT_IN_KERNEL void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Returns when all but the newest n groups of this warp's products are done.
template <int n>
TACIT_IN_KERNEL void WaitProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory");
}

// sum = a b^T, or sum += a b^T, of 64 x kColumns numbers and 16 of k, by the four warps of a
// warpgroup. Lane l of warp w holds in sum[4 j + e] the number of row 16 w + l / 4 + 8 (e / 2),
// column 8 j + 2 (l % 4) + e % 2.
template <uint32_t kColumns, bool kAcrossA, bool kAcrossB>
struct Product;

// Names of registers in an instruction: ten, and the operands behind them, four and sixteen.
#define TACIT_TEN(t) \
  "%" t "0,%" t "1,%" t "2,%" t "3,%" t "4,%" t "5,%" t "6,%" t "7,%" t "8,%" t "9,"
#define TACIT_SUM4(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define TACIT_SUM16(i) TACIT_SUM4(i), TACIT_SUM4(i + 4), TACIT_SUM4(i + 8), TACIT_SUM4(i + 12)
#define TACIT_SUM32(i) TACIT_SUM16(i), TACIT_SUM16(i + 16)

template <bool kAcrossA, bool kAcrossB>
struct Product<64, kAcrossA, kAcrossB> {
  TACIT_IN_KERNEL static void Add(float (&sum)[32], uint64_t a, uint64_t b, bool adds) {
    asm volatile(
        "{\n.reg .pred adds;\nsetp.ne.b32 adds, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" TACIT_TEN("") TACIT_TEN("1")
            TACIT_TEN("2") "%30,%31}, %32, %33, adds, 1, 1, %35, %36;\n}"
        : TACIT_SUM32(0)
        : "l"(a), "l"(b), "r"(static_cast<uint32_t>(adds)), "n"(static_cast<int>(kAcrossA)),
          "n"(static_cast<int>(kAcrossB)));
  }
};
template <bool kAcrossA, bool kAcrossB>
struct Product<128, kAcrossA, kAcrossB> {
  TACIT_IN_KERNEL static void Add(float (&sum)[64], uint64_t a, uint64_t b, bool adds) {
    asm volatile(
        "{\n.reg .pred adds;\nsetp.ne.b32 adds, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" TACIT_TEN("") TACIT_TEN("1")
            TACIT_TEN("2") TACIT_TEN("3") TACIT_TEN("4")
                TACIT_TEN("5") "%60,%61,%62,%63}, %64, %65, adds, 1, 1, %67, %68;\n}"
        : TACIT_SUM32(0), TACIT_SUM32(32)
        : "l"(a), "l"(b), "r"(static_cast<uint32_t>(adds)), "n"(static_cast<int>(kAcrossA)),
          "n"(static_cast<int>(kAcrossB)));
  }
};
template <bool kAcrossA, bool kAcrossB>
struct Product<256, kAcrossA, kAcrossB> {
  TACIT_IN_KERNEL static void Add(float (&sum)[128], uint64_t a, uint64_t b, bool adds) {
    asm volatile(
        "{\n.reg .pred adds;\nsetp.ne.b32 adds, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" TACIT_TEN("") TACIT_TEN("1") TACIT_TEN("2") TACIT_TEN("3") TACIT_TEN("4") TACIT_TEN("5") TACIT_TEN("6") TACIT_TEN("7") TACIT_TEN("8") TACIT_TEN("9") TACIT_TEN("10") TACIT_TEN(
            "11") "%120,%121,%122,%123,%124,%125,%126,%127}, %128, %129, adds, 1, 1, %131, %132;\n}"
        : TACIT_SUM32(0), TACIT_SUM32(32), TACIT_SUM32(64), TACIT_SUM32(96)
        : "l"(a), "l"(b), "r"(static_cast<uint32_t>(adds)), "n"(static_cast<int>(kAcrossA)),
          "n"(static_cast<int>(kAcrossB)));
  }
};
#undef TACIT_TEN
#undef TACIT_SUM4
#undef TACIT_SUM16
#undef TACIT_SUM32

}  // namespace tacit::cuda::sm90a
