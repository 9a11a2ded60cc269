#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/device.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/sequence/logits.h"
#include "cuda/learn/packed_units.h"
#include "cuda/learn/sequence_wave.h"

namespace tacit::cuda {

// The memory of a wave's packed units. Grows to the largest wave.
struct UnitsMemory {
  Buffer<uint32_t> words;                 // PackedUnits::Places
  Buffer<float> loss, factor, minus_sum;  // per row that predicts
  // These are per unit, and one number.
  Buffer<double> squared;
  Buffer<float> norm, scale;
  Buffer<uint8_t> bounded;
  Buffer<uint32_t> clipped;

  Status Take(uint64_t words_of_units, uint64_t counted, uint64_t units, BufferTaker taker);
  Status TakePlanned(const WavePlan& plan, BufferTaker taker) {
    return Take(plan.sizes.words(), plan.sizes.counted, plan.sizes.units, taker);
  }
};

// A wave's packed units on the device, and the outcome of their step: what a wave has for any
// model and precision.
class UnitsWave : public SequenceWave {
 public:
  Result<Outcome> Await(uint32_t turn) override;

 protected:
  explicit UnitsWave(Stream& stream) : stream_(stream), device_(stream.device()) {}
  // Takes the pinned memory of such waves.
  Status TakeTurns(const train::GpuWaveSizes& largest);
  Status Upload(const PackedUnits& units, uint32_t turn);
  // Puts the copies behind the work so far for which Await waits.
  Status AskForOutcome(uint32_t turn);

  template <class U>
  DeviceSpan<U> Units(const Buffer<U>& buffer) const {
    return buffer.span().Sub(0, units_);
  }
  template <class U>
  DeviceSpan<U> Counted(const Buffer<U>& buffer) const {
    return buffer.span().Sub(0, counted_count_);
  }
  DeviceSpan<const uint32_t> Ints(PackedUnits::Part part) const {
    return memory_.words.span().Sub(places_[part].begin, places_[part].words);
  }
  DeviceSpan<const uint32_t> item() const { return Ints(PackedUnits::kItem); }
  DeviceSpan<const uint32_t> position() const { return Ints(PackedUnits::kPosition); }
  DeviceSpan<const uint32_t> unit_end() const { return Ints(PackedUnits::kUnitEnd); }
  DeviceSpan<const uint32_t> counted() const { return Ints(PackedUnits::kCounted); }
  DeviceSpan<const uint32_t> target() const { return Ints(PackedUnits::kTarget); }
  DeviceSpan<const uint32_t> counted_end() const { return Ints(PackedUnits::kCountedEnd); }
  DeviceSpan<const uint32_t> coordinates() const { return Ints(PackedUnits::kCoordinates); }
  DeviceSpan<const float> weight() const {
    const DeviceSpan<const uint32_t> words = Ints(PackedUnits::kWeight);
    return {reinterpret_cast<const float*>(words.data), words.size};
  }
  PredictingRows Predicting() const {
    return {.item = item(),
            .crop_end = Ints(PackedUnits::kCropEnd),
            .counted = counted(),
            .counted_end = Ints(PackedUnits::kCropCountedEnd)};
  }

  Stream& stream_;
  Device& device_;
  size_t units_ = 0, rows_ = 0, counted_count_ = 0;
  uint32_t longest_ = 0;
  UnitsMemory memory_;

 private:
  // A wave on its way there, or its outcome on its way back, in pinned memory.
  struct Turn {
    size_t units = 0, counted = 0;
    HostBuffer<uint32_t> words;
    HostBuffer<float> loss, squared;
    HostBuffer<uint8_t> bounded;
    std::optional<Event> done;
  };
  Status Take(uint64_t words, uint64_t counted, uint64_t units, Turn* turn);

  Turn turns_[kTurns];
  std::array<PackedUnits::Place, PackedUnits::kParts> places_;
};

}  // namespace tacit::cuda
