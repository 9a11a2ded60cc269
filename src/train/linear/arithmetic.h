#pragma once

#include <cmath>

#include "base/hash.h"

namespace tacit::train {

// The functions of the C library that a record's numbers go through, from its bytes to its sums,
// or that say how they are scaled. Their last digits differ between libraries.
struct LibraryFunctions {
  double (*exp)(double) = std::exp;
  double (*log)(double) = std::log;      // of a loss
  double (*log1p)(double) = std::log1p;  // of a number as it is read
  float (*log1pf)(float) = std::log1p;   // of a number that goes to a bin
  double (*pow)(double, double) = std::pow;
};

// A digest of how this process computes: these functions at 4,096 inputs, and a part of 4,096
// events, predicted and summed up. Processes whose digests are equal are taken to sum up equal
// parts.
Digest ArithmeticDigest(const LibraryFunctions& functions = {});

}  // namespace tacit::train
