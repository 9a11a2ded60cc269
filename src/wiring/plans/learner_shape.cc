#include "wiring/plans/learner_shape.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stream/steps/participation.h"

namespace tacit::wiring {

double LearnerShape::RowBytes(double steps) const {
  double bytes = 0;
  for (const Table& table : tables) {
    const double touched = steps * batch * table.rows_per_example;
    // Chosen rows may all be of one table, but no table has more rows than its size.
    const double some = std::min(table.rows, touched + steps * chosen_rows);
    bytes += (every_row ? table.rows : some) * table.row_bytes;
  }
  return bytes;
}

double MostOf(double mean, double of_each) {
  return std::ceil(mean + 8 * std::sqrt(mean * of_each));
}

LargestStep LargestStepOf(const config::Participation& participation, bool of_users) {
  const auto mean = static_cast<double>(participation.batch);
  LargestStep step{.examples = mean, .of_unit = of_users ? participation.user_records_max : 1.0};
  if (!participation.holds_periods()) return step;
  const double preview =
      static_cast<double>(stream::kPreviewExamples) + std::max(step.of_unit, 1.0) - 1;
  step.examples =
      std::max(preview, step.of_unit > 0 ? MostOf(mean, step.of_unit) : 2 * MostOf(mean));
  if (participation.period > 0)
    step.examples = std::min(step.examples, static_cast<double>(participation.period));
  return step;
}

train::GpuStepSizes GpuStepOf(const LearnerShape& shape, const LargestStep& step, double untouched,
                              uint64_t rows) {
  double of_example = 0;
  for (const LearnerShape::Table& table : shape.tables) of_example += table.rows_per_example;
  // A GPU numbers examples and their rows with 32 bits.
  const auto counted = [](double number) {
    return static_cast<uint64_t>(std::min<double>(number, UINT32_MAX));
  };
  const double extra = shape.every_row ? 0 : std::max(shape.chosen_rows, MostOf(untouched));
  return {.examples = counted(step.examples),
          .entries = counted(step.examples * of_example),
          .unit_entries = counted(step.of_unit * of_example),
          .extra_rows = std::min(rows, counted(extra)),
          .vocabulary_rows = std::min(rows, counted(shape.vocabulary_rows)),
          .lists_written = !shape.every_row,
          .slots = shape.tables.size(),
          .dense_width = counted(shape.dense_width)};
}

void SetDense(size_t parameters, const train::OptimizerOptions& optimizer, LearnerShape* shape) {
  shape->dense_parameters = static_cast<double>(parameters);
  shape->dense_state =
      static_cast<double>(train::Optimizer(optimizer).DenseStateFloats(parameters));
}

void AddTables(const store::RowLayout& layout, const event::FeatureSchema& schema,
               LearnerShape* shape) {
  const auto tables = layout.space.tables();
  for (uint32_t t = 0; t < tables.size(); ++t) {
    const bool category = t < schema.categorical.size();
    shape->tables.push_back(
        {.rows = static_cast<double>(tables[t].rows),
         .row_bytes = sizeof(float) * layout.RowFloats(t) + kRowOverhead,
         .rows_per_example = category ? static_cast<double>(schema.categorical[t].max_values) : 1});
  }
}

double HistoryBytes(const LearnerShape& shape, uint32_t items_most) {
  constexpr double kBytes = 4 + 2 * 12;  // of an item
  return std::max(shape.batch, shape.period) * items_most * kBytes;
}

// The cells exist as estimate, as released and as served; each worker has the best cells and a
// unit's vector. Where all pairs have room, there are tables of them: the trainer's, the served
// one, and three while the next one is made. Where not, the same scorers have a table of groups
// and some numbers of each item, as each of the server's workers has.
double SparseScorerBytes(uint32_t items) {
  constexpr double kScorers = 3, kItemBytes = 40, kGroupBytes = 64 << 20, kPairBytes = 4;
  const double pairs = static_cast<double>(items) * static_cast<double>(items);
  return kScorers * (kItemBytes * items + std::min(kGroupBytes, kPairBytes * pairs));
}

double TransitionsBytes(const model::transitions::Options& options, uint32_t items,
                        double workers) {
  constexpr double kCellBytes = 80, kWorkerCellBytes = 28, kTables = 5;
  const double pairs = static_cast<double>(items) * static_cast<double>(items);
  const double tables =
      options.IsDense(items) ? kTables * sizeof(float) * pairs : SparseScorerBytes(items);
  return static_cast<double>(options.CellsMost(items)) * (kCellBytes + kWorkerCellBytes * workers) +
         tables;
}

}  // namespace tacit::wiring
