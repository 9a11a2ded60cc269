#pragma once

#include <memory>

#include "ops/backend.h"
#include "ops/unit_ops.h"

namespace tacit::ops {

enum class Bf16Gemm {
  kNative,   // the processor's bf16 dot products
  kWidened,  // factors widened to f32: for processors without them
};

// MakeCpuBackend with its one choice made by the caller, so that the contract suite can hold both.
// REQUIRES HasFastBf16() for kNative.
std::unique_ptr<Backend> MakeCpuBackendWith(WorkerPool& workers, Bf16Gemm bf16);

enum class UnitGemm {
  kTiles,    // tile_gemm.h
  kLibrary,  // oneDNN's f32, on factors rounded first if they are of bf16
};

// The same for MakeCpuUnitOps. REQUIRES HasTileGemm() for kTiles.
std::unique_ptr<UnitOps> MakeCpuUnitOpsWith(Precision precision, UnitGemm gemm);

}  // namespace tacit::ops
