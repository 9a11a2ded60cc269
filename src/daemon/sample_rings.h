#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "serve/routes/figures.h"

namespace tacit::daemon {

// Samples of a process's counters, in memory of a fixed size: every sample of the last minutes, and
// thinner ones of hours and of a day. Counters only go up, so a thinner ring loses no record, only
// the moment at which it came. Not thread-safe.
class SampleRings {
 public:
  static constexpr size_t kSamples = 180;  // of a ring
  static constexpr std::chrono::seconds kEvery{2};
  // At each of these strides a sample goes into the ring of minutes, of hours, of a day.
  static constexpr std::array<uint64_t, serve::kLookBacks> kStrides = {1, 20, 300};

  void Add(const serve::StreamSample& sample) {
    for (size_t i = 0; i < rings_.size(); ++i)
      if (taken_ % kStrides[i] == 0) rings_[i].Push(sample);
    ++taken_;
    last_ = sample;
  }
  // The samples of a ring, oldest first, and behind them the last one taken.
  std::vector<serve::StreamSample> Of(serve::LookBack back) const {
    const Ring& ring = rings_[static_cast<size_t>(back)];
    std::vector<serve::StreamSample> samples;
    samples.reserve(kSamples + 1);
    for (size_t i = 0; i < ring.size; ++i)
      samples.push_back(ring.samples[(ring.next + kSamples - ring.size + i) % kSamples]);
    if (taken_ > 0 && (taken_ - 1) % kStrides[static_cast<size_t>(back)] != 0)
      samples.push_back(last_);
    return samples;
  }

 private:
  struct Ring {
    std::array<serve::StreamSample, kSamples> samples{};
    size_t next = 0, size = 0;

    void Push(const serve::StreamSample& sample) {
      samples[next] = sample;
      next = (next + 1) % kSamples;
      size = size < kSamples ? size + 1 : size;
    }
  };
  std::array<Ring, serve::kLookBacks> rings_{};
  uint64_t taken_ = 0;
  serve::StreamSample last_;
};

}  // namespace tacit::daemon
