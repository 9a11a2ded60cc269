#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "train/gpu.h"
#include "wiring/assembly.h"

namespace tacit::daemon {

// Decides by `gpu.use` which learners' steps are computed on a GPU. Used by the thread that starts.
class GpuChoice {
 public:
  using Open = std::function<Result<std::unique_ptr<train::Gpu>>(const train::GpuOptions&)>;

  // Opens the GPU if the configuration wants one. `require` fails where there is none, and where a
  // learner has no form for one; `prefer` warns, and the processor does the work. For the process
  // that has the store: one that stands by takes no memory of the device.
  static Result<GpuChoice> Make(const wiring::Assembly& assembly, const Open& open);

  // Makes the learner with `make`, which is given the GPU, or null for the processor. It is asked
  // twice where `prefer` turns out not to be possible.
  using MakeLearner = std::function<Result<std::unique_ptr<train::Learner>>(train::Gpu*)>;
  Result<std::unique_ptr<train::Learner>> Learner(const wiring::LearnerPlan& plan,
                                                  const MakeLearner& make);

 private:
  std::unique_ptr<train::Gpu> gpu_;
  bool required_ = false;
};

}  // namespace tacit::daemon
