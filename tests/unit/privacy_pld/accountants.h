#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "privacy/pld.h"

namespace tacit::privacy::testing {

// Tables are long: every `stride`-th row unless TACIT_FULL_GOLDEN asks for all.
inline size_t Stride(size_t stride) {
  return std::getenv("TACIT_FULL_GOLDEN") != nullptr ? 1 : stride;
}

inline CertifiedInterval SampledEpsilon(double sigma, double rate, double steps, double delta,
                                        Adjacency adjacency = Adjacency::kAddRemove) {
  PldAccountant accountant(adjacency);
  EXPECT_TRUE(accountant.Add(Event::PoissonGaussian(sigma, rate), static_cast<uint64_t>(steps)));
  auto epsilon = accountant.Epsilon(Delta(delta));
  EXPECT_TRUE(epsilon) << (epsilon ? "" : epsilon.error().message);
  return epsilon.value_or(CertifiedInterval{-1, -1});
}

// Checks the product's promise against a reference value: at most 0.1 % below it, a lower bound not
// above it, and the two at most 0.2 % + 1e-6 apart.
inline void ExpectTightAround(double reference, const CertifiedInterval& found,
                              const std::string& what) {
  EXPECT_GE(found.upper, reference * (1 - 1e-3)) << what;
  EXPECT_LE(found.upper, reference * (1 + 2e-3) + 1e-6) << what;
  EXPECT_LE(found.lower, reference) << what;
  EXPECT_LE(found.upper - found.lower, 2e-3 * found.upper + 1e-6) << what;
  EXPECT_GE(found.lower, 0) << what;
  EXPECT_LE(found.lower, found.upper) << what;
}

}  // namespace tacit::privacy::testing
