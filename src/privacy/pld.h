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

namespace pld {
class AllocationBook;
}

// Laws of allocations, which take a tenth of a second each, for accountants that are asked about
// the same ones. They change no answer. Not thread-safe: for the accountants of one thread.
using Laws = std::shared_ptr<pld::AllocationBook>;
Laws MakeLaws();

// Certified bounds: the exact value for the events' dominating pairs lies between them.
struct CertifiedInterval {
  double lower = 0;
  double upper = 0;
};

// The privacy-loss-distribution accountant. Takes any mix of events, at any time, and answers
// epsilon(delta) or delta(epsilon) at any time.
//
// Each event is replaced by its dominating pair: exact for the Gaussian, the Poisson-sampled
// Gaussian and Laplace noise; randomized response for (epsilon, 0)-DP events, including the
// exponential mechanism; the mixture over its steps for an allocation, certified between two laws
// of its likelihood ratio (allocation.md). `upper` is the promise. `lower` shows how tight it is:
// no accountant of these pairs can go below it. For zCDP events, whose pair is not one distribution
// but the curve delta(epsilon) that rho-zCDP implies, `lower` is that of the Gaussian mechanism.
//
// Adjacency: add-or-remove takes the greater of both directions (zero-out is bounded by it).
// Replace-one lets the Poisson-sampled Gaussian replace a row of norm 1 by its opposite, so that at
// rate 1 it is a Gaussian of twice the sensitivity. Allocations are refused there. All other events
// are stated for the question's adjacency.
//
// Method: each loss is put on a lattice fitted to the composed loss, from above and from below,
// with errors of second order; laws are tilted by e^(c L) at the saddle point of the question and
// composed by multiplying their Fourier transforms; the inverse transform is taken only at the
// points asked for. The bounds include discretisation, wrapping, cut-off and rounding. Thanks to
// the tilt, a delta of 1e-14 is as precise, relatively, as one near 1. Ledgers of Gaussians only,
// and single events, are answered in closed form. See docs/internals/privacy.md.
//
// Not thread-safe. The query methods are not const because they cache results: one more event of a
// known kind and a new epsilon cost well under a millisecond.
class PldAccountant {
 public:
  // `laws` may be null; then it makes its own.
  explicit PldAccountant(Adjacency adjacency, Laws laws = nullptr);
  ~PldAccountant();
  PldAccountant(PldAccountant&&) noexcept;
  PldAccountant& operator=(PldAccountant&&) noexcept;

  // Adds an event made `count` times. Returns kInvalidArgument, with nothing added, for an event
  // out of its domain, for a sampled Gaussian with a noise multiplier below 0.05 or above 1e100,
  // and for an allocation with one below 0.2 or above 1000 or under replace-one.
  Status Add(const Event& event, uint64_t count);

  // Epsilon, never negative, at 0 < delta < 1; delta at epsilon >= 0. Returns kRefused for more
  // events (about 1e11) than rounding allows, and where the arithmetic of an upper
  // bound fails or contradicts the lower one; kInvalidArgument for a delta below 1e-100 and for
  // mixes too uneven for one lattice. An upper bound of 0 is certified like every other.
  Result<CertifiedInterval> Epsilon(Delta delta);
  // An upper bound alone. It is at least Epsilon's if this accountant was asked nothing else, and
  // cheaper where tails are heavy.
  Result<double> UpperEpsilon(Delta delta);
  Result<CertifiedInterval> DeltaAt(double epsilon);
  // The mu of all events together, if they are Gaussians in every direction.
  std::optional<double> Mu() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The upper bound alone, for all these events together; used by calibration. A hint from a nearby
// question (not null) saves time and is updated; it never affects correctness. Nor do `laws`.
struct PldHint {
  double epsilon = 0, slope = 0;
};
Result<double> PldUpperEpsilon(std::span<const CountedEvent> events, Adjacency adjacency,
                               Delta delta, std::optional<PldHint>* hint = nullptr,
                               const Laws& laws = nullptr);
Result<double> PldUpperEpsilon(const Event& event, uint64_t count, Adjacency adjacency, Delta delta,
                               std::optional<PldHint>* hint = nullptr);
// A guess at PldUpperEpsilon within a few per cent, in microseconds. NOT a bound.
double PldRoughEpsilon(const Event& event, uint64_t count, Adjacency adjacency, Delta delta);

}  // namespace tacit::privacy
