#pragma once

// The instructions of compute capability 9.0 alone that gemm_sm90a.cu is made of, each written
// once: mbarriers, tiles brought by the copy engine (TMA), and products of a warpgroup (wgmma). For
// nvcc they are wgmma_device.h, for g++ wgmma_emulated.h. Layouts are those of the PTX manual,
// "Asynchronous warpgroup level matrix instructions".
//
//   SharedAddress(pointer)             where it lies in shared memory
//   Barrier                            in shared memory: a phase ends when `arrivals` threads have
//                                      arrived and all bytes that were announced are there; phases
//                                      are counted by parity, and the first has parity 0
//   InitBarrier(barrier, arrivals)
//   ShowBarriers()                     barriers that this thread made are seen by the copy engine;
//                                      other threads see them behind SyncBlock
//   Arrive(barrier)
//   ArriveExpecting(barrier, bytes)    arrives, and announces bytes that the copy engine will bring
//   WaitBarrier(barrier, parity)       returns when the phase of that parity has ended
//   BringTile(to, map, row, col, barrier)
//                                      brings the tile whose first number is (row, col), which may
//                                      lie outside; its bytes count for the barrier, those outside
//                                      of the matrix too; for one thread
//   FetchMap(map)                      fetches the map itself ahead
//   Product<kColumns, kAcrossA, kAcrossB>::Add(sum, a, b, adds)
//                                      sum = a b^T, or sum += a b^T where it adds, of 64 x kColumns
//                                      numbers and 16 of k, by the four warps of a warpgroup; lane
//                                      l of warp w holds in sum[4 j + e] the number of row 16 w + l
//                                      / 4
//                                      + 8 (e / 2), column 8 j + 2 (l % 4) + e % 2
//   Anew(sum)                          nothing of what was in the sums is wanted
//   KeepBehind(sum)                    nothing is done with the sums before this place
//   FenceProducts()                    must stand between other uses of the sums and the first
//                                      product
//   CommitProducts(), WaitProducts<n>()
//                                      returns when all but the newest n groups of this warp's
//                                      products are done
#include <cstdint>

#include "cuda/device/kernel.h"
#include "cuda/device/tensor_map.h"

#if defined(__CUDACC__)
#include "cuda/kernels/gemm/wgmma_device.h"
#else
#include "cuda/kernels/gemm/wgmma_emulated.h"
#endif

namespace tacit::cuda::sm90a {

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

}  // namespace tacit::cuda::sm90a
