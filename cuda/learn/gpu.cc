#include "cuda/learn/gpu.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "cuda/device/device.h"
#include "cuda/learn/click_engine.h"
#include "cuda/learn/engine_need.h"
#include "cuda/learn/pctr_scorer.h"
#include "cuda/learn/sequence_engine.h"

namespace tacit::cuda {
namespace {

class OpenedGpu final : public train::Gpu {
 public:
  OpenedGpu(std::unique_ptr<Device> device, const train::GpuOptions& options)
      : device_(std::move(device)), options_(options) {}

  std::string name() const override {
    const DeviceFacts& facts = device_->facts();
    return fmt::format("GPU {} ({}, {:.0f} GB)", facts.ordinal, facts.name,
                       static_cast<double>(facts.memory_bytes) / 1e9);
  }
  Result<uint64_t> FreeBytes() override { return device_->FreeBytes(); }
  Result<train::GpuNeed> ClickEngineNeed(const train::ClickEngineOptions& options,
                                         bool writes_every_row, uint64_t free) override {
    return NeedOfClickEngine(device_->facts(), Placed(options), writes_every_row, free);
  }
  train::GpuNeed SequenceEngineNeed(const train::SequenceEngineOptions& options) override {
    return NeedOfSequenceEngine(device_->facts(), {.sequence = options});
  }
  Result<std::unique_ptr<train::ClickEngine>> MakeClickEngine(
      const train::ClickEngineOptions& options, mechanism::Mechanism& mechanism,
      noise::NoiseSource& noise, store::WorkingRows& rows,
      const store::DenseState& dense) override {
    TACIT_CHECK(!options.sum_map, "a map by factors has no form for a GPU");
    return MakeDeviceClickEngine(*device_, Placed(options), mechanism, noise, rows, dense);
  }
  Result<std::unique_ptr<train::SequenceEngine>> MakeSequenceEngine(
      const train::SequenceEngineOptions& options, noise::NoiseSource& noise) override {
    return MakeDeviceSequenceEngine(*device_, {.sequence = options}, noise);
  }
  train::GpuNeed PctrDeviceNeed(const train::GpuScoreOptions& options) override {
    return NeedOfPctrScorer(device_->facts(), options);
  }
  Result<std::unique_ptr<model::PctrDevice>> MakePctrDevice(
      const train::GpuScoreOptions& options) override {
    return MakePctrScorer(*device_, options);
  }

 private:
  DeviceClickOptions Placed(const train::ClickEngineOptions& options) const {
    return {.click = options, .rows = options_.rows, .products = {.by = options_.products}};
  }

  const std::unique_ptr<Device> device_;
  const train::GpuOptions options_;
};

}  // namespace

Result<std::unique_ptr<train::Gpu>> OpenGpu(const train::GpuOptions& options) {
  TACIT_ASSIGN(auto device, OpenDevice(options.ordinal));
  return std::make_unique<OpenedGpu>(std::move(device), options);
}

}  // namespace tacit::cuda
