#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/linear/columns.h"
#include "model/linear/update.h"

namespace tacit::model::linear {

// All of a linear model but its weights: released numbers and what was made of them. A value.
struct State {
  uint64_t periods = 0;  // released
  double bias = 0;
  double rate = 0;            // eta of the last period; 0 before the first
  std::vector<Prior> priors;  // per column

  // The stored form (docs/internals/model.md, Formats).
  std::string Encode(const Columns& columns) const;
  // Returns kCorruption for bytes that are no state of these columns.
  static Result<State> Decode(std::string_view bytes, const Columns& columns);
  // The same of this number of columns and values.
  static Result<State> Decode(std::string_view bytes, uint64_t values, size_t columns);
};

}  // namespace tacit::model::linear
