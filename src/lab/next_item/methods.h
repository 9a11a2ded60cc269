#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "lab/next_item/constants.h"
#include "lab/next_item/method.h"

// All learners of `tacit evaluate sequence`, by name.
namespace tacit::lab {

// kInvalidArgument, with the nearest name, unless it is transitions (the shaped count model),
// transitions-no-items (the same without item descriptions), popularity (one histogram, the same
// answer for all), transitions+ranker (the counts with a ranker), or one of trained_method.h.
Status CheckSequenceMethod(std::string_view name);
// Returns true if a method counts, and so has no epochs. REQUIRES a name that passed the check.
bool LearnsAtOnce(std::string_view name);
// The identity of a method in stored runs, at once or over a stream: its name and all its
// constants.
std::string SequenceMethodIdentity(std::string_view name, const SequenceSetting& setting);
std::string StreamMethodIdentity(std::string_view name, const SequenceSetting& setting);

// REQUIRES a name that passed the check. `setting`'s catalogue and `workers` must outlive the
// method.
std::unique_ptr<StreamMethod> MakeStreamMethod(std::string_view name,
                                               const SequenceSetting& setting, WorkerPool& workers);

// A method that learns all histories as its only period.
class SequenceMethod final : public ItemScores {
 public:
  // As for MakeStreamMethod.
  SequenceMethod(std::string_view name, const SequenceSetting& setting)
      : name_(name), setting_(setting) {}

  // Learns from all histories, once. Returns the epsilon of the actual releases, certified and at
  // most the promised one; infinite without a promise. `noise` is used on this thread. `progress`
  // may be called with a share of the work; `workers` must outlive the method.
  Result<double> Fit(const model::Histories& train, const EpsilonDelta& privacy,
                     noise::NoiseSource& noise, WorkerPool& workers,
                     const std::function<void(double share)>& progress);
  // Call before Fit: the `look_every` and `look` of LearnHooks.
  void Watch(double epochs, std::function<void(double epochs)> look) {
    hooks_.look_every = epochs;
    hooks_.look = std::move(look);
  }
  void Score(std::span<const uint32_t> history, std::span<float> scores) const override {
    method_->Score(history, scores);
  }

 private:
  const std::string name_;
  const SequenceSetting setting_;
  LearnHooks hooks_;
  std::unique_ptr<StreamMethod> method_;
};

}  // namespace tacit::lab
