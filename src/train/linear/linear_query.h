#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/tuned.h"
#include "mechanism/row_sums.h"
#include "model/linear/columns.h"
#include "model/linear/update.h"
#include "privacy/charge.h"

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
  // The bins of the figures of a part that is summed elsewhere.
  uint32_t bins = 64;
  bool weighs = false;  // records have weights
};

// Checks that the mean residual can be read from a release: some column is released whole and has
// one value for each example. Returns kInvalidArgument if there is none.
Status CheckLinear(const LinearLearnerOptions& options);

// The deviations of the noise on a period's numbers of clicks and of events, and on the events of
// one value.
struct RateNoise {
  double clicks = 0, events = 0, value_events = 0;
};
// REQUIRES CheckLinear(options).
RateNoise ClickRateNoise(const LinearLearnerOptions& options);

// The charge of a period with this noise to each unit in it.
privacy::Charge LinearPeriodCharge(const LinearLearnerOptions& options);

// The sums of a period that belong to no row.
enum LinearNumber : size_t { kAlong, kSquare, kClicks, kLinearNumbers };

// The query of a period: which sums there are, and the weights of an event in them. Immutable.
struct LinearQuery {
  explicit LinearQuery(const LinearLearnerOptions& options);

  // The smallest column that is released whole and has one value for each example, or
  // columns->size().
  size_t WholeColumn() const;

  const std::shared_ptr<const model::linear::Columns> columns;
  const model::linear::UpdateOptions update;
  const std::vector<double> scales;               // a_j
  const std::vector<mechanism::SumTable> tables;  // per column
  const mechanism::RowSumsOptions sums;
  const mechanism::ColumnWeights weights;  // of an event
  const bool weighs;
};

}  // namespace tacit::train
