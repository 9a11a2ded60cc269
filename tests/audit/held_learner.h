#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "audit/held.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "stream/steps/participation.h"
#include "train/click/click_learner.h"
#include "train/click/memory_rows.h"

namespace tacit::audit {

class TappedNoise;

// One step, as the adversary makes it out.
struct SeenStep {
  double canary = 0;  // N(1, sigma^2) where the canary is in it, else N(0, sigma^2)
  size_t others = 0;  // records in it beside the canary
};

// A click learner that takes the periods of a case one after the other, and does not move, with an
// adversary beside it who knows all but the canary and the draws. Each thread has its own.
class HeldLearner {
 public:
  // The keys and coins of the participation come from `draws`, which is never keyed anew.
  HeldLearner(const HeldCase& audited, std::unique_ptr<noise::NoiseSource> draws);
  ~HeldLearner();

  // Takes the steps of one period, in either world.
  std::span<const SeenStep> Release(bool with_canary, noise::NoiseSource& noise);
  // The bill of the first period.
  const std::vector<privacy::CountedEvent>& bill() const { return bill_; }

 private:
  using Steps = std::vector<stream::StepBatch>;

  void MakeLearner();
  void MakeParticipation(stream::Position start);
  // The sum that a step releases, in steps of the grid; without noise where there is no source.
  const std::vector<int64_t>& Sum(const stream::StepBatch& step, noise::NoiseSource* noise);
  void LearnGradients();
  Steps CutPeriod(bool with_canary);
  void Plant(const event::Batch& all, Steps* steps);

  const HeldCase audited_;
  const std::unique_ptr<noise::NoiseSource> draws_;
  WorkerPool workers_{{.workers = 1}};
  const std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<train::MemoryRows> rows_;
  TappedNoise* tap_ = nullptr;
  std::unique_ptr<train::ClickLearner> learner_;
  std::unique_ptr<stream::Participation> participation_;
  uint64_t next_offset_ = 0;
  // The clipped gradient of each record, by its place in the period, along the canary's, whose own
  // is 1.
  std::vector<double> along_canary_;
  std::vector<double> canary_;  // its gradient over its squared length
  std::vector<SeenStep> seen_;
  std::vector<privacy::CountedEvent> bill_;
};

}  // namespace tacit::audit
