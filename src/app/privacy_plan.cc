#include "app/privacy_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/noise_plan.h"
#include "base/text.h"
#include "privacy/gdp.h"
#include "privacy/pld.h"

namespace tacit::app {
namespace {

using config::Participation;
using privacy::CountedEvent;
using privacy::Event;
using Events = std::vector<CountedEvent>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One learner with what the configuration says of it.
struct Subject {
  const config::Learner& learner;
  const config::Source& source;
  const LearnerPlan& plan;

  bool once() const { return learner.participation.mode == Participation::Mode::kOnce; }
  bool is_private() const { return plan.charge.Bounded(); }
  // How often one event is read.
  uint64_t passes() const {
    return source.kind == config::Source::Kind::kLog ? source.passes : uint64_t{1};
  }
};

// A charge made `count` times on a unit that is eligible each time.
void Append(const privacy::Charge& charge, uint64_t count, Events* events) {
  if (count == 0) return;
  if (std::isfinite(charge.noise_multiplier))
    events->push_back(
        {Event::PoissonGaussian(charge.noise_multiplier, charge.sampling_rate), count});
  if (charge.zcdp_rho > 0) events->push_back({Event::Zcdp(charge.zcdp_rho), count});
}

// How often an event's period is opened with a release.
uint64_t Openings(const Subject& s, uint64_t passes) {
  const bool once =
      s.learner.mechanism.vocabulary.source == config::Vocabulary::Source::kFirstPeriod;
  return once ? 1 : passes;
}

// What is released beside the Gaussians of the steps, for a unit in so many steps and passes.
Beside BesideSteps(const Subject& s, uint64_t steps, uint64_t passes) {
  Beside beside;
  if (s.plan.charge.zcdp_rho > 0) beside.push_back({Event::Zcdp(s.plan.charge.zcdp_rho), steps});
  if (s.plan.opening_charge) Append(*s.plan.opening_charge, Openings(s, passes), &beside);
  return beside;
}

// Everything an event has been in after so many passes.
Events AfterPasses(const Subject& s, uint64_t passes) {
  const uint64_t steps = s.once() ? passes : s.learner.participation.steps_per_period * passes;
  Events events;
  Append(s.plan.charge, steps, &events);
  if (s.plan.opening_charge) Append(*s.plan.opening_charge, Openings(s, passes), &events);
  return events;
}

uint64_t AllowedPasses(const Subject& s) {
  return s.once() ? s.learner.participation.max_participations : s.passes();
}

Result<double> EpsilonOf(const Events& events, double delta) {
  privacy::PldAccountant accountant(privacy::Adjacency::kAddRemove);
  for (const auto& [event, count] : events) TACIT_RETURN_IF_ERROR(accountant.Add(event, count));
  TACIT_ASSIGN(const privacy::CertifiedInterval bounds, accountant.Epsilon(Delta(delta)));
  return bounds.upper;
}

// Of one event over all these learners.
Result<EpsilonAhead> Ahead(const std::vector<Subject>& subjects, double delta) {
  Events first, all, allowed;
  for (const Subject& s : subjects) {
    if (!s.is_private()) return EpsilonAhead{kInfinity, kInfinity, kInfinity, kInfinity, kInfinity};
    const auto join = [](Events from, Events* to) {
      to->insert(to->end(), from.begin(), from.end());
    };
    join(AfterPasses(s, 1), &first);
    join(AfterPasses(s, s.passes()), &all);
    join(AfterPasses(s, AllowedPasses(s)), &allowed);
  }
  EpsilonAhead ahead;
  TACIT_ASSIGN(ahead.period, EpsilonOf(first, delta));
  ahead.day = ahead.days_30 = ahead.period;
  TACIT_ASSIGN(ahead.all_passes, EpsilonOf(all, delta));
  TACIT_ASSIGN(ahead.allowed, EpsilonOf(allowed, delta));
  return ahead;
}

std::string InWords(const Subject& s) {
  const Participation& p = s.learner.participation;
  const std::string passes =
      s.passes() == 1 ? "" : fmt::format(", in each of {} passes", s.passes());
  if (s.once())
    return fmt::format("once: every event in 1 step of {}{}, in the order it came; nothing is held",
                       WithThousands(p.batch), passes);
  std::string period = p.period > 0 ? fmt::format("{} offsets", WithThousands(p.period)) : "";
  if (p.period_files > 0 || p.period == 0)
    period +=
        fmt::format("{}{} file(s)", period.empty() ? "" : " or ", std::max(1u, p.period_files));
  return fmt::format(
      "poisson: a period of {} is held, each event in each of its {} steps with "
      "probability {}{}",
      period, WithThousands(p.steps_per_period), p.sampling_rate, passes);
}

// Steps a day, where a day is one file of the stream.
std::optional<uint64_t> StepsPerDay(const Subject& s, std::optional<uint64_t> events_per_day) {
  if (!events_per_day) return std::nullopt;
  const Participation& p = s.learner.participation;
  const auto times = [&](uint64_t each) { return (*events_per_day + each - 1) / each; };
  if (s.once()) return times(p.batch);
  if (p.period_files > 1) return std::nullopt;
  return p.steps_per_period * (p.period > 0 ? times(p.period) : 1);
}

// The noise a step would need for the same promise.
Result<OtherMode> Calibrated(const Subject& s, const Exposure& exposure, uint64_t passes,
                             OtherMode mode) {
  mode.steps = exposure.steps;
  mode.sampling_rate = exposure.rate;
  const auto noise = CalibratedNoise(exposure, s.plan.promise.epsilon, s.plan.promise.delta,
                                     BesideSteps(s, exposure.steps, passes));
  if (noise) {
    mode.noise_multiplier = *noise;
  } else {
    mode.words = noise.error().message;
  }
  return mode;
}

Result<OtherMode> AsPoisson(const Subject& s, std::optional<uint64_t> events_per_day) {
  OtherMode mode{.mode = "poisson", .words = "a day is held, and learnt from only once it is over"};
  const uint64_t batch = s.learner.participation.batch;
  if (!events_per_day || *events_per_day <= batch) {
    mode.words = events_per_day ? "not computed: a day is no longer than one batch"
                                : "not known: how long a day is (--events-per-day N)";
    return mode;
  }
  mode.period = *events_per_day;
  const auto period = static_cast<double>(mode.period), in_step = static_cast<double>(batch);
  const auto steps = static_cast<uint64_t>(std::llround(period / in_step));
  return Calibrated(s, {.sampled = true, .steps = steps * s.passes(), .rate = in_step / period},
                    s.passes(), std::move(mode));
}

Result<std::vector<OtherMode>> Others(const Subject& s, std::optional<uint64_t> events_per_day) {
  std::vector<OtherMode> others;
  if (s.once()) {
    TACIT_ASSIGN(OtherMode poisson, AsPoisson(s, events_per_day));
    others.push_back(std::move(poisson));
  } else {
    std::vector<uint64_t> participations{1};
    if (s.passes() > 1) participations.push_back(s.passes());
    for (const uint64_t k : participations) {
      TACIT_ASSIGN(
          OtherMode once,
          Calibrated(s, {.steps = k}, k,
                     {.mode = "once",
                      .words = fmt::format("no amplification: {} step(s) in full an event; nothing "
                                           "is held, learns as events come",
                                           k)}));
      others.push_back(std::move(once));
    }
  }
  for (const char* mode : {"balls-and-bins", "correlated"})
    others.push_back({.mode = mode, .words = "refused: no accountant"});
  return others;
}

Result<LearnerForecast> Forecast(const Subject& s, std::optional<uint64_t> events_per_day) {
  const privacy::Promise& promise = s.plan.promise;
  LearnerForecast forecast{.id = promise.learner,
                           .unit = promise.unit,
                           .epsilon = promise.epsilon,
                           .delta = promise.delta,
                           .mode = std::string(privacy::Name(promise.participation)),
                           .participation = InWords(s),
                           .charge = s.plan.charge,
                           .opening = s.plan.opening_charge,
                           .steps_per_day = StepsPerDay(s, events_per_day),
                           .untouched_rows = s.plan.expected_extra_rows};
  TACIT_ASSIGN(forecast.ahead, Ahead({s}, promise.delta));
  if (!s.is_private()) return forecast;
  TACIT_ASSIGN(forecast.others, Others(s, events_per_day));
  const privacy::Charge& charge = s.plan.charge;
  const bool sampled_gaussian = charge.zcdp_rho == 0 && !s.once() && !s.plan.opening_charge;
  if (sampled_gaussian)
    forecast.estimate = privacy::GdpCltEpsilonEstimate(
        charge.noise_multiplier, charge.sampling_rate, s.learner.participation.steps_per_period,
        Delta(promise.delta));
  return forecast;
}

void Warn(PrivacyForecast* forecast) {
  const bool reached = forecast->budget && forecast->total.allowed > forecast->budget->epsilon;
  if (reached)
    forecast->warnings.push_back(
        fmt::format("the total budget of {} is reached before the learners' own budgets are, which "
                    "come to {:.4g} together: the learner whose step would cross it stops there",
                    forecast->budget->epsilon, forecast->total.allowed));
  for (const LearnerForecast& learner : forecast->learners)
    if (!std::isfinite(learner.ahead.period))
      forecast->warnings.push_back(
          fmt::format("learner '{}' is not private: nothing bounds what it tells", learner.id));
}

}  // namespace

Result<PrivacyForecast> ForecastPrivacy(const Assembly& assembly,
                                        std::optional<uint64_t> events_per_day) {
  const config::Source& source = assembly.config.source;
  PrivacyForecast forecast;
  forecast.events_per_day = events_per_day;
  if (source.kind == config::Source::Kind::kGenerator)
    forecast.events_per_day = source.generator.rows_per_day;
  forecast.budget = assembly.total_budget;
  std::vector<Subject> subjects;
  for (size_t i = 0; i < assembly.learners.size(); ++i) {
    const Subject subject{assembly.config.learners[i], source, assembly.learners[i]};
    const privacy::Promise& promise = subject.plan.promise;
    if (promise.unit != privacy::Unit::kEvent)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("learner '{}': how often a user takes part does not follow from the "
                              "configuration; a plan is of unit event",
                              promise.learner));
    forecast.delta = std::max(forecast.delta, promise.delta);
    TACIT_ASSIGN(LearnerForecast learner, Forecast(subject, forecast.events_per_day));
    forecast.learners.push_back(std::move(learner));
    subjects.push_back(subject);
  }
  if (forecast.budget) forecast.delta = forecast.budget->delta;
  TACIT_ASSIGN(forecast.total, Ahead(subjects, forecast.delta));
  Warn(&forecast);
  return forecast;
}

}  // namespace tacit::app
