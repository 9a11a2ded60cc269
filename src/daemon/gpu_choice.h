#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/gpu.h"
#include "wiring/assembly.h"

namespace tacit::daemon {

// Decides by `gpu.use` which learners' steps are computed on a GPU. Used by the thread that starts.
class GpuChoice {
 public:
  using Open = std::function<Result<std::unique_ptr<train::Gpu>>(const train::GpuOptions&)>;

  // Called before the store is opened, which therefore is as it was if this fails. Opens the GPU if
  // the configuration wants one, and compares what is free of its memory with what the learners'
  // engines take at their start. `require` fails where there is none, where a learner has no form
  // for one, and where one finds too little memory; `prefer` warns, and the processor does the
  // work. Where another process holds the store, which refuses its opening, nothing is done yet: a
  // daemon that stands by takes no memory of the device. `assembly` must outlive the choice.
  static Result<GpuChoice> Make(const wiring::Assembly& assembly, Open open);

  // Makes the learner with `make`, which is given the GPU, or null for the processor. It is asked
  // twice where `prefer` turns out not to be possible.
  using MakeLearner = std::function<Result<std::unique_ptr<train::Learner>>(train::Gpu*)>;
  Result<std::unique_ptr<train::Learner>> Learner(const wiring::LearnerPlan& plan,
                                                  const MakeLearner& make);

 private:
  Status Decide();
  Result<uint64_t> OpenGpu();
  Status FindRoom(uint64_t free);
  bool required() const;

  const wiring::Assembly* assembly_ = nullptr;
  Open open_;
  bool decided_ = true;
  std::unique_ptr<train::Gpu> gpu_;
  // Per learner: why it is not on the GPU that is there; empty: it is.
  std::vector<std::string> why_not_;
};

}  // namespace tacit::daemon
