#include "wiring/plans/breaker_plan.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "noise/noise.h"
#include "privacy/gaussian.h"
#include "train/learner/position.h"

namespace tacit::wiring {
namespace {

// A window's noise stays below this many of its deviations, except in one of a thousand million.
constexpr double kDeviations = 6;

// Returns the offsets of a window that does not halt where nothing is wrong, and does where all
// records are unreadable.
double LeastWindow(const config::HaltAbove& halt, double sigma) {
  return std::ceil(kDeviations * sigma / std::min(*halt.share, 1 - *halt.share));
}

}  // namespace

Result<std::optional<BreakerPlan>> PlanBreaker(const config::Source& source,
                                               std::optional<uint64_t> period, size_t learners) {
  const config::HaltAbove& halt = source.halt_above;
  std::optional<BreakerPlan> none;
  if (!halt.given()) return none;
  const double sigma =
      privacy::CalibrateGaussian(Epsilon(*halt.epsilon), Delta(*halt.delta), 1).value;
  const double least = LeastWindow(halt, sigma);
  if (const uint64_t window = period.value_or(halt.window); static_cast<double>(window) < least)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("source.halt_above: epsilon {:g} at delta {:g} is noise of {:.1f} "
                            "records on the count of a window, which would decide by itself: {} "
                            "must be at least {:.0f} for share {:g}, is {}",
                            *halt.epsilon, *halt.delta, sigma,
                            period ? "a window is a period (source.periods: topic), and "
                                     "participation.batch"
                                   : "window",
                            least, *halt.share, window));
  BreakerPlan plan;
  plan.index = LearnerIndex(static_cast<uint16_t>(learners));
  plan.share = *halt.share;
  plan.window = period ? 0 : halt.window;
  plan.least = static_cast<uint64_t>(least);
  plan.charge = train::ReleaseAccount::ChargeOf(privacy::MechanismKind::kBreaker, sigma);
  plan.promise = {.learner = std::string(train::kBreakerAccount),
                  .unit = privacy::Unit::kEvent,
                  .adjacency = privacy::Adjacency::kZeroOut,
                  .participation = privacy::ParticipationMode::kOnce,
                  .epsilon = *halt.epsilon,
                  .delta = *halt.delta,
                  .model_fingerprint = Sha256().Update("tacit.breaker.v1").Finish()};
  return std::optional(std::move(plan));
}

std::string BreakerText(const BreakerPlan& plan) {
  return fmt::format(
      "halts above {:g} % of {} that could not be learnt from: epsilon {} at delta {} per event, "
      "noise of {:.1f} records",
      100 * plan.share, plan.window > 0 ? Counted(plan.window, "record") : "a period's records",
      plan.promise.epsilon, plan.promise.delta, plan.charge.noise_multiplier);
}

store::LearnerLayout BreakerLayout(const BreakerPlan& plan) {
  return {.name = plan.promise.learner, .rows = store::RowLayout(), .promise = plan.promise};
}

Result<std::unique_ptr<train::Breaker>> MakeBreaker(const BreakerPlan& plan,
                                                    const store::Store& store,
                                                    const std::string& topic, uint64_t past) {
  TACIT_ASSIGN(const auto position, train::DecodePosition(store.State(plan.index).position));
  return std::make_unique<train::Breaker>(
      train::BreakerOptions{.index = plan.index,
                            .topic = topic,
                            .share = plan.share,
                            .window = plan.window,
                            .least = plan.least,
                            .noise_multiplier = plan.charge.noise_multiplier,
                            .epsilon = plan.promise.epsilon,
                            .delta = plan.promise.delta,
                            .state = train::BreakerState::Of(position),
                            .past = past},
      noise::MakeNoiseSource());
}

}  // namespace tacit::wiring
