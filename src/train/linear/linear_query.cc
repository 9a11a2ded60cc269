#include "train/linear/linear_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tacit::train {
namespace {

namespace linear = model::linear;
using mechanism::SumTable;

std::vector<SumTable> TablesOf(const LinearLearnerOptions& options) {
  std::vector<SumTable> tables;
  for (const RowSpace::Table& table : options.columns->space().tables())
    tables.push_back({table.first, table.rows, table.rows <= options.whole_column_most});
  return tables;
}

mechanism::RowSumsOptions SumsOf(const LinearLearnerOptions& options) {
  return {.clip = linear::ContributionMost(options.columns->size(), options.update),
          .noise_multiplier = options.noise_multiplier,
          .threshold_deviations =
              std::max(options.threshold_deviations, options.update.known_deviations),
          .numbers = kLinearNumbers};
}

// An event's weights. A set's column adds no more than any other.
mechanism::ColumnWeights WeightsOf(const mechanism::RowSumsOptions& sums,
                                   std::span<const double> scales,
                                   const linear::UpdateOptions& update) {
  std::vector<double> counts;
  for (const double scale : scales) counts.push_back(scale * update.count_share);
  return {sums, scales, counts};
}

}  // namespace

LinearQuery::LinearQuery(const LinearLearnerOptions& options)
    : columns(options.columns),
      update(options.update),
      scales(linear::ColumnScales(*columns, update)),
      tables(TablesOf(options)),
      sums(SumsOf(options)),
      weights(WeightsOf(sums, scales, update)),
      weighs(options.weighs) {}

size_t LinearQuery::WholeColumn() const {
  size_t best = tables.size();
  for (size_t j = 0; j < tables.size(); ++j)
    if (tables[j].every_row && !columns->IsSet(j) &&
        (best == tables.size() || tables[j].rows < tables[best].rows))
      best = j;
  return best;
}

Status CheckLinear(const LinearLearnerOptions& options) {
  const LinearQuery query(options);
  if (query.WholeColumn() < query.tables.size()) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("learner '{}': a linear model needs a column of one value for each event "
                          "and of at most {} values",
                          options.id, options.whole_column_most));
}

RateNoise ClickRateNoise(const LinearLearnerOptions& options) {
  const LinearQuery query(options);
  const double deviation = query.sums.noise_multiplier * query.sums.clip;
  const size_t column = query.WholeColumn();
  const double of_value = deviation / query.update.count_share / query.scales[column];
  return {.clicks = deviation / query.update.click_share,
          .events = of_value * std::sqrt(static_cast<double>(query.tables[column].rows)),
          .value_events = of_value};
}

privacy::Charge LinearPeriodCharge(const LinearLearnerOptions& options) {
  return mechanism::RowSums(SumsOf(options), {}).charge();
}

}  // namespace tacit::train
