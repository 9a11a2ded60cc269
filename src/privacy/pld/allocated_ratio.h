#pragma once

#include <cstdint>
#include <optional>

#include "privacy/pld/atoms.h"

namespace tacit::privacy::pld {

// The likelihood ratio L = dP/dQ of one allocation, under Q: the mean of t independent factors U
// (lognormal.h). Bounded from both sides in convex order, so that
//   E (L - e^eps)+ and E (1 - e^eps L)+,
// the deltas of either direction, are bounded by the same two laws. privacy/allocation.md has the
// proof. A value.
struct RatioLaw {
  Atoms atoms;  // values of L
  // The price of cutting the upper law: mass of an infinite loss, under P and under Q.
  double infinite_if_removed = 0, infinite_if_added = 0;
};
struct AllocatedRatio {
  RatioLaw upper, lower;
};

// The least mass that a law need tell from none.
inline constexpr double kLeastTail = 1e-22;

// The settings of the computation.
struct RatioRequest {
  double noise_multiplier = 1;
  int64_t steps = 1;
  // Mass that may be cut off and paid for: deltas well above it are tight.
  double tail = kLeastTail;
};
// By doubling: sums of 2, 4, 8, ... factors, each put into cells. Takes any noise.
AllocatedRatio RatioByDoubling(const RatioRequest& request);
// By Fourier transforms of small factors, beside which few are large. Nothing where the lattice
// would be too long, as for little noise and few steps.
std::optional<AllocatedRatio> RatioByTransform(const RatioRequest& request);
// By the way that suits.
AllocatedRatio MakeAllocatedRatio(const RatioRequest& request);

}  // namespace tacit::privacy::pld
