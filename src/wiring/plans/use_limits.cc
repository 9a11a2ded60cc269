#include "wiring/plans/use_limits.h"

#include "train/quality/breaker.h"
#include "train/quality/private_quality.h"

namespace tacit::wiring {
namespace {

privacy::UseLimits LimitsOf(const config::Learner& learner, const config::Source& source) {
  const config::Participation& p = learner.participation;
  if (p.mode == config::Participation::Mode::kOnce)
    return {.steps = p.max_participations, .releases = p.max_participations};
  return {.steps = p.PeriodSteps() * source.passes, .releases = source.passes};
}

}  // namespace

std::map<std::string, privacy::UseLimits> LimitsByAccount(const config::Config& config) {
  std::map<std::string, privacy::UseLimits> limits;
  for (const config::Learner& learner : config.learners) {
    limits[learner.id] = LimitsOf(learner, config.source);
    // A record is in one window of a pass.
    if (learner.quality.given())
      limits[train::QualityAccount(learner.id)] = {
          .steps = learner.participation.max_participations, .releases = 0};
  }
  // Each record is in one window.
  if (config.source.halt_above.given())
    limits[std::string(train::kBreakerAccount)] = {.steps = 1, .releases = 0};
  return limits;
}

}  // namespace tacit::wiring
