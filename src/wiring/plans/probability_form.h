#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "event/schema.h"
#include "model/linear/columns.h"

namespace tacit::wiring {

// The way from an example's values to its probability, for tools that write a click model down for
// other programs. A value.
//
// The network: the rows of all columns side by side, the numbers after them, the dense tensors as
// layers with ReLU between them. The sum: `bias` and a weight for each column. A logistic function
// ends both.
struct ProbabilityForm {
  struct Column {
    enum class Kind {
      kValue,  // one row of the table
      kSet,    // any number of rows, at least one: their sum; in a sum of weights, over sqrt(m)
      kBin,    // the row of a number's bin
      kCross,  // row a * second_rows + b of the values a and b of two columns
    };
    Kind kind = Kind::kValue;
    size_t first = 0, second = 0;  // kCross
    uint64_t second_rows = 0;      // kCross
  };

  bool network = false;
  std::vector<Column> columns;               // of the tables, in their order
  std::vector<event::DenseFeature> numbers;  // of the input, or of the bins
  // The network's alone.
  double input_clip = 0;  // the input is scaled down to this length; 0: it is not
  bool rounds = false;    // the daemon computes in bf16
  // The sum's alone.
  double bias = 0;
  model::linear::Bins bins = {};
};

}  // namespace tacit::wiring
