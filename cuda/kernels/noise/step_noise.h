#pragma once

#include <cstdint>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/device.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/noise/noise.h"
#include "noise/noise.h"

namespace tacit::cuda {

// The noise of one step at a time, all of it on one stream: a fresh key out of the CSPRNG, the
// draws, and the key's end. It ensures that no two released numbers share their noise. The key lies
// in device memory and in pinned host memory; both are zeros when the step's work has run. The
// stream must outlive it. Not thread-safe.
class StepNoise {
 public:
  static Result<StepNoise> Make(Stream& stream);
  StepNoise(StepNoise&&) = default;
  ~StepNoise();

  // Takes a fresh key. REQUIRES that no step has begun, or that it has ended.
  Status Begin(noise::NoiseSource& source);
  // As in noise.h; kDense once a step.
  Status AddToDense(double stddev, DeviceSpan<int64_t> values);
  // kRows. REQUIRES that no id comes twice in a step, also over several calls, and one `dim` for
  // all of them: places are counted by it, and rows of two widths would share some.
  Status AddToRows(double stddev, DeviceSpan<const uint64_t> rows, uint32_t dim,
                   DeviceSpan<int64_t> values);
  // For kernels that draw by themselves: the step's key, valid until End.
  DeviceSpan<const NoiseKey> key() const;
  // Overwrites the key after the step's work. A step that failed must be ended, too.
  Status End();

 private:
  StepNoise(Stream& stream, Buffer<NoiseKey> key, HostBuffer<NoiseKey> staging, Event ended)
      : stream_(&stream),
        key_(std::move(key)),
        staging_(std::move(staging)),
        ended_(std::move(ended)) {}

  Stream* stream_;
  Buffer<NoiseKey> key_;
  HostBuffer<NoiseKey> staging_;
  Event ended_;  // behind the last step's key
  bool begun_ = false;
  bool dense_drawn_ = false;
  uint32_t row_dim_ = 0;  // of the step's rows; 0: none were drawn for
};

}  // namespace tacit::cuda
