#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/noise/step_noise.h"
#include "noise/noise.h"

namespace tacit::cuda::testing {

// The device's grid noise as a source, so that the criteria of tests/unit/noise can be asked of it.
// Each draw is a step of its own with a key of its own from `keys`, as in training.
class DeviceNoise final : public noise::NoiseSource {
 public:
  DeviceNoise(Stream& stream, std::unique_ptr<noise::NoiseSource> keys)
      : stream_(stream),
        keys_(std::move(keys)),
        step_(std::move(*StepNoise::Make(stream))),
        print_(std::move(*Buffer<uint32_t>::Make(stream.device(), 16))) {}

  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    if (values_.size() != values.size())
      values_ = std::move(*Buffer<int64_t>::Make(stream_.device(), values.size()));
    const std::span<const int64_t> in = values;
    Must(step_.Begin(*keys_));
    Must(stream_.Upload<int64_t>(in, values_.span()));
    Must(step_.AddToDense(stddev, values_.span()));
    Must(stream_.Download(values_.span(), values));
    Must(step_.End());
    Must(stream_.Synchronize());
  }
  // Out of the device's keystream.
  double Uniform() override {
    if (used_ == uniforms_.size()) {
      uniforms_.assign(16, 0);
      used_ = 0;
      Must(step_.Begin(*keys_));
      Must(FillKeystream(stream_, step_.key(), NoiseQuery::kDense, 0, print_.span()));
      Must(stream_.Download(print_.span(), std::span<uint32_t>(uniforms_)));
      Must(step_.End());
      Must(stream_.Synchronize());
    }
    const uint64_t bits = uniforms_[used_] | uint64_t{uniforms_[used_ + 1]} << 32;
    used_ += 2;
    return static_cast<double>(bits >> 11 | 1) * 0x1p-53;
  }
  void Rekey() override {
    keys_->Rekey();
    used_ = uniforms_.size();
  }
  void FillKey(std::span<uint8_t, 32> key) override { keys_->FillKey(key); }

  // Not drawn on the device.
  void AddGaussian(double, std::span<float>) override { Never(); }
  void FillGaussian(std::span<double>) override { Never(); }
  bool Bernoulli(double) override { return Never(); }
  uint64_t GeometricSkip(double) override { return Never(); }
  double GaussianTail(double) override { return Never(); }

 private:
  static void Must(const Status& status) {
    TACIT_CHECK(status.has_value(), status ? "" : status.error().message);
  }
  static int Never() {
    TACIT_CHECK(false, "no criterion asks for it");
    return 0;
  }

  Stream& stream_;
  const std::unique_ptr<noise::NoiseSource> keys_;
  StepNoise step_;
  Buffer<int64_t> values_;
  Buffer<uint32_t> print_;
  std::vector<uint32_t> uniforms_;
  size_t used_ = 0;
};

}  // namespace tacit::cuda::testing
