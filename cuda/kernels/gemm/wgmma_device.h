#pragma once

// wgmma.h for nvcc: each name is one instruction of PTX, or two.
#include <cstdint>

#include "cuda/device/kernel.h"
#include "cuda/device/tensor_map.h"

namespace tacit::cuda::sm90a {

TACIT_IN_KERNEL uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

struct alignas(8) Barrier {
  uint64_t word;
};
TACIT_IN_KERNEL void InitBarrier(Barrier& barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(&barrier)),
               "r"(arrivals)
               : "memory");
}
TACIT_IN_KERNEL void ShowBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
TACIT_IN_KERNEL void Arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SharedAddress(&barrier))
               : "memory");
}
TACIT_IN_KERNEL void ArriveExpecting(Barrier& barrier, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(&barrier)),
      "r"(bytes)
      : "memory");
}
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

TACIT_IN_KERNEL void BringTile(void* to, const TensorMap& map, uint32_t row, uint32_t col,
                               Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(SharedAddress(to)),
      "l"(&map), "r"(col), "r"(row), "r"(SharedAddress(&barrier))
      : "memory");
}
TACIT_IN_KERNEL void FetchMap(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

TACIT_IN_KERNEL void FenceProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TACIT_IN_KERNEL void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int n>
TACIT_IN_KERNEL void WaitProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory");
}

template <uint32_t kSums>
TACIT_IN_KERNEL void Anew(float (&sum)[kSums]) {
  TACIT_UNROLL
  for (uint32_t i = 0; i < kSums; ++i) asm volatile("" : "=f"(sum[i]));
}
template <uint32_t kSums>
TACIT_IN_KERNEL void KeepBehind(float (&sum)[kSums]) {
  TACIT_UNROLL
  for (uint32_t i = 0; i < kSums; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}

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
