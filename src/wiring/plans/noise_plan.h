#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "privacy/charge.h"
#include "privacy/event.h"
#include "privacy/pld.h"

// Computes the noise that a learner's step needs for its promise, given the participation.
namespace tacit::wiring {

// Smaller noise does not fit a grid, and would hide nothing; larger noise leaves nothing to learn.
inline constexpr double kNoiseLeast = 1e-3, kNoiseMost = 1e6;

// The participation that the noise of a step must cover.
struct Exposure {
  bool sampled = false;
  uint64_t steps = 1;    // steps that one unit is in, or eligible for
  uint64_t periods = 0;  // held periods that one unit is in
  privacy::Draw draw = {};
  std::string text = {};
};

// With held periods and unit user: the number of periods that the allowance lets a user be in.
uint64_t PeriodsOfUser(const config::Participation& participation);

// The draw by which a step of this participation takes its units.
privacy::Draw DrawOf(const config::Participation& participation);

// Read off a learner's configuration once, for its plan, and handed down (PlanParts).
Exposure ExposureOf(const config::Learner& learner, const config::Source& source);

// Releases besides the steps that a unit takes part in, at a fixed price: e.g. a histogram per
// period.
using Beside = std::vector<privacy::CountedEvent>;

// The number of opening releases that a unit in this many periods pays for. A mechanism that learns
// its vocabulary from the first period releases once, and the worst unit is in that period.
uint64_t Openings(const config::Mechanism& mechanism, uint64_t periods);

// The releases besides the steps' Gaussian noise: `opening`, `openings` times, and the zCDP of
// what no sampling amplifies, in each of `steps` steps.
Beside BesideSteps(const std::optional<privacy::Charge>& opening, uint64_t openings,
                   double zcdp_rho, uint64_t steps);

// Epsilon of steps with this noise, together with `beside`; infinite without noise.
Result<double> EpsilonAt(double noise, const Exposure& exposure, double delta,
                         const Beside& beside = {});

// Epsilon of `beside` alone. Above the share kBesideAtMost of epsilon, nothing is left for the
// steps.
Result<double> EpsilonOfBeside(const Beside& beside, double delta);
inline constexpr double kBesideAtMost = 0.99;
// Total rho of `beside`: of its Gaussians and of the releases charged by their zCDP.
double ZcdpOfBeside(const Beside& beside);

// The noise multiplier of a release at the opening of each period that gets this share of the
// promise's mu^2, over all periods that a user may be in. REQUIRES held periods of users, and a
// share in (0, 1).
Result<double> OpeningNoise(const config::Learner& learner, const Exposure& exposure, double share);

// The noise multiplier of one step: the smallest the promise allows, or a larger configured one.
// `laws` save time over several learners.
Result<double> StepNoise(const config::Learner& learner, const Exposure& exposure,
                         const Beside& beside = {}, const privacy::Laws& laws = nullptr);

}  // namespace tacit::wiring
