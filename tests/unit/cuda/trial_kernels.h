#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"

// Small right kernels, one for each thing that kernel.h offers. For tests, on either device.
namespace tacit::cuda::testing {

inline constexpr uint32_t kTrialBlock = 64;

// x[i] = a x[i] + b, which does not commute: it shows in which order it was done.
Status AddScaled(Stream& stream, DeviceSpan<uint32_t> x, uint32_t a, uint32_t b);
// Each block of 64 numbers turned around, through shared memory. REQUIRES whole blocks.
Status Reverse(Stream& stream, DeviceSpan<const uint32_t> in, DeviceSpan<uint32_t> out);
// The same, brought by asynchronous copies of 16 bytes in two groups; an odd group is cleared.
Status ReverseAsync(Stream& stream, DeviceSpan<const uint32_t> in, DeviceSpan<uint32_t> out,
                    bool clear_odd);
// sums[0] += all, by the warp's shuffles and one atomic a warp; counts[0] += how many are odd.
Status SumAll(Stream& stream, DeviceSpan<const int64_t> in, DeviceSpan<int64_t> sum,
              DeviceSpan<uint32_t> odd);
// c = a b for bf16 a of 16 x 16 and b of 16 x 8, both row by row, c in f32: one warp's fragments.
Status MultiplyTile(Stream& stream, DeviceSpan<const uint16_t> a, DeviceSpan<const uint16_t> b,
                    DeviceSpan<float> c);
// out[i] = what thread i of a grid of 2 x 3 x 1 blocks of 4 x 2 x 2 threads is called: its block's
// and its own indices as digits, ((bx * 10 + by) * 10 + tx) * 100 + ty * 10 + tz.
Status NameThreads(Stream& stream, DeviceSpan<uint32_t> out);

}  // namespace tacit::cuda::testing
