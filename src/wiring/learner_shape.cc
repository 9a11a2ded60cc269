#include "wiring/learner_shape.h"

#include "model/sequence/layout.h"
#include "train/optimizer.h"

namespace tacit::wiring {
namespace {

// Returns the number of examples in a held period. If files close it, their length is unknown
// before they are read; but `batch` is the configured sampling rate's share of a period.
double PeriodOf(const config::Participation& participation) {
  if (participation.mode != config::Participation::Mode::kPoisson) return 0;
  if (participation.period > 0) return static_cast<double>(participation.period);
  return static_cast<double>(participation.batch) / participation.sampling_rate;
}

void SetDense(size_t parameters, const train::OptimizerOptions& optimizer, LearnerShape* shape) {
  shape->dense_parameters = static_cast<double>(parameters);
  shape->dense_state =
      static_cast<double>(train::Optimizer(optimizer).DenseStateFloats(parameters));
}

// Bytes of a sequence model beside its dense parameters and their state, serving included. Each
// worker has an integer sum and the gradient of the unit at hand. Workers share the output table,
// prepared for two products. The served state and the next one exist together.
double SequenceBytes(double parameters, double workers) {
  constexpr double kWorker = sizeof(int64_t) + sizeof(float);
  constexpr double kPrepared = 2 * sizeof(float), kServed = 2 * sizeof(float);
  return parameters * (kWorker * workers + kPrepared + kServed);
}

// Bytes of the histories of a step's or a period's users, at most one per record: the ones learnt
// from, and the ones in the commit that stores them.
double HistoryBytes(const LearnerShape& shape, const train::RecentHistoriesOptions& histories) {
  constexpr double kItemBytes = 4 + 2 * 12;
  return std::max(shape.batch, shape.period) * histories.items_most * kItemBytes;
}

void FillNextItem(const LearnerPlan& plan, double workers, LearnerShape* shape) {
  shape->input_width = 4;  // an item and its time, twice
  if (plan.sequence) {
    const train::SequenceTrainingOptions& training = plan.sequence->training;
    SetDense(model::SequenceLayout(training.model).size(), training.optimizer, shape);
    shape->other_bytes = SequenceBytes(shape->dense_parameters, workers) +
                         HistoryBytes(*shape, plan.sequence->histories);
    return;
  }
  const train::TransitionsLearnerOptions& counts = *plan.transitions;
  shape->other_bytes = TransitionsBytes(counts.model, counts.catalogue->items(), workers) +
                       HistoryBytes(*shape, counts.histories);
}

void FillTables(const LearnerPlan& plan, const event::FeatureSchema& schema, LearnerShape* shape) {
  const store::RowLayout layout = RowLayoutOf(plan);
  const auto tables = layout.space.tables();
  for (uint32_t t = 0; t < tables.size(); ++t)
    shape->tables.push_back(
        {.rows = static_cast<double>(tables[t].rows),
         .row_bytes = sizeof(float) * layout.RowFloats(t) + kRowOverhead,
         .rows_per_example = static_cast<double>(schema.categorical[t].max_values)});
}

void FillClicks(const LearnerPlan& plan, const config::Mechanism& mechanism,
                const event::FeatureSchema& schema, LearnerShape* shape) {
  const model::PctrOptions& options = plan.options.model;
  SetDense(ShapeModel(options).model.dense_size(), plan.options.optimizer, shape);
  FillTables(plan, schema, shape);
  shape->input_width = options.dense_width;
  for (const RowSpace::Table& table : options.space.tables()) shape->input_width += table.dim;
  shape->width_total = shape->input_width + 1;
  for (const uint32_t width : options.hidden) shape->width_total += width;

  shape->every_row = mechanism.traits().every_row;
  if (mechanism.has_vocabulary())
    shape->chosen_rows += static_cast<double>(mechanism.vocabulary.keep);
  if (mechanism.traits().keys.has("rows"))
    shape->chosen_rows += static_cast<double>(mechanism.rows);
  if (mechanism.observes_periods())
    shape->observed_rows = static_cast<double>(options.space.rows());
}

}  // namespace

store::RowLayout RowLayoutOf(const LearnerPlan& plan) {
  if (plan.sequence) return train::MakeRowLayout(plan.sequence->training);
  if (plan.transitions) return store::RowLayout();
  return train::MakeRowLayout(plan.options, ShapeModel(plan.options.model).model);
}

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

LearnerShape ShapeOf(const Assembly& assembly, size_t index) {
  const config::Learner& learner = assembly.config.learners[index];
  const LearnerPlan& plan = assembly.learners[index];
  LearnerShape shape;
  shape.batch = static_cast<double>(learner.participation.batch);
  shape.period = PeriodOf(learner.participation);
  if (plan.recommends())
    FillNextItem(plan, assembly.config.training.workers, &shape);
  else
    FillClicks(plan, learner.mechanism, assembly.transform->schema(), &shape);
  return shape;
}

// The cells exist as estimate, as released and as served; each worker has the best cells and a
// unit's vector. Where all pairs have room, there are tables of them: the trainer's, the served
// one, and three while the next one is made.
double TransitionsBytes(const model::transitions::Options& options, uint32_t items,
                        double workers) {
  constexpr double kCellBytes = 80, kWorkerCellBytes = 28, kTables = 5;
  const double pairs = static_cast<double>(items) * static_cast<double>(items);
  const double tables = options.IsDense(items) ? kTables * sizeof(float) * pairs : 0;
  return static_cast<double>(options.CellsMost(items)) * (kCellBytes + kWorkerCellBytes * workers) +
         tables;
}

}  // namespace tacit::wiring
