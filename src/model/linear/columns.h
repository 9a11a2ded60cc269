#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/row_space.h"

// The linear click model: one weight for each value of each column, and a bias
// (docs/internals/model.md, linear).
namespace tacit::model::linear {

// Cuts numbers into values. z = sign(x) ln(1 + |x|) of a number x lies in the bin
// floor(z / width); numbers beyond the outermost bins belong to those. A missing number has a value
// of its own. The edges are public constants. A value.
struct Bins {
  double width = 0.45;
  int32_t lowest = -3, highest = 35;  // from below -1.46 to 6,900,000 and more

  // The number of values: one for missing, then one a bin, ascending.
  uint32_t values() const { return static_cast<uint32_t>(highest - lowest) + 2; }
  // The value of a number x from which the logarithm was taken (z); -0 and NaN stand for missing.
  uint32_t Of(float z) const;
  // The least number x of a value; minus infinity for the lowest bin. REQUIRES 0 < value <
  // values().
  double LeastOf(uint32_t value) const;
};

struct CategoryColumn {
  std::string name;
  uint64_t rows = 0;
  bool set = false;  // an example has any number of its values
};
struct NumberColumn {
  std::string name;
  // The input is x, and the column takes the logarithm; else the input is z already.
  bool take_logarithm = false;
};

// A column whose value is the pair of two other columns' values, so that what the two do together
// has a weight of its own. Both have one value for each example.
struct CrossColumn {
  std::string name;
  size_t first = 0, second = 0;  // columns: categories, then numbers
};

// A batch's inputs as the network's learner sees them: views, nothing owned.
struct Inputs {
  size_t examples = 0;
  std::span<const float> numbers;      // examples x number columns
  std::span<const uint32_t> slot_end;  // examples x category columns: end in `row` of each slot
  std::span<const uint64_t> row;
};

// The values of examples: value k of column j of example i is row[Begin(i, j) + k].
struct ValueRuns {
  size_t columns = 0;
  std::vector<uint64_t> row;
  std::vector<uint32_t> end;  // examples x columns
  bool one_each = true;       // every run is of one value

  size_t examples() const { return columns == 0 ? 0 : end.size() / columns; }
};

// The columns of a linear model and the id space of their values: the tables of the categories,
// in the order and with the rows of the network's space, then a table for each column of numbers,
// then one for each cross, with a row for each pair of values. All have dimension 1. Immutable;
// thread-safe.
class Columns {
 public:
  // A cross of two columns, as numbers: they make row `first_row + a * second_rows + b` of the
  // values a and b.
  struct Cross {
    size_t first = 0, second = 0;
    uint64_t second_rows = 0, first_row = 0;

    uint64_t RowOf(uint64_t a, uint64_t b) const { return first_row + a * second_rows + b; }
  };

  // REQUIRES at least one column, bins of a positive width, and crosses of two different columns
  // that are no sets.
  Columns(std::vector<CategoryColumn> categories, std::vector<NumberColumn> numbers, Bins bins = {},
          std::vector<CrossColumn> crosses = {});

  size_t size() const { return space_.tables().size(); }
  size_t categories() const { return sets_.size(); }
  size_t numbers() const { return take_logarithm_.size(); }
  std::span<const Cross> crosses() const { return crosses_; }
  const RowSpace& space() const { return space_; }
  const Bins& bins() const { return bins_; }
  // An example may have any number of values in the column; it has exactly one in any other.
  bool IsSet(size_t column) const { return column < sets_.size() && sets_[column] != 0; }
  bool IsNumber(size_t column) const {
    return column >= categories() && column < categories() + numbers();
  }
  // The cross that is this column, or null.
  const Cross* CrossOf(size_t column) const {
    const size_t before = categories() + numbers();
    return column < before ? nullptr : &crosses_[column - before];
  }

  // Replaces `runs` (whose memory is reused) by the values of the examples. REQUIRES inputs of
  // these columns: rows of the categories' tables, each in its slot.
  void Read(const Inputs& inputs, ValueRuns* runs) const;
  // Replaces `values` by the numbers' values in their columns. REQUIRES the numbers of whole
  // examples, one after the other.
  void ReadNumbers(std::span<const float> numbers, std::span<uint32_t> values) const;

 private:
  const Bins bins_;
  std::vector<uint8_t> sets_;            // per category column
  std::vector<uint8_t> take_logarithm_;  // per number column
  bool takes_logarithms_ = false;        // in any of them
  std::vector<Cross> crosses_;
  RowSpace space_;
};

}  // namespace tacit::model::linear
