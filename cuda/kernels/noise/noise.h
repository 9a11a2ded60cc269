#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"

// Noise on the device. The linker decides which noise that is: noise.cu, or a test's file in its
// place. No switch in a shipped binary turns it off.
namespace tacit::cuda {

// A ChaCha20 key as it lies in device memory. Every kernel reads it there; it is never an argument,
// because arguments stay in graphs.
struct NoiseKey {
  uint32_t words[8];
};

// The purpose of a draw, with its own keystream under the same key. No purpose has the number 0.
enum class NoiseQuery : uint64_t { kDense = 1, kRows = 2, kSelection = 3 };

// A place of the keystream is three blocks of ChaCha20, which give the noise of 16 numbers.
inline constexpr int kNumbersPerPlace = 16;

// In all of these a number's draw depends on key, query and its place alone: not on the launch, not
// on which thread is first, not on what else is drawn. Drawing the same place twice under one key
// gives the same noise twice; StepNoise forbids that. `key` holds one key.
// REQUIRES noise::kGridStddevMin <= stddev <= noise::kGridStddevMax.

// values[i] += floor(stddev z_i) + d_i in steps of the caller's grid, as
// noise::NoiseSource::AddGridGaussian; the place of values[i] is i.
Status AddGridNoise(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query, double stddev,
                    DeviceSpan<int64_t> values);
// out[i] = factor * n_i in f32, n_i what AddGridNoise would add.
Status FillGridNoise(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query,
                     double stddev, double factor, DeviceSpan<float> out);
// The same for rows of `dim` numbers: values[r * dim + i] is number i of the row with id rows[r],
// and that is its place. REQUIRES ids below 2^48, dim in [1, 2^16], rows.size * dim values.
Status AddGridNoiseToRows(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query,
                          double stddev, DeviceSpan<const uint64_t> rows, uint32_t dim,
                          DeviceSpan<int64_t> values);

// Writes the keystream itself from `first_block` on, a block of 16 words a thread: for tests, and
// as the limit beside the noise's figure. REQUIRES whole blocks.
Status FillKeystream(Stream& stream, DeviceSpan<const NoiseKey> key, NoiseQuery query,
                     uint64_t first_block, DeviceSpan<uint32_t> out);
// Overwrites the key with zeros.
Status WipeKey(Stream& stream, DeviceSpan<NoiseKey> key);

}  // namespace tacit::cuda
