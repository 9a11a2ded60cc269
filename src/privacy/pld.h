#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "privacy/charge.h"
#include "privacy/event.h"

namespace tacit::privacy {

// Certified bounds: the exact value for the events' dominating pairs lies within.
struct CertifiedInterval {
  double lower = 0;
  double upper = 0;
};

// The privacy-loss-distribution accountant: any mix of events, added at any time, asked for
// epsilon(delta) or delta(epsilon) at any time.
//
// Each event is replaced by its dominating pair: exact for the Gaussian, the Poisson-sampled
// Gaussian and Laplace noise; randomized response for what is known as (epsilon, 0)-DP, the
// exponential mechanism included. `upper` is what is promised. `lower` says how tight that is: no
// accountant of these pairs can go below it. For zCDP events, whose pair is not one distribution
// but the curve delta(epsilon) that rho-zCDP implies, `lower` is that of the Gaussian mechanism.
//
// Adjacency: add-or-remove takes the greater of both directions (zero-out is bounded by it);
// replace-one has the Poisson-sampled Gaussian replace a row of norm 1 by its opposite, so that at
// rate 1 it is a Gaussian of twice the sensitivity. All other events are stated for the adjacency
// asked about.
//
// How: each loss is put on a lattice fitted to the composed loss, from above and from below, with
// errors of second order; laws are tilted by e^(c L) at the saddle point of the question and
// composed by multiplying their Fourier transforms; the inverse transform is taken only at the
// points asked for. Discretisation, wrapping, cut-off and rounding are all inside the bounds; the
// tilt keeps the relative precision of a delta of 1e-14 that of one near 1. Ledgers of Gaussians
// only, and single events, are answered in closed form. See README.md.
//
// Not thread-safe. Questions are not const because they keep what they computed: one more event of
// a known kind and a new epsilon cost well under a millisecond.
class PldAccountant {
 public:
  explicit PldAccountant(Adjacency adjacency);
  ~PldAccountant();
  PldAccountant(PldAccountant&&) noexcept;
  PldAccountant& operator=(PldAccountant&&) noexcept;

  // Adds an event made `count` times. kInvalidArgument, and nothing added, for an event out of its
  // domain and for a Poisson-sampled Gaussian with a noise multiplier below 0.05.
  Status Add(const Event& event, uint64_t count);

  // Epsilon, never negative, at 0 < delta < 1; delta at epsilon >= 0. kRefused where there are so
  // many events (about 1e11) that rounding could decide the answer; kInvalidArgument for a delta
  // below 1e-100 and for mixes too uneven to be put on one lattice.
  Result<CertifiedInterval> Epsilon(Delta delta);
  // An upper bound alone, which Epsilon's will not exceed if this accountant was asked nothing
  // else: cheaper where tails are heavy.
  Result<double> UpperEpsilon(Delta delta);
  Result<CertifiedInterval> DeltaAt(double epsilon);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The upper bound alone, of all these events together: what calibration asks. A hint from a
// question nearby (not null) saves time, and is brought up to date; it never changes what is true.
struct PldHint {
  double epsilon = 0, slope = 0;
};
Result<double> PldUpperEpsilon(std::span<const CountedEvent> events, Adjacency adjacency,
                               Delta delta, std::optional<PldHint>* hint = nullptr);
Result<double> PldUpperEpsilon(const Event& event, uint64_t count, Adjacency adjacency, Delta delta,
                               std::optional<PldHint>* hint = nullptr);
// A guess at the latter within a few per cent, in microseconds. NOT a bound.
double PldRoughEpsilon(const Event& event, uint64_t count, Adjacency adjacency, Delta delta);

}  // namespace tacit::privacy
