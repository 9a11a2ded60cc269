#pragma once

#include <cstdint>
#include <vector>

#include "event/schema.h"
#include "model/transitions/options.h"
#include "store/delta.h"
#include "train/optimizer.h"

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
  double other_bytes = 0;       // more bytes, that are of one kind of model alone
  double pinned_bytes = 0;      // of memory that a GPU copies from and to
  double state_bytes = 0;       // of what one version's recommendations are made from
  std::vector<Table> tables;

  // Returns the bytes of the distinct rows that this many steps can touch.
  double RowBytes(double steps) const;
  // The floats of a commit's dense blob.
  double DenseFloats() const { return dense_parameters + dense_state; }
};

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
