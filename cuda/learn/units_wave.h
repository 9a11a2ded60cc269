#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/device.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/logits.h"
#include "cuda/learn/packed_units.h"
#include "cuda/learn/sequence_wave.h"

namespace tacit::cuda {

// The memory of a wave's packed units. Grows to the largest wave.
struct UnitsMemory {
  static constexpr size_t kInts = 10;  // vectors of PackedUnits, in Upload's order
  Buffer<uint32_t> ints[kInts];
  Buffer<float> weight, loss, factor, minus_sum;  // per row that predicts
  // These are per unit, and one number.
  Buffer<double> squared;
  Buffer<float> norm, scale;
  Buffer<uint8_t> bounded;
  Buffer<uint32_t> coordinates, clipped;

  Status Take(const WavePlan& sizes, BufferTaker taker);
};

// A wave's packed units on the device, and the outcome of their step: what a wave has whatever its
// model and precision are.
class UnitsWave : public SequenceWave {
 public:
  Status Report(Outcome* outcome) override;

 protected:
  explicit UnitsWave(Stream& stream) : stream_(stream), device_(stream.device()) {}
  // `units` must live until the stream has run.
  Status Upload(const PackedUnits& units);

  template <class U>
  DeviceSpan<U> Units(const Buffer<U>& buffer) const {
    return buffer.span().Sub(0, units_);
  }
  template <class U>
  DeviceSpan<U> Counted(const Buffer<U>& buffer) const {
    return buffer.span().Sub(0, counted_count_);
  }
  DeviceSpan<const uint32_t> Ints(size_t which) const { return ints_[which]; }
  DeviceSpan<const uint32_t> item() const { return ints_[0]; }
  DeviceSpan<const uint32_t> position() const { return ints_[1]; }
  DeviceSpan<const uint32_t> unit_end() const { return ints_[3]; }
  DeviceSpan<const uint32_t> counted() const { return ints_[4]; }
  DeviceSpan<const uint32_t> target() const { return ints_[5]; }
  DeviceSpan<const uint32_t> counted_end() const { return ints_[6]; }
  PredictingRows Predicting() const {
    return {.item = item(), .crop_end = ints_[2], .counted = counted(), .counted_end = ints_[7]};
  }

  Stream& stream_;
  Device& device_;
  size_t units_ = 0, rows_ = 0, counted_count_ = 0;
  uint32_t longest_ = 0;
  UnitsMemory memory_;
  DeviceSpan<const uint32_t> ints_[UnitsMemory::kInts];
};

}  // namespace tacit::cuda
