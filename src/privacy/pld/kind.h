#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "privacy/pld/loss_law.h"

// Rough numbers for choosing a composition's tilt, window and lattice. None of them enters a bound:
// a bad guess costs tightness or time, never truth.
namespace tacit::privacy::pld {

// One kind of event in one direction.
struct Kind {
  Event event;
  std::unique_ptr<LossLaw> law;
  std::vector<PilotPoint> pilot;

  Kind(const Event& of, Direction direction, const LawSource& source = {});
};

struct Counted {
  const Kind* kind = nullptr;
  double count = 0;
  double cap = std::numeric_limits<double>::infinity();  // losses above are left out
};

// Caps the losses so that at most a share of 2e-5 of delta is above, over all events. Heavy tails
// would keep the tilt from reaching the region that decides delta.
double TailFor(std::span<const Counted> events, double log_delta);
void Cap(std::span<Counted> events, double log_delta);

// The cumulant generating function of the composed loss under P, log E[e^(c L)], and its first two
// derivatives: mean and variance of the loss under the tilted law.
struct Cumulants {
  double log_moment = 0, mean = 0, variance = 0;
};
Cumulants CumulantsAt(const Counted& one, double tilt);  // of one kind
Cumulants CumulantsAt(std::span<const Counted> events, double tilt);

// The least delta that is asked about.
inline constexpr double kLeastDelta = 1e-100;
// The error of epsilon that a plan aims at.
double Accuracy(double epsilon);
// The greatest tilt that is of use, which is the greatest slope of -log delta that matters: it
// makes the least delta out of 1 within that error. Losses that have a greatest value ask for more
// near it.
double SteepestAt(double epsilon);

// The approximate point on the real line, with its epsilon and delta, where Chernoff's bound is:
// the least value of the integrand of
//   delta(epsilon) = 1 / (2 pi i) * integral of e^(Lambda(s) - s epsilon) / (s (s + 1)) ds.
struct Saddle {
  double tilt = 0;
  double epsilon = 0;
  double log_delta = 0;
  Cumulants cumulants;
};
Saddle SaddleForDelta(std::span<const Counted> events, double log_delta);
Saddle SaddleForEpsilon(std::span<const Counted> events, double epsilon);

}  // namespace tacit::privacy::pld
