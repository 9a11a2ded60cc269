#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cuda/device/device.h"

namespace tacit::cuda {

// Looks for steps that take memory although there is a plan, and says so in the log, once. Such a
// step goes through all the same: it fails only where the memory cannot be had.
class PlanWatch {
 public:
  // `planned` says for people what the largest planned step has; if empty, nothing was planned.
  PlanWatch(const Device& device, std::string planned)
      : device_(&device), planned_(std::move(planned)) {}

  // These stand around what takes memory for a step and nothing else.
  void Begin() { before_ = device_->memory_takes(); }
  void End() {
    if (device_->memory_takes() > before_ && !planned_.empty()) Tell();
  }

 private:
  void Tell();

  const Device* device_;
  std::string planned_;  // empty, too, once it was told
  uint64_t before_ = 0;
};

}  // namespace tacit::cuda
