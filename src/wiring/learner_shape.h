#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "model/pctr.h"
#include "model/transitions/options.h"
#include "ops/backend.h"
#include "store/delta.h"
#include "wiring/assembly.h"

// The sizes of one learner, as its layouts state them.
namespace tacit::wiring {

// The bytes of a cached row beside its floats: its key, links and hash slot.
inline constexpr double kRowOverhead = 64;

// A click model that only reports its shape.
struct ShapeModel {
  std::unique_ptr<ops::Backend> backend = ops::MakeReferenceBackend();
  model::Pctr model;
  explicit ShapeModel(const model::PctrOptions& options) : model(options, *backend) {}
};

// The layout of a learner's rows in the store; without tables for models of the next item.
store::RowLayout RowLayoutOf(const LearnerPlan& plan);

// The sizes of a learner's state and step. They are doubles, so that a product of extreme settings
// comes out as too much and does not wrap around.
struct LearnerShape {
  struct Table {
    double rows = 0;
    double row_bytes = 0;         // embedding and optimiser state, as cached
    double rows_per_example = 0;  // at most
  };

  double batch = 0;
  double period = 0;            // examples held until their period is closed
  double input_width = 0;       // numbers into the first layer
  double dense_parameters = 0;  // weights and biases
  double dense_state = 0;       // the optimiser's floats for all of them
  double width_total = 0;       // inputs and outputs of all layers, per example
  double observed_rows = 0;     // rows of the id space, if its histogram is kept
  bool every_row = false;       // each step writes the whole id space
  double chosen_rows = 0;       // rows without any example that a step may write
  double other_bytes = 0;       // more bytes of a model of the next item
  std::vector<Table> tables;

  // Returns the bytes of the distinct rows that this many steps can touch.
  double RowBytes(double steps) const;
  // The floats of a commit's dense blob.
  double DenseFloats() const { return dense_parameters + dense_state; }
};

// The shape of the learner at this place in the assembly. REQUIRES assembly.config.
LearnerShape ShapeOf(const Assembly& assembly, size_t index);

// The bytes of a model of counts over this many items, serving included, with this many workers.
double TransitionsBytes(const model::transitions::Options& options, uint32_t items, double workers);

}  // namespace tacit::wiring
