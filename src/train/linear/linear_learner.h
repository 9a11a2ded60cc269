#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/tuned.h"
#include "mechanism/row_sums.h"
#include "mechanism/unit_vector.h"
#include "model/linear/columns.h"
#include "model/linear/predict.h"
#include "model/linear/state.h"
#include "model/linear/update.h"
#include "noise/noise.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"
#include "train/learner/learner.h"
#include "train/linear/linear_places.h"

namespace tacit::train {

struct LinearLearnerOptions {
  std::string id;
  LearnerIndex index;
  std::shared_ptr<const model::linear::Columns> columns;
  model::linear::UpdateOptions update;
  double noise_multiplier = 0;  // sigma, per period. 0: no noise and no promise
  // Columns of at most this many values are released whole; of larger ones the values whose noised
  // count has `threshold_deviations`.
  uint64_t whole_column_most = uint64_t{1} << 20;
  double threshold_deviations = tuned::kSumsDeviations;
  // The first period is short (stream::OnceOptions) and sets the bias alone: of so few events
  // nothing else stands out of the noise.
  bool opens = false;
};

// Checks that the mean residual can be read from a release: some column is released whole and has
// one value for each example. Returns kInvalidArgument if there is none.
Status CheckLinear(const LinearLearnerOptions& options);

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
  // REQUIRES CheckLinear(options). `rows` (of LinearRowLayout) must outlive the learner.
  LinearLearner(LinearLearnerOptions options, std::unique_ptr<noise::NoiseSource> noise,
                store::WorkingRows& rows);

  const model::linear::State& state() const { return state_; }

  privacy::Charge charge() const override { return charge_; }
  // Returns kInvalidArgument for a step of `poisson`: each event is in one release, once.
  Result<bool> TakeStep(const stream::StepBatch& step, const std::atomic<bool>& abandon,
                        StepReport* report) override;
  Status Preview(const stream::StepBatch& batch, StepReport* report) override;
  Result<bool> GivesNumbers() override { return gives_numbers_; }
  std::shared_ptr<const store::DenseState> CopyDense() const override { return nullptr; }
  std::shared_ptr<const std::string> TakeReleased() override;
  Status LoadReleased(std::string_view bytes) override;
  void Rekey() override { noise_->Rekey(); }

 private:
  // The period that is being summed up.
  struct Open {
    mechanism::RowSums sums;
    uint64_t examples = 0, losses = 0, clipped = 0;
    double loss_sum = 0;
  };
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

  Status See(const stream::StepBatch& step, bool learn, StepReport* report);
  double Predict(std::span<const float> labels, std::span<float> logits);
  void AddEvents(const stream::StepBatch& step, size_t begin, size_t end);
  void AddUnits(const stream::StepBatch& step, size_t begin, size_t end);
  void AddEvent(size_t example, float label, double weight);
  std::array<double, 3> NumbersOf(size_t example, float label) const;
  void Tell(StepReport* report) const;
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

  const LinearLearnerOptions options_;
  const std::vector<double> scales_;               // a_j
  const std::vector<mechanism::SumTable> tables_;  // per column
  const mechanism::RowSumsOptions sums_;
  const privacy::Charge charge_;
  const std::unique_ptr<noise::NoiseSource> noise_;
  store::WorkingRows& rows_;
  const mechanism::ColumnWeights weights_;  // of an event
  LinearPlaces places_;
  std::optional<Open> open_;
  model::linear::State state_;
  bool changed_ = false;
  bool gives_numbers_ = true;

  // Working memory. Of some examples at a time: what they add up to, and their residuals.
  std::vector<model::linear::Effect> effects_;
  std::vector<double> residuals_;
  std::vector<float> logits_;  // of a step
  mechanism::UnitVector unit_{0};
  mechanism::ReleasedSums released_;
};

// The deviations of the noise on a period's numbers of clicks and of events, and on the events of
// one value.
struct RateNoise {
  double clicks = 0, events = 0, value_events = 0;
};
// REQUIRES CheckLinear(options).
RateNoise ClickRateNoise(const LinearLearnerOptions& options);

// The charge of a period with this noise to each unit in it.
privacy::Charge LinearPeriodCharge(const LinearLearnerOptions& options);

}  // namespace tacit::train
