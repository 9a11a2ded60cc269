#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads/worker_pool.h"
#include "mechanism/row_sums.h"
#include "model/linear/state.h"
#include "model/linear/update.h"
#include "noise/noise.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"
#include "train/learner/learner.h"
#include "train/linear/linear_query.h"
#include "train/linear/slice_summer.h"

namespace tacit::train {

// The linear click model out of noised sums. A step is a period: the sums of all its events are
// released at once, and all else is made of them (docs/internals/model.md, linear). The model
// that predicts a period's events, and that their residuals are taken from, is the one before the
// period; so an event never moves a weight that predicts it, and events are summed up as they come:
// previews are the first parts of the step that follows them. A period's sums are in memory until
// its step only; a step that was abandoned, or a period that was not read to its end, begins anew.
//
// A value has a row of one weight in the store, with its state (model/linear/row.h). All else is
// the mechanism's state.
class LinearLearner final : public Learner {
 public:
  // REQUIRES CheckLinear(options). `rows` (of LinearRowLayout) and `workers`, whose threads sum,
  // must outlive the learner.
  LinearLearner(const LinearLearnerOptions& options, std::unique_ptr<noise::NoiseSource> noise,
                store::WorkingRows& rows, WorkerPool& workers);

  const model::linear::State& state() const { return state_; }

  privacy::Charge charge() const override { return charge_; }
  // Returns kInvalidArgument for a step of `poisson`: each event is in one release, once.
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        StepReport* report) override;
  Status Preview(const stream::StepBatch& batch, StepReport* report) override;
  Result<PartFigures> AddPart(std::string_view bytes) override;
  Result<bool> EndRecount(std::string_view bytes) override;
  Result<bool> GivesNumbers() override { return gives_numbers_; }
  std::shared_ptr<const store::DenseState> CopyDense() const override { return nullptr; }
  std::shared_ptr<const std::string> TakeReleased() override;
  Status LoadReleased(std::string_view bytes) override;
  void Rekey() override { noise_->Rekey(); }

 private:
  // Some values of one column in a release, with their sums.
  struct Known {
    std::vector<uint64_t> rows;
    std::vector<double> residual, count;
  };

  // A period as its release tells it.
  struct Period {
    double mean_residual = 0, click_rate = 0, events = 0;
    double events_deviation = 0;  // of the noise on `events`
    model::linear::Curve curve;   // at the click rate
  };

  // The sums of what another process has summed up too.
  SliceSummer& Recount();
  // Returns the rate of the first move: no weight has moved yet.
  double FirstRate(const mechanism::ReleasedSums& released, const Period& now,
                   double deviation) const;
  void SetRate(const mechanism::ReleasedSums& released, const Period& now, double deviation);
  Period PeriodOf(const mechanism::ReleasedSums& released, double deviation) const;
  Known ValuesOf(size_t column, const mechanism::ReleasedSums& released, double least) const;
  model::linear::ValueSums SumsOf(size_t column, const Known& known, double deviation) const;
  // Returns what a release says of values of a column.
  model::linear::Observed ObservedOf(size_t column, const Known& known, const Period& now,
                                     double deviation) const;
  Status UpdateColumn(size_t column, const Known& known, const Period& now, double deviation);
  Status SmoothColumn(size_t column);
  Result<uint64_t> Update(const mechanism::ReleasedSums& released, double deviation);

  const LinearQuery query_;
  const bool opens_;
  const uint32_t bins_;  // of parts
  const privacy::Charge charge_;
  const std::unique_ptr<noise::NoiseSource> noise_;
  LinearRows rows_;
  WorkerPool& workers_;
  SliceSummer sums_;
  std::optional<SliceSummer> recount_;
  model::linear::State state_;
  bool changed_ = false;
  bool gives_numbers_ = true;
};

}  // namespace tacit::train
