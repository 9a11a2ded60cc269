// gemm_sm90a.cu with faults: its descriptors, tiles and waits go through functions that may spoil
// them.
#include "cuda/device/kernel.h"
#include "cuda/kernels/wgmma.h"
#include "cuda/on_device/planted_wgmma.h"

namespace tacit::cuda {
namespace {

using testing::WgmmaFault;

__device__ WgmmaFault planted;

TACIT_KERNEL PlantKernel(WgmmaFault fault) {
  if (GlobalThread() == 0) planted = fault;
}

}  // namespace

namespace sm90a {

TACIT_IN_KERNEL uint64_t PlantedDescribe(const void* begin, uint32_t leading_bytes) {
  if (planted == WgmmaFault::kLeading) leading_bytes /= 2;
  const uint64_t right = Describe(begin, leading_bytes);
  // 512 and not 1,024 bytes, in 16 of them.
  if (planted == WgmmaFault::kStride) return right - (uint64_t{512} >> 4 << 32);
  if (planted == WgmmaFault::kNoSwizzle) return right & ~(uint64_t{3} << 62);
  return right;
}

// Lets 20 microseconds go by.
TACIT_IN_KERNEL void LetTimePass() {
  const long long begun = clock64();
  while (clock64() - begun < 40'000) {
  }
}

// Products that begin too early begin before a tile that is late; and the block lives until it has
// come.
TACIT_IN_KERNEL void PlantedBringTile(void* to, const TensorMap& map, uint32_t row, uint32_t col,
                                      Barrier& barrier) {
  const bool late = planted == WgmmaFault::kTooEarly;
  if (late) LetTimePass();
  BringTile(to, map, planted == WgmmaFault::kRowOff ? row + 1 : row, col, barrier);
  if (late) LetTimePass();
}

TACIT_IN_KERNEL void PlantedWaitBarrier(Barrier& barrier, uint32_t parity) {
  WaitBarrier(barrier, planted == WgmmaFault::kTooEarly ? parity ^ 1 : parity);
}

}  // namespace sm90a

Status testing::PlantInWgmma(Stream& stream, WgmmaFault fault) {
  const runtime::LaunchShape shape{.grid = {1}, .block = {64}, .shared_bytes = 0};
  return Launch(stream, "PlantInWgmma", shape, PlantKernel, fault);
}

}  // namespace tacit::cuda

#define Describe PlantedDescribe
#define BringTile PlantedBringTile
#define WaitBarrier PlantedWaitBarrier
#include "cuda/kernels/gemm_sm90a.cu"
