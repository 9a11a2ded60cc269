#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "train/counts/next_item_baselines.h"
#include "train/counts/recent_histories.h"
#include "train/learner/learner.h"

namespace tacit::train {

// Asks a next-item model for the items that users took, before it learns from them, and asks its
// baselines the same. For operators alone. Not thread-safe.
class NextItemExam {
 public:
  // Scores every item after each history, and calls `take` once a history, from any thread.
  using Histories = std::span<const std::span<const uint32_t>>;
  using Take = std::function<void(size_t history, std::span<const float> scores)>;
  using Model = std::function<Status(Histories, const Take& take)>;

  // Asks at most `most` units of a step: with 0, none.
  NextItemExam(size_t items, size_t most) : items_(items), most_(most) {}

  // Asks a step's units, fills in the report, and lets the baselines learn from the step. A null
  // model, which has learnt nothing yet, is not asked.
  Status Ask(const StepHistories& step, const Model& model, StepReport* report);
  // The same for a step that is held out: all its units are asked, and nothing learns from it.
  Status AskHeldOut(const StepHistories& step, const Model& model, StepReport* report);

  // Bytes that an exam holds.
  static double Bytes(size_t items) { return NextItemBaselines::Bytes(items); }

 private:
  Status Question(const StepHistories& step, size_t most, const Model& model, RankTotals* ranked);

  const size_t items_, most_;
  std::optional<NextItemBaselines> baselines_;  // made when the first question is asked
};

// Has workers score `items` items after each history.
using ScoreHistory = std::function<void(std::span<const uint32_t> history, std::span<float>)>;
Status ScoreByWorkers(WorkerPool& workers, size_t items, NextItemExam::Histories histories,
                      const ScoreHistory& score, const NextItemExam::Take& take);

// Returns the first new item that is not in `before`: the one a model can be asked for. Looks only
// at the first few new items, so that one very active user does not slow the step.
std::optional<uint32_t> FirstUnseen(std::span<const uint32_t> before,
                                    std::span<const uint32_t> fresh);

}  // namespace tacit::train
