#include "noise/stream_noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"

namespace tacit::noise {

StreamNoise::StreamNoise() : StreamNoise(std::make_unique<Keystream>()) {}

StreamNoise::StreamNoise(std::unique_ptr<Keystream> stream)
    : stream_(std::move(stream)), add_box_muller_(FastestBoxMuller()) {}

void StreamNoise::AddGaussian(double stddev, std::span<float> values) {
  TACIT_CHECK(stddev >= 0 && std::isfinite(stddev));
  auto scale = static_cast<float>(stddev);
  // Rounded up: never less noise than is charged.
  if (scale < stddev) scale = std::nextafter(scale, HUGE_VALF);
  while (values.size() >= 2) {
    const auto bits = stream_->Take(values.size());
    const size_t pairs = bits.size() / 2;
    add_box_muller_(bits.data(), scale, values.data(), values.data() + pairs, pairs);
    values = values.subspan(bits.size());
  }
  if (!values.empty()) {
    float unused = 0;
    add_box_muller_(stream_->Take(2).data(), scale, values.data(), &unused, 1);
  }
}

void StreamNoise::FillGaussian(std::span<double> out) {
  for (size_t i = 0; i < out.size(); i += 2) {
    const double radius = std::sqrt(-2.0 * std::log(Uniform()));
    const double angle = 2.0 * std::numbers::pi * Uniform();
    out[i] = radius * std::cos(angle);
    if (i + 1 < out.size()) out[i + 1] = radius * std::sin(angle);
  }
}

double StreamNoise::Uniform() {
  while (true) {
    const uint64_t bits = stream_->Next64() >> 11;
    if (bits != 0) return static_cast<double>(bits) * 0x1p-53;
  }
}

uint64_t StreamNoise::GeometricSkip(double p) {
  TACIT_CHECK(p > 0 && p <= 1, "a probability in (0, 1]");
  // For p = 1 the divisor is -infinity and the skip 0.
  const double skip = std::floor(std::log(Uniform()) / std::log1p(-p));
  return skip < 0x1p63 ? static_cast<uint64_t>(skip) : uint64_t{1} << 63;
}

double StreamNoise::GaussianTail(double lower) {
  TACIT_CHECK(lower < HUGE_VAL, "no normal is above infinity");
  if (lower < 0) {
    // At least every second normal is above.
    double z[2];
    while (true) {
      FillGaussian(z);
      for (double candidate : z)
        if (candidate >= lower) return candidate;
    }
  }
  // Robert (1995): an exponential beyond `lower` at the best rate, accepted at least 3 times in 4.
  const double rate = lower / 2 + std::hypot(lower / 2, 1);
  while (true) {
    const double candidate = lower - std::log(Uniform()) / rate;
    const double gap = candidate - rate;
    if (Uniform() <= std::exp(-gap * gap / 2)) return candidate;
  }
}

}  // namespace tacit::noise
