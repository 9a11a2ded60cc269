#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "privacy/event.h"

// How much noise a learner's step needs for its promise, given how its records take part.
namespace tacit::app {

// What a step of a learner's mechanism is asked to withstand, by participation.
struct Exposure {
  bool sampled = false;
  uint64_t steps = 1;  // that one unit is in, or eligible for
  double rate = 1;
  std::string text = {};
};

// `poisson`, unit user: periods that the allowance lets a user be in.
uint64_t PeriodsOfUser(const config::Participation& participation);

Exposure ExposureOf(const config::Learner& learner, const config::Source& source);

// What a unit takes part in beside the steps, at a fixed price: a histogram of each period, say.
using Beside = std::vector<privacy::CountedEvent>;

// A hair more noise than calibrated. `once`: so that participations summed in floating point stay
// within; `poisson`: so that the ledger's bound, certified step by step, does too.
Result<double> CalibratedNoise(const Exposure& exposure, double epsilon, double delta,
                               const Beside& beside = {});

// What steps of this noise, and what is beside them, cost; infinite without noise.
Result<double> EpsilonAt(double noise, const Exposure& exposure, double delta,
                         const Beside& beside = {});

// What is beside the steps costs alone. Above this share of epsilon, the steps have nothing left.
Result<double> EpsilonOfBeside(const Beside& beside, double delta);
inline constexpr double kBesideAtMost = 0.99;
// Its rho, of Gaussians and of what is charged by its zCDP.
double ZcdpOfBeside(const Beside& beside);

// "1 file", "2 files".
std::string Counted(uint64_t count, std::string_view noun);

// The noise multiplier of one step: as small as the promise allows, or the larger one asked for.
Result<double> StepNoise(const config::Learner& learner, const config::Source& source,
                         const Beside& beside = {});

}  // namespace tacit::app
