#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "model/linear/state.h"
#include "train/learner/learner.h"
#include "train/linear/linear_part.h"
#include "train/linear/linear_summer.h"

namespace tacit::train {

// Sums up a linear learner's period on the threads of a pool. Each part of the period is cut into
// slices, whose events a summer of each thread adds up; at the end the sums are merged. They are
// integers, so the period's sums are the same for any number of threads. A part with units of
// several events is one slice, since a unit is added once. Not thread-safe.
class SliceSummer {
 public:
  // The references must outlive it. `bins`: of the figures (LinearSummer).
  SliceSummer(const LinearQuery& query, LinearRows& rows, WorkerPool& workers, uint32_t bins = 0);

  // Predicts the step's examples by `model`, for the report, and adds them to the period's sums if
  // they are learnt from.
  Status See(const stream::StepBatch& step, const model::linear::State& model, bool learn,
             StepReport* report);
  // Adds a part that was summed elsewhere. REQUIRES the same query.
  void Add(LinearPart part);
  // Adds the part of another process, and returns its figures, which have `bins` bins. Fails as
  // LinearPart::AddBytes does, and has added nothing then.
  Result<PartFigures> AddBytes(std::string_view bytes, uint32_t bins);
  // Drops the period's sums.
  void Abandon();
  // Returns all that was added since the last call.
  LinearPart TakePart();
  // Returns the period's sums, and tells the whole period to the report, which has its last part.
  mechanism::RowSums Take(StepReport* report);
  // Takes the release of these sums, for its memory.
  void Keep(mechanism::ReleasedSums released) { released_ = std::move(released); }

  // The model's weights as the places follow them (LinearPlaces), in every thread.
  void EndPeriod();
  void Move(size_t column, uint64_t row, const model::linear::Effect& effect);
  void Forget();

 private:
  mechanism::RowSums NoSums(size_t worker);
  void Open();  // the first summer's sums

  const LinearQuery& query_;
  WorkerPool& workers_;
  std::vector<LinearSummer> summers_;  // one a worker
  // The part of each worker but the first in the period before, for its memory.
  std::vector<std::optional<LinearPart>> slices_;
  // Summed elsewhere. Of bytes it has no rows of columns that are released whole: those are in the
  // first summer's sums.
  std::optional<LinearPart> others_;
  mechanism::ReleasedSums released_;
  double loss_sum_ = 0;
  std::vector<float> logits_, losses_;  // of a step
};

}  // namespace tacit::train
