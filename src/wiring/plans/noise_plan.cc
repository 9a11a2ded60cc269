#include "wiring/plans/noise_plan.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/text.h"
#include "privacy/bill.h"
#include "privacy/calibrate.h"
#include "privacy/gaussian.h"
#include "privacy/mu.h"
#include "privacy/pld.h"
#include "privacy/query_table.h"

namespace tacit::wiring {

uint64_t PeriodsOfUser(const config::Participation& p) {
  return p.max_participations / p.PeriodSteps();
}

privacy::Draw DrawOf(const config::Participation& p) {
  switch (p.mode) {
    case config::Participation::Mode::kOnce:
      break;
    case config::Participation::Mode::kPoisson:
      return {.rate = p.sampling_rate};
    case config::Participation::Mode::kAllocate:
      return privacy::Draw::Allocate(p.steps_per_period);
  }
  return {};
}

Exposure ExposureOf(const config::Learner& learner, const config::Source& source) {
  const config::Participation& p = learner.participation;
  const privacy::Price of_gradient =
      privacy::PriceOf(privacy::Query::kGradient, p.mode, learner.privacy.unit);
  if (of_gradient == privacy::Price::kGaussian)
    return {.sampled = false,
            .steps = p.max_participations,
            .text = Counted(p.max_participations, "participation")};
  const uint64_t periods = learner.privacy.of_users() ? PeriodsOfUser(p) : source.passes;
  Exposure exposure{
      .sampled = true, .steps = p.PeriodSteps() * periods, .periods = periods, .draw = DrawOf(p)};
  exposure.draw.known = learner.mechanism.traits().shows_coins();
  exposure.text =
      of_gradient == privacy::Price::kAllocatedGaussian
          ? fmt::format("{} of {}", Counted(p.blocks * periods, "block"),
                        Counted(p.steps_per_period, "step"))
          : fmt::format("{} sampled at {}", Counted(exposure.steps, "step"), p.sampling_rate);
  return exposure;
}

uint64_t Openings(const config::Mechanism& mechanism, uint64_t periods) {
  return mechanism.vocabulary.source == config::Vocabulary::Source::kFirstPeriod ? 1 : periods;
}

Beside BesideSteps(const std::optional<privacy::Charge>& opening, uint64_t openings,
                   double zcdp_rho, uint64_t steps) {
  Beside beside;
  if (opening && opening->MuSquared() > 0)
    beside.push_back({privacy::Event::Gaussian(opening->noise_multiplier), openings});
  if (opening && opening->zcdp_rho > 0)
    beside.push_back({privacy::Event::Zcdp(opening->zcdp_rho), openings});
  if (zcdp_rho > 0) beside.push_back({privacy::Event::Zcdp(zcdp_rho), steps});
  return beside;
}

Result<double> EpsilonAt(double noise, const Exposure& exposure, double delta,
                         const Beside& beside) {
  if (!(noise > 0)) return std::numeric_limits<double>::infinity();
  Beside events = beside;
  const privacy::Charge step{.noise_multiplier = noise,
                             .sampling_rate = exposure.draw.rate,
                             .block_steps = exposure.draw.block_steps};
  if (exposure.draw.known && step.sampling_rate < 1)
    events.push_back({privacy::Event::KnownCoin(noise, step.sampling_rate), exposure.steps});
  else
    for (const privacy::CountedEvent& event : step.Events(exposure.steps)) events.push_back(event);
  return privacy::PldUpperEpsilon(events, privacy::Adjacency::kAddRemove, Delta(delta));
}

Result<double> EpsilonOfBeside(const Beside& beside, double delta) {
  return privacy::PldUpperEpsilon(beside, privacy::Adjacency::kAddRemove, Delta(delta));
}

double ZcdpOfBeside(const Beside& beside) {
  double rho = 0;
  for (const auto& [event, count] : beside) {
    const double mu = event.kind == privacy::EventKind::kGaussian ? 1 / event.noise_multiplier : 0;
    rho += static_cast<double>(count) * (event.rho + mu * mu / 2);
  }
  return rho;
}

namespace {

tl::unexpected<Error> TooMuchNoise(const config::Learner& learner, const Exposure& exposure,
                                   double needed) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("learner '{}': privacy.epsilon: {} at delta {} over {} calls for a noise "
                          "multiplier of {:.3g}, and there is none above {:.0f}: raise epsilon",
                          learner.id, learner.privacy.epsilon, learner.privacy.delta, exposure.text,
                          needed, kNoiseMost));
}

tl::unexpected<Error> TooLittleNoise(const config::Learner& learner, const Exposure& exposure,
                                     double needed) {
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("learner '{}': privacy.epsilon: {} at delta {} over {} calls for a noise "
                          "multiplier of {:.3g}, and there is none below {}: lower epsilon, or use "
                          "mechanism none with epsilon .inf",
                          learner.id, learner.privacy.epsilon, learner.privacy.delta, exposure.text,
                          needed, kNoiseLeast));
}

}  // namespace

// The promise as a whole is one Gaussian of mu; so is what all openings of a user come to.
Result<double> OpeningNoise(const config::Learner& learner, const Exposure& exposure,
                            double share) {
  const double mu =
      privacy::GaussianMu(Epsilon(learner.privacy.epsilon), Delta(learner.privacy.delta));
  if (Status status = privacy::CheckMu(mu); !status)
    return Fail(std::move(status.error()).Context("learner '" + learner.id + "': privacy.epsilon"));
  return privacy::DividePeriod(mu / std::sqrt(static_cast<double>(exposure.periods)), share, 1)
      .opening;
}

Result<double> StepNoise(const config::Learner& learner, const Exposure& exposure,
                         const Beside& beside, const privacy::Laws& laws) {
  auto needed = privacy::CalibrateSteps({.epsilon = learner.privacy.epsilon,
                                         .delta = learner.privacy.delta,
                                         .sampling_rate = exposure.draw.rate,
                                         .steps = exposure.steps,
                                         .block_steps = exposure.draw.block_steps,
                                         .beside = beside,
                                         .coins_known = exposure.draw.known,
                                         .laws = laws});
  if (!needed) return Fail(std::move(needed.error()).Context("learner '" + learner.id + "'"));
  if (*needed > kNoiseMost) return TooMuchNoise(learner, exposure, *needed);
  if (learner.mechanism.noise_multiplier.value_or(*needed) < kNoiseLeast)
    return TooLittleNoise(learner, exposure, *needed);
  if (!learner.mechanism.noise_multiplier || *learner.mechanism.noise_multiplier >= *needed)
    return learner.mechanism.noise_multiplier.value_or(*needed);
  const double asked = *learner.mechanism.noise_multiplier;
  TACIT_ASSIGN(const double epsilon, EpsilonAt(asked, exposure, learner.privacy.delta, beside));
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format(
          "learner '{}': mechanism.noise_multiplier: {} gives epsilon {:.4g} at delta {} over "
          "{}, more than its privacy.epsilon of {}; at least {:.6g} is needed "
          "(leave the key out to have it calibrated)",
          learner.id, asked, epsilon, learner.privacy.delta, exposure.text, learner.privacy.epsilon,
          *needed));
}

}  // namespace tacit::wiring
