#pragma once

#include <cstddef>

namespace tacit::model::linear {

// The floats of a value's row: its weight, then its state.
enum RowFloat : size_t {
  kWeight,
  kVariance,  // of the weight
  kMove,      // of the last release that moved it
  kPeriod,    // that release's number, from 1; a count as base/moving_average.h stores it
  kEvents,    // the sum of its noised counts in the releases that moved it
  kError,     // the variance of the weight's error, as far as releases tell
  kRowFloats
};

}  // namespace tacit::model::linear
