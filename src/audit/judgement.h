#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "audit/one_run.h"
#include "base/result.h"
#include "privacy/event.h"

// Holds what was seen of a mechanism, run again and again in two worlds, against its charge.
namespace tacit::audit {

// The ln of a likelihood ratio of each run, in the order in which they were made: large where the
// canary was in it. (Any other statistic is judged rightly too, and sees less.)
struct RunStatistics {
  std::vector<double> without, with;
};

// The most that a charge allows anybody, read off the certified curve.
struct Allowed {
  double mu = 0, epsilon = 0;  // at the delta; of sampled steps mu is that of a Gaussian
  double area = 1, accuracy = 1, found_1_in_100 = 1, found_1_in_1000 = 1;
  bool gaussian = false;  // the curve is that of mu
};
// Without events, everything is allowed.
Result<Allowed> AllowedBy(std::span<const privacy::CountedEvent> events, double delta);

// True if this many right guesses in one run are impossible under the certified curve of this
// charge, except with a probability of alpha. REQUIRES events.
Result<bool> RefutedInOneRun(std::span<const privacy::CountedEvent> events, const Guesses& guesses,
                             double alpha);

struct JudgedRuns {
  double delta = 0;
  // By the charge, certified; and below which all is refuted, both at delta. Of sampled steps mu is
  // that of the Gaussian with the same epsilon at delta.
  double charged_mu = 0, charged_epsilon = 0;
  double proved_mu = 0, proved_epsilon = 0;
  // The bound of how much more often the canary is said to be there where it is: of as many runs in
  // one world as in the other, those told right are no more than a binomial number's (Hoeffding,
  // 1956), so that Clopper and Pearson's bound of their share holds.
  double advantage_lower = 0;
  // The bounds of the two rates at which another threshold spoke.
  double found_lower = 0, false_alarms_upper = 0;
  // True where these rates are impossible under the certified curve.
  bool exceeds = false;
  // Seen on the judging runs, without confidence; and what the charge allows.
  double area = 0;
  double found_1_in_100 = 0, found_1_in_1000 = 0, accuracy = 0;
  double allowed_1_in_100 = 1, allowed_1_in_1000 = 1, allowed_accuracy = 1, allowed_area = 1;
};

// The first `runs_of_choice` runs of each world choose two thresholds, the others judge by them:
// the one that tells most runs right, and one whose rates prove most. The bounds share alpha. The
// result is false with probability alpha at most. Sampled and allocated steps are refuted as a
// family: with this rate and number of steps and so much noise, or more. REQUIRES Gaussians,
// sampled Gaussians and allocations, and
// as many runs of both worlds, to choose by and to judge by.
Result<JudgedRuns> JudgeRuns(const RunStatistics& runs, uint64_t runs_of_choice,
                             std::span<const privacy::CountedEvent> events, double delta,
                             double alpha);

}  // namespace tacit::audit
