// gemm_sm90a.cu with faults: its descriptors, tiles and waits go through functions that may spoil
// them.
#include "cuda/device/kernel.h"
#include "cuda/kernels/gemm/wgmma.h"
#include "unit/cuda/planted_wgmma.h"

namespace tacit::cuda {
namespace {

using testing::WgmmaFault;

#if defined(__CUDACC__)
__device__ WgmmaFault planted;
#else
WgmmaFault planted;
#endif

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
#if defined(__CUDACC__)
  const long long begun = clock64();
  while (clock64() - begun < 40'000) {
  }
#endif
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
  constexpr uint32_t kBringing = 8;  // the warp that brings
  if (planted == WgmmaFault::kOverwrites && WarpIndex() == kBringing) return;
  WaitBarrier(barrier, planted == WgmmaFault::kTooEarly ? parity ^ 1 : parity);
}
TACIT_IN_KERNEL void PlantedArrive(Barrier& barrier) {
  if (planted != WgmmaFault::kKeepsStages) Arrive(barrier);
}
template <int n>
TACIT_IN_KERNEL void PlantedWaitProducts() {
  if (planted != WgmmaFault::kReadsEarly) WaitProducts<n>();
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
#define Arrive PlantedArrive
#define WaitProducts PlantedWaitProducts
#include "cuda/kernels/gemm/gemm_sm90a.cu"
