// Grid noise into memory. Its limits are the keystream alone, of which each number takes three
// words, and the memory's own rate, at 16 bytes a number.
#include "cuda/kernels/noise/noise.h"

#include <algorithm>

#include "cuda/bench/parts.h"
#include "cuda/bench/timing.h"

namespace tacit::cuda {

Result<std::vector<bench::BenchRow>> BenchGridNoise(const GpuSizes& sizes) {
  TACIT_ASSIGN(const auto device, OpenDevice(0));
  TACIT_ASSIGN(Stream stream, Stream::Make(*device));
  const size_t n = sizes.noise_numbers;
  constexpr double kDeviation = 1 << 20;  // in steps, of the noise
  TACIT_ASSIGN(const auto key, Buffer<NoiseKey>::Make(*device, 1));
  TACIT_ASSIGN(const auto values, Buffer<int64_t>::Make(*device, n));
  TACIT_ASSIGN(const auto words, Buffer<uint32_t>::Make(*device, n));
  TACIT_RETURN_IF_ERROR(stream.Fill(key.span(), 0x35));
  TACIT_RETURN_IF_ERROR(stream.Fill(values.span(), 0));
  TACIT_ASSIGN(const double copy, CopyRate(stream, sizes.seconds, sizes.copy_bytes));
  TACIT_ASSIGN(const double keystream, SecondsOnDevice(stream, sizes.seconds, [&](Stream& on) {
                 return FillKeystream(on, key.span(), NoiseQuery::kDense, 0, words.span());
               }));
  TACIT_ASSIGN(const double added, SecondsOnDevice(stream, sizes.seconds, [&](Stream& on) {
                 return AddGridNoise(on, key.span(), NoiseQuery::kDense, kDeviation, values.span());
               }));
  TACIT_ASSIGN(const double filled, GridNoiseRate(stream, sizes.seconds, n));
  const double numbers = static_cast<double>(n);
  const double of_stream = numbers / keystream / 3;
  return std::vector<bench::BenchRow>{
      {"gpu-keystream", numbers / keystream / 1e9, "G words/s", {}},
      {"gpu-noise-add", numbers / added / 1e9, "G numbers/s", std::min(of_stream, copy / 16) / 1e9},
      {"gpu-noise-fill", filled / 1e9, "G numbers/s", std::min(of_stream, copy / 4) / 1e9}};
}

}  // namespace tacit::cuda
