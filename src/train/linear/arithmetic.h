#pragma once

#include <cmath>

#include "base/hash.h"

namespace tacit::train {

// The functions of the C library whose last digits differ between libraries.
struct LibraryFunctions {
  double (*exp)(double) = std::exp;
  double (*log1p)(double) = std::log1p;
};

// A digest of how this process computes: these functions at 4,096 inputs, and a part of 4,096
// events, predicted and summed up. Processes whose digests are equal are taken to sum up equal
// parts.
Digest ArithmeticDigest(const LibraryFunctions& functions = {});

}  // namespace tacit::train
