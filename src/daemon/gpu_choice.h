#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/engines/gpu.h"
#include "wiring/assembly.h"

namespace tacit::daemon {

// Decides by `gpu.use` which learners' steps are computed on a GPU, and by `gpu.serve_rows` whether
// large requests are scored there. Used by the thread that starts.
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
  // The same for a program that only serves: the GPU is opened where a model is scored on it.
  static Result<GpuChoice> MakeToServe(const wiring::Assembly& assembly, Open open);

  // Makes the learner with `make`, which is given the GPU, or null for the processor. It is asked
  // twice where `prefer` turns out not to be possible.
  using MakeLearner = std::function<Result<std::unique_ptr<train::Learner>>(train::Gpu*)>;
  Result<std::unique_ptr<train::Learner>> Learner(const wiring::LearnerPlan& plan,
                                                  const MakeLearner& make);

  // The models that score rows, on the GPU where there is room for it. A failure here is
  // warned of, and the processor scores. Called behind the making of all learners, and before what
  // they take for their steps. `registry` and this outlive the models.
  std::vector<serve::ScoringModel> ScoringModels(metrics::Registry& registry);

 private:
  Status Decide();
  Result<uint64_t> OpenGpu(const char* why);
  Status FindRoom(uint64_t free);
  Status FindRoomToScore(uint64_t free);
  bool required() const;

  const wiring::Assembly* assembly_ = nullptr;
  Open open_;
  bool decided_ = true;
  std::unique_ptr<train::Gpu> gpu_;
  // Per learner: why it is not on the GPU that is there; if empty, it is.
  std::vector<std::string> why_not_;
  std::vector<bool> scores_;  // per learner: on the GPU
};

}  // namespace tacit::daemon
