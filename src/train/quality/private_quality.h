#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/score_histogram.h"
#include "noise/noise.h"
#include "store/types/delta.h"
#include "stream/steps/participation.h"
#include "train/learner/part_figures.h"
#include "train/quality/release_account.h"

namespace tacit::train {

// The name of a learner's account for this. No learner can have it: their ids have no dot.
inline std::string QualityAccount(const std::string& learner) { return learner + ".quality"; }

struct QualityOptions {
  std::string learner;
  LearnerIndex index;  // the account's place in the store, behind the learners
  std::string topic;   // the source's, for the ledger
  uint64_t steps = 1;  // of a window
  uint32_t bins = 64;
  double noise_multiplier = 0;
  double epsilon = 0, delta = 0;                // that it may spend on a record
  stream::Position position = {};               // as of the store's last commit
  std::optional<ReleasedScores> released = {};  // of the same commit
};

// Shows everybody how well a learner predicts (learners.quality): a histogram of its predictions by
// what came of them, over windows of a number of its steps, is released with Gaussian noise where a
// window ends, and charged to an account of its own. A prediction is made before its
// record is learnt from, by a model that is covered itself, so a record moves one count of one
// window, by one. Windows follow from the number of the step alone; one that a restart cuts, or
// that would have a record twice, is left out. Un-noised counts are in memory alone. Not
// thread-safe.
class PrivateQuality {
 public:
  // REQUIRES a noise multiplier above 0, and a window of at least one step.
  PrivateQuality(QualityOptions options, std::unique_ptr<noise::NoiseSource> noise);

  // A part of the next step, predicted ahead of it; or predicted and counted by another process.
  // REQUIRES figures of this many bins, in which each example is once.
  void SeePart(std::span<const float> logits, std::span<const float> labels);
  void SeePart(const PartFigures& figures);
  // A step of the learner: its number, from 0, its offsets (those of its parts among them), and
  // what it predicted before learning, without its parts.
  void See(uint64_t step, std::span<const OffsetRange> ranges, std::span<const float> logits,
           std::span<const float> labels);
  // Tells whether a whole window waits for its release.
  bool due() const { return open_ && open_->seen == options_.steps; }

  const QualityOptions& options() const { return options_; }
  // The pending charges, and that of the window that is due.
  std::vector<privacy::CommitCharge> ChargesWithDue() const;
  const std::vector<privacy::CommitCharge>& pending() const { return account_.pending(); }

  // Releases the window, with noise that is drawn here and kept. `after`: the learner's position
  // behind the window. REQUIRES due().
  void Release(const stream::Position& after);
  // Passes over a window that may not be charged: nothing is drawn. REQUIRES due().
  void PassOver() { open_.reset(); }
  // Returns what the next commit has to hold; nothing if there is nothing new.
  std::optional<store::LearnerCommit> TakePending();

 private:
  struct Window {
    uint64_t begin = 0, seen = 0;  // steps
    std::vector<OffsetRange> ranges;
    std::vector<uint64_t> counts;
  };

  void Count(std::span<const float> logits, std::span<const float> labels);
  bool Overlaps(std::span<const OffsetRange> ranges) const;

  const QualityOptions options_;
  const ScoreBins bins_;
  const std::unique_ptr<noise::NoiseSource> noise_;
  ReleaseAccount account_;
  std::vector<uint64_t> counts_;  // of the next step, by bin: of misses, then of clicks
  std::optional<Window> open_;
  uint64_t windows_ = 0;  // released in this run
  stream::Position position_;
  std::optional<ReleasedScores> released_;
};

}  // namespace tacit::train
