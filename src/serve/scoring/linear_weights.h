#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/linear/columns.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// One weight of a linear model, as it was released.
struct LinearWeight {
  uint32_t column = 0;
  uint64_t row = 0;  // of the model's id space
  double weight = 0;
  double deviation = 0;  // of the weight, by the model's own variance
  double events = 0;     // noised counts of the releases that moved it, added up
  uint32_t period = 0;   // the release that moved it last, from 1
};

// The largest weights by absolute value, of one column or of all. Reads every written row of the
// columns; keeps `most`.
struct WeightsAsked {
  std::string column;  // if empty, all
  size_t most = 20;
};
Result<std::vector<LinearWeight>> LargestWeights(const store::Snapshot& snapshot,
                                                 LearnerIndex learner,
                                                 const model::linear::Columns& columns,
                                                 const WeightsAsked& asked);

}  // namespace tacit::serve
