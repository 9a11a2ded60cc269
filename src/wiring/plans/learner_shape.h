#pragma once

#include <cstdint>
#include <vector>

#include "config/config.h"
#include "event/schema.h"
#include "model/transitions/options.h"
#include "store/types/delta.h"
#include "train/engines/gpu_step.h"
#include "train/optimizer/optimizer.h"

// The sizes of one learner, as its layouts state them.
namespace tacit::wiring {

// The bytes of a cached row beside its floats: its key, links and hash slot.
inline constexpr double kRowOverhead = 64;
// The numbers of an example of a next-item learner: an item and its time, twice.
inline constexpr double kItemInputs = 4;

// The sizes of a learner's state and step. They are doubles, so that a product of extreme settings
// comes out as too much and does not wrap around.
struct LearnerShape {
  struct Table {
    double rows = 0;
    double row_bytes = 0;         // embedding and optimiser state, as cached
    double rows_per_example = 0;  // at most
  };

  double workers = 1;
  double batch = 0;
  double queued = 0;            // examples of a step that are held at once: all, or those of a part
  double period = 0;            // examples held until their period is closed
  double input_width = 0;       // numbers into the first layer
  double dense_width = 0;       // of them an example's own, which are no embeddings
  double dense_parameters = 0;  // weights and biases
  double dense_state = 0;       // the optimiser's floats for all of them
  double width_total = 0;       // inputs and outputs of all layers, per example
  double observed_rows = 0;     // rows of the id space, if its histogram is kept
  bool has_examples = false;    // a step is made of examples, not of users' histories
  bool every_row = false;       // each step writes the whole id space
  double chosen_rows = 0;       // rows without any example that a step may write
  double vocabulary_rows = 0;   // of them those of a vocabulary
  double sums_bytes = 0;        // of a period's open sums
  double part_bytes = 0;        // of sums that another process has sent, read
  double other_bytes = 0;       // more bytes, that are of one kind of model alone
  double gpu_wave_bytes = 0;    // of a sequence model's steps on their way to a GPU
  double pinned_bytes = 0;      // of memory that a GPU copies from and to, those included
  double state_bytes = 0;       // of what one version's recommendations are made from
  std::vector<Table> tables;

  // Returns the bytes of the distinct rows that this many steps can touch.
  double RowBytes(double steps) const;
  // The floats of a commit's dense blob.
  double DenseFloats() const { return dense_parameters + dense_state; }
};

// The largest value where the parts of a step vary by chance around this mean, each by `of_each` at
// most: 8 standard deviations above it, which no stream of steps reaches.
double MostOf(double mean, double of_each = 1);

// The largest step that memory is taken for, in examples. Under `once` a step has no more than its
// batch. A held period's steps vary by chance, and its previews are of a size of their own; none
// has more than the period. Where a user's records have no bound, steps twice as large as expected
// are planned for: a larger one takes memory when it comes.
struct LargestStep {
  double examples = 0;
  double of_unit = 1;  // at most; 0: any number
};
LargestStep LargestStepOf(const config::Participation& participation, bool of_users);

// Its sizes on a GPU, for a click model. `untouched` is ModelPlan::UntouchedRows, `rows` the number
// of all rows.
train::GpuStepSizes GpuStepOf(const LearnerShape& shape, const LargestStep& step, double untouched,
                              uint64_t rows);

void SetDense(size_t parameters, const train::OptimizerOptions& optimizer, LearnerShape* shape);
// Appends the tables of a layout; the first ones are the schema's categories, and an example has
// one value in any other.
void AddTables(const store::RowLayout& layout, const event::FeatureSchema& schema,
               LearnerShape* shape);

// The bytes of the histories of a step's or a period's users, at most one per record: the ones
// learnt from, and the ones in the commit that stores them.
double HistoryBytes(const LearnerShape& shape, uint32_t items_most);

// The bytes of scorers of counts without a table of all pairs, beside their cells: the trainer's,
// the served one and the next one.
double SparseScorerBytes(uint32_t items);

// The bytes of a model of counts over this many items, serving included, with this many workers.
double TransitionsBytes(const model::transitions::Options& options, uint32_t items, double workers);

}  // namespace tacit::wiring
