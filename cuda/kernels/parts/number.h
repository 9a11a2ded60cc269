#pragma once

#include <cstdint>

#include "base/device.h"
#include "ops/bf16.h"

// Numbers that kernels keep as f32 or as bf16.
namespace tacit::cuda {

TACIT_DEVICE inline float Widen(float x) { return x; }
TACIT_DEVICE inline float Widen(uint16_t x) { return ops::FromBf16(x); }
TACIT_DEVICE inline void Narrow(float x, float* out) { *out = x; }
TACIT_DEVICE inline void Narrow(float x, uint16_t* out) { *out = ops::ToBf16(x); }

}  // namespace tacit::cuda
