#include "noise/stream_noise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace tacit::noise {

namespace {

constexpr size_t kKeyWords = 8;  // of 32 bits

}  // namespace

StreamNoise::StreamNoise() : StreamNoise(std::make_unique<Keystream>()) {}

StreamNoise::StreamNoise(std::unique_ptr<Keystream> stream)
    : stream_(std::move(stream)),
      add_box_muller_(FastestBoxMuller()),
      fill_normals_(FastestFillNormals()),
      add_grid_(FastestAddGrid()),
      fill_grid_(FastestFillGrid()) {}

template <class T, class Draw>
void StreamNoise::ForPairs(std::span<T> values, const Draw& draw) {
  while (values.size() >= 2) {
    const size_t left = values.size() / 2;
    const size_t granule = left < kPairsAtOnce ? 1 : kPairsAtOnce;
    const auto bits = stream_->Take(left * kWordsPerPair, granule * kWordsPerPair);
    const size_t pairs = bits.size() / kWordsPerPair;
    draw(bits.data(), values.data(), values.data() + pairs, pairs);
    values = values.subspan(2 * pairs);
  }
  if (!values.empty()) {
    T unused{};
    draw(stream_->Take(kWordsPerPair, kWordsPerPair).data(), values.data(), &unused, 1);
  }
}

void StreamNoise::AddGridGaussian(double stddev, std::span<int64_t> values) {
  const int dither_bits = DitherBits(stddev);
  ForPairs(values, [&](const uint32_t* bits, int64_t* first, int64_t* second, size_t pairs) {
    add_grid_(bits, stddev, dither_bits, first, second, pairs);
  });
}

void StreamNoise::FillGridGaussian(double stddev, double factor, std::span<float> out) {
  const int dither_bits = DitherBits(stddev);
  ForPairs(out, [&](const uint32_t* bits, float* first, float* second, size_t pairs) {
    fill_grid_(bits, stddev, dither_bits, factor, first, second, pairs);
  });
}

void StreamNoise::AddGaussian(double stddev, std::span<float> values) {
  TACIT_CHECK(stddev >= 0 && std::isfinite(stddev));
  auto scale = static_cast<float>(stddev);
  // Rounds up: the noise is never less than is charged.
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

void StreamNoise::FillGaussian(std::span<double> out) { ForPairs(out, fill_normals_); }

double StreamNoise::Uniform() {
  // A 0 becomes the smallest of the other values.
  return static_cast<double>(std::max<uint64_t>(stream_->Next64() >> 11, 1)) * 0x1p-53;
}

// Compares the first 128 bits of a uniform number with those of p.
bool StreamNoise::Bernoulli(double p) {
  TACIT_CHECK(p >= 0 && p <= 1, "a probability");
  const uint64_t high = stream_->Next64(), low = stream_->Next64();
  if (p == 1) return true;
  const double scaled = p * 0x1p64, whole = std::floor(scaled);
  const auto p_high = static_cast<uint64_t>(whole);
  const auto p_low = static_cast<uint64_t>((scaled - whole) * 0x1p64);
  return high < p_high || (high == p_high && low < p_low);
}

void StreamNoise::FillKey(std::span<uint8_t, 32> key) {
  // Takes all words at once: a key whose parts come from before and after a fork would be half a
  // parent's.
  const auto words = stream_->Take(kKeyWords, kKeyWords);
  std::memcpy(key.data(), words.data(), key.size());
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
    // At least every second normal is above `lower`.
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
