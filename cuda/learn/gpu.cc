#include "cuda/learn/gpu.h"

#include <fmt/format.h>

#include <utility>

#include "cuda/device/device.h"
#include "cuda/learn/click_engine.h"

namespace tacit::cuda {
namespace {

class OpenedGpu final : public train::Gpu {
 public:
  explicit OpenedGpu(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  std::string name() const override {
    const DeviceFacts& facts = device_->facts();
    return fmt::format("GPU {} ({}, {:.0f} GB)", facts.ordinal, facts.name,
                       static_cast<double>(facts.memory_bytes) / 1e9);
  }
  Result<std::unique_ptr<train::ClickEngine>> MakeClickEngine(
      const train::ClickEngineOptions& options, mechanism::Mechanism& mechanism,
      noise::NoiseSource& noise, store::WorkingRows& rows,
      const store::DenseState& dense) override {
    return MakeDeviceClickEngine(*device_, {.click = options}, mechanism, noise, rows, dense);
  }

 private:
  const std::unique_ptr<Device> device_;
};

}  // namespace

Result<std::unique_ptr<train::Gpu>> OpenGpu(int ordinal) {
  TACIT_ASSIGN(auto device, OpenDevice(ordinal));
  return std::make_unique<OpenedGpu>(std::move(device));
}

}  // namespace tacit::cuda
