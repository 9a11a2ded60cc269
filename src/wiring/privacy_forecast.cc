#include "wiring/privacy_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "privacy/calibrate.h"
#include "privacy/gdp.h"
#include "privacy/pld.h"
#include "privacy/tradeoff.h"
#include "privacy/weakness.h"
#include "wiring/budget_check.h"
#include "wiring/plans/noise_plan.h"
#include "wiring/signal.h"

namespace tacit::wiring {
namespace {

using config::Participation;
using privacy::CountedEvent;
using Events = std::vector<CountedEvent>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

EpsilonAhead UnboundedAhead() {
  return {kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity};
}

// One learner and its configuration.
struct Subject {
  const config::Learner& learner;
  const config::Source& source;
  const LearnerPlan& plan;

  bool once() const { return learner.participation.mode == Participation::Mode::kOnce; }
  std::string_view mode() const { return privacy::Name(plan.promise.participation); }
  bool is_private() const { return plan.charge.Bounded(); }
  bool of_users() const { return learner.privacy.of_users(); }
  bool KnowsCoins() const { return plan.charge.CoinsAreKnown(); }
  // The number of times that one event is read.
  uint64_t passes() const { return source.passes; }
  // A day is a file, where there are files.
  std::optional<uint64_t> FileRecords(std::optional<uint64_t> events_per_day) const {
    return source.traits().has_files ? events_per_day : std::nullopt;
  }
};

// Appends a charge made `count` times on a unit that is eligible each time.
void Append(const privacy::Charge& charge, uint64_t count, Events* events) {
  const Events own = charge.Events(count);
  events->insert(events->end(), own.begin(), own.end());
}

// All events of the account of one record after this many passes.
Events AfterPasses(const Subject& s, uint64_t passes) {
  const uint64_t steps = s.once() ? passes : s.learner.participation.PeriodSteps() * passes;
  Events events;
  Append(s.plan.charge, steps, &events);
  if (s.plan.opening_charge)
    Append(*s.plan.opening_charge, Openings(s.learner.mechanism, passes), &events);
  return events;
}

uint64_t AllowedPasses(const Subject& s) {
  return s.once() ? s.learner.participation.max_participations : s.passes();
}

// All events of a user's account after this many steps of the learner, if he is in each as far as
// his allowance permits. Held periods are counted whole.
Events AfterSteps(const Subject& s, uint64_t steps) {
  const uint64_t allowance = s.plan.promise.bounds.allowance;
  const uint64_t each = s.once() ? 1 : s.learner.participation.PeriodSteps();
  const uint64_t periods = std::min((steps + each - 1) / each, (allowance + each - 1) / each);
  Events events;
  Append(s.plan.charge, std::min(allowance, periods * each), &events);
  if (s.plan.opening_charge)
    Append(*s.plan.opening_charge, Openings(s.learner.mechanism, periods), &events);
  return events;
}

bool HasWeakDelta(double delta) { return !privacy::WeaknessOf(0, delta).delta.empty(); }

// The accountant's answers about events. Learners share many questions, and each costs a tenth of a
// second where steps are sampled: it is asked once. Every question has an accountant of its own,
// because what was asked before moves the last digits.
class Answers {
 public:
  explicit Answers(privacy::Laws laws)
      : laws_(laws != nullptr ? std::move(laws) : privacy::MakeLaws()) {}
  const privacy::Laws& laws() const { return laws_; }

  Result<double> EpsilonOf(const Events& events, double delta) {
    return Once(&epsilons_, KeyOf(events, delta), [&]() -> Result<double> {
      TACIT_ASSIGN(privacy::PldAccountant accountant, AccountOf(events));
      TACIT_ASSIGN(const privacy::CertifiedInterval bounds, accountant.Epsilon(Delta(delta)));
      return bounds.upper;
    });
  }
  // `epsilon` is theirs at this delta.
  Result<TellsAtMost> TellsOf(const Events& events, double epsilon, double delta) {
    // A delta that is warned of comes with noise so small that a point of the curve takes the
    // accountant half a second, and the curve minutes. The point that is known bounds it, too.
    if (HasWeakDelta(delta)) return TellsAt(epsilon, delta);
    return Once(&tells_, KeyOf(events, 0), [&] { return AskTells(events); });
  }

 private:
  using Key = std::vector<std::tuple<privacy::Event, uint64_t, double>>;

  static Key KeyOf(const Events& events, double delta) {
    Key key;
    for (const auto& [event, count] : events) key.emplace_back(event, count, delta);
    return key;
  }
  template <class T, class Ask>
  static Result<T> Once(std::map<Key, T>* known, Key key, const Ask& ask) {
    if (const auto found = known->find(key); found != known->end()) return found->second;
    TACIT_ASSIGN(const T answer, ask());
    known->emplace(std::move(key), answer);
    return answer;
  }
  static TellsAtMost TellsAt(double epsilon, double delta) {
    return {.advantage = privacy::AdvantageAt(epsilon, delta),
            .found_1_in_100 = 1 - privacy::MissedAt(epsilon, delta, 0.01),
            .found_1_in_1000 = 1 - privacy::MissedAt(epsilon, delta, 0.001)};
  }
  Result<privacy::PldAccountant> AccountOf(const Events& events) const {
    privacy::PldAccountant accountant(privacy::Adjacency::kAddRemove, laws_);
    for (const auto& [event, count] : events) TACIT_RETURN_IF_ERROR(accountant.Add(event, count));
    return accountant;
  }
  Result<TellsAtMost> AskTells(const Events& events) const {
    TACIT_ASSIGN(privacy::PldAccountant accountant, AccountOf(events));
    TACIT_ASSIGN(const privacy::TradeOff tradeoff, privacy::TradeOff::Of(accountant));
    TellsAtMost tells;
    // The question nearest to epsilon 0 comes last: its fine lattice makes the others slow.
    TACIT_ASSIGN(const double at_100, tradeoff.MissedAtLeast(0.01));
    TACIT_ASSIGN(const double at_1000, tradeoff.MissedAtLeast(0.001));
    TACIT_ASSIGN(tells.advantage, tradeoff.Advantage());
    tells.found_1_in_100 = 1 - at_100;
    tells.found_1_in_1000 = 1 - at_1000;
    return tells;
  }

  const privacy::Laws laws_;
  std::map<Key, double> epsilons_;
  std::map<Key, TellsAtMost> tells_;
};

// Steps per day, where a day is one file of the stream.
std::optional<uint64_t> StepsPerDay(const Subject& s, std::optional<uint64_t> events_per_day) {
  const Participation& p = s.learner.participation;
  const bool a_file_each = p.period == 0 && p.period_files <= 1;
  if (!s.once() && a_file_each) return p.PeriodSteps();
  if (!events_per_day || (s.once() && p.step_files > 1)) return std::nullopt;
  const auto times = [&](uint64_t each) { return (*events_per_day + each - 1) / each; };
  if (s.once()) return times(p.batch);
  if (p.period_files > 1) return std::nullopt;
  return p.PeriodSteps() * times(p.period);
}

// The most steps of this many days that a user is in, from the learner's first day on; nothing if
// it is not known. `aligned` false: of any days in a row that begin with a multiple of their
// number.
std::optional<uint64_t> StepsOfUser(const Subject& s, uint64_t days, bool aligned,
                                    std::optional<uint64_t> events_per_day) {
  const Participation& p = s.learner.participation;
  std::optional<uint64_t> most;
  if (const auto a_day = StepsPerDay(s, events_per_day)) most = *a_day * days;
  std::optional<uint64_t> periods;
  const auto touched = [aligned](uint64_t length, uint64_t period) {
    return (length + period - 1) / period + (aligned || length % period == 0 ? 0 : 1);
  };
  if (s.once() && p.per_period > 0 && p.period == 0)
    periods = touched(days, std::max(1u, p.period_files));
  else if (s.once() && p.per_period > 0 && p.period_files == 0 && events_per_day)
    periods = touched(days * *events_per_day, p.period);
  if (periods) most = std::min(most.value_or(~uint64_t{0}), *periods * p.per_period);
  return most;
}

// The forecast for one event over all these learners, or for one user if all have unit user. An
// event is only in the steps of its own period. A user returns, at most once per step.
// `once`: the charges that every event pays exactly once.
Result<EpsilonAhead> Ahead(const std::vector<Subject>& subjects, double delta, const Events& once,
                           std::optional<uint64_t> events_per_day, Answers* answers,
                           TellsAtMost* tells) {
  // Events of a length of time; nothing where a learner's are not known.
  using Known = std::optional<Events>;
  Events step, first = once, all = once, allowed = once;
  Known day = once, days_30 = once, year = once;
  for (const Subject& s : subjects) {
    if (!s.is_private()) return UnboundedAhead();
    const auto join = [](Events from, Events* to) {
      to->insert(to->end(), from.begin(), from.end());
    };
    const auto join_known = [&](std::optional<uint64_t> steps, Known* to) {
      if (!steps) to->reset();
      if (*to) join(AfterSteps(s, *steps), &**to);
    };
    Append(s.plan.charge, 1, &step);
    if (s.of_users()) {
      const uint64_t most = s.plan.promise.bounds.allowance;
      join(AfterSteps(s, 1), &first);
      join_known(StepsOfUser(s, 1, true, events_per_day), &day);
      join_known(StepsOfUser(s, 30, true, events_per_day), &days_30);
      join_known(StepsOfUser(s, 365, false, events_per_day), &year);
      join(AfterSteps(s, most), &all);
      join(AfterSteps(s, most), &allowed);
      continue;
    }
    join(AfterPasses(s, 1), &first);
    for (Known* events : {&day, &days_30, &year})
      if (*events) join(AfterPasses(s, 1), &**events);
    join(AfterPasses(s, s.passes()), &all);
    join(AfterPasses(s, AllowedPasses(s)), &allowed);
  }
  EpsilonAhead ahead;
  const auto of_known = [&](const Known& events) -> Result<double> {
    if (!events) return std::numeric_limits<double>::quiet_NaN();
    return answers->EpsilonOf(*events, delta);
  };
  TACIT_ASSIGN(ahead.step, answers->EpsilonOf(step, delta));
  TACIT_ASSIGN(ahead.period, answers->EpsilonOf(first, delta));
  TACIT_ASSIGN(ahead.day, of_known(day));
  TACIT_ASSIGN(ahead.days_30, of_known(days_30));
  TACIT_ASSIGN(ahead.year, of_known(year));
  TACIT_ASSIGN(ahead.all_passes, answers->EpsilonOf(all, delta));
  TACIT_ASSIGN(ahead.allowed, answers->EpsilonOf(allowed, delta));
  TACIT_ASSIGN(*tells, answers->TellsOf(allowed, ahead.allowed, delta));
  return ahead;
}

// The steps of a held period that a unit is in.
std::string DrawInWords(const Participation& p) {
  if (p.mode == Participation::Mode::kPoisson)
    return fmt::format("each of its {} with probability {}", Counted(p.steps_per_period, "step"),
                       p.sampling_rate);
  const std::string one =
      fmt::format("exactly one of {}, drawn at random", Counted(p.steps_per_period, "step"));
  return p.blocks == 1 ? one : fmt::format("{}, {} times over", one, p.blocks);
}

std::string UsersInWords(const Subject& s) {
  const Participation& p = s.learner.participation;
  const std::string ever = fmt::format("{} ever", Counted(s.plan.promise.bounds.allowance, "step"));
  if (!s.once())
    return fmt::format(
        "{}: a period is held, each user in {}; a user is eligible for {}, which is {}", s.mode(),
        DrawInWords(p), ever, Counted(PeriodsOfUser(p), "period"));
  const std::string of_a_period =
      p.per_period > 0 ? fmt::format(", {} of a period", p.per_period) : "";
  return fmt::format("once: steps of {} offsets in the order they came; a user is in {}{}",
                     WithThousands(p.batch), ever, of_a_period);
}

std::string InWords(const Subject& s) {
  if (s.of_users()) return UsersInWords(s);
  const Participation& p = s.learner.participation;
  const std::string passes =
      s.passes() == 1 ? "" : fmt::format(", in each of {} passes", s.passes());
  if (s.once()) {
    const bool is_period = !s.learner.model.traits().only_once.empty();
    return fmt::format(
        "once: every event in 1 {} of {}{}, in the order it came; {}",
        is_period ? "period" : "step", WithThousands(p.batch), passes,
        is_period ? "a period is held until it is full, and is one release" : "nothing is held");
  }
  std::string period = p.period > 0 ? fmt::format("{} offsets", WithThousands(p.period)) : "";
  if (p.period_files > 0 || p.period == 0)
    period += (period.empty() ? "" : " or ") + Counted(std::max(1u, p.period_files), "file");
  return fmt::format("{}: a period of {} is held, each event in {}{}", s.mode(), period,
                     DrawInWords(p), passes);
}

std::string StepsUnknown(const Subject& s) {
  const Participation& p = s.learner.participation;
  if (!s.once() && p.period_files > 1)
    return fmt::format("a period may be of {}, and a day is one", Counted(p.period_files, "file"));
  if (s.once() && p.step_files > 1)
    return fmt::format("a step may be of {}, and a day is one", Counted(p.step_files, "file"));
  return "--events-per-day N, a file a day";
}

// The noise that a step would need for the same promise.
Result<OtherMode> Calibrated(const Subject& s, const Exposure& exposure, uint64_t passes,
                             OtherMode mode, const privacy::Laws& laws) {
  mode.steps = exposure.steps;
  mode.draw = exposure.draw;
  if (exposure.sampled && HasWeakDelta(s.plan.promise.delta)) {
    mode.words = fmt::format("not computed: a delta of {} is warned of, and its noise takes long",
                             s.plan.promise.delta);
    return mode;
  }
  const auto noise = privacy::CalibrateSteps(
      {.epsilon = s.plan.promise.epsilon,
       .delta = s.plan.promise.delta,
       .sampling_rate = exposure.draw.rate,
       .steps = exposure.steps,
       .block_steps = exposure.draw.block_steps,
       .beside = BesideSteps(s.plan.opening_charge, Openings(s.learner.mechanism, passes),
                             s.plan.charge.zcdp_rho, exposure.steps),
       .coins_known = exposure.draw.known,
       .laws = laws});
  if (noise) {
    mode.noise_multiplier = *noise;
  } else {
    mode.words = noise.error().message;
  }
  return mode;
}

// The other modes that hold a period. An event is in as many steps as now, on average, and each
// step has as many events.
Result<std::vector<OtherMode>> HeldModes(const Subject& s, std::optional<uint64_t> events_per_day,
                                         const privacy::Laws& laws) {
  const Participation& p = s.learner.participation;
  const uint64_t passes = s.of_users() ? PeriodsOfUser(p) : s.passes();
  const auto period = static_cast<double>(events_per_day.value_or(0));
  // A learner that holds no period would hold a day.
  const double rate = s.once() ? static_cast<double>(p.batch) / period : p.Rate();
  const uint64_t steps = s.once() ? static_cast<uint64_t>(std::llround(1 / rate)) : p.PeriodSteps();
  const double uses = std::round(static_cast<double>(steps) * rate);
  const auto blocks = std::max<uint64_t>(1, static_cast<uint64_t>(uses));
  const uint64_t block_steps = std::max<uint64_t>(1, (steps + blocks / 2) / blocks);
  OtherMode shape{.mode = {},
                  .period = s.once() ? *events_per_day : p.period,
                  .words = s.once() ? "a day is held, and learnt from only once it is over"
                                    : "the same periods are held"};
  std::vector<OtherMode> modes;
  if (p.mode != Participation::Mode::kPoisson) {
    shape.mode = "poisson";
    TACIT_ASSIGN(OtherMode poisson, Calibrated(s,
                                               {.sampled = true,
                                                .steps = steps * passes,
                                                .draw = {.rate = rate, .known = s.KnowsCoins()}},
                                               passes, shape, laws));
    modes.push_back(std::move(poisson));
  }
  if (p.mode != Participation::Mode::kAllocate && s.plan.charge.zcdp_rho == 0 && !s.KnowsCoins()) {
    shape.mode = "allocate";
    TACIT_ASSIGN(OtherMode allocate, Calibrated(s,
                                                {.sampled = true,
                                                 .steps = blocks * block_steps * passes,
                                                 .draw = privacy::Draw::Allocate(block_steps)},
                                                passes, shape, laws));
    modes.push_back(std::move(allocate));
  }
  return modes;
}

// The reason that no held period can be compared with `once`, or "".
std::string NoDayToHold(const Subject& s, std::optional<uint64_t> events_per_day) {
  if (!events_per_day) return "not known: how long a day is (--events-per-day N)";
  if (*events_per_day <= s.learner.participation.batch)
    return "not computed: a day is no longer than one batch";
  return "";
}

// Computes what `once` would need. A mechanism with a histogram needs periods that are held. How
// often a user would be in a step is another question.
Result<std::vector<OtherMode>> AsOnce(const Subject& s, const privacy::Laws& laws) {
  std::vector<OtherMode> modes;
  if (s.once() || s.of_users() || s.learner.mechanism.observes_periods()) return modes;
  std::vector<uint64_t> participations{1};
  if (s.passes() > 1) participations.push_back(s.passes());
  for (const uint64_t k : participations) {
    TACIT_ASSIGN(OtherMode once,
                 Calibrated(s, {.steps = k}, k,
                            {.mode = "once",
                             .words = fmt::format("no amplification: {} in full an event; nothing "
                                                  "is held, learns as events come",
                                                  Counted(k, "step"))},
                            laws));
    modes.push_back(std::move(once));
  }
  return modes;
}

Result<std::vector<OtherMode>> Others(const Subject& s, std::optional<uint64_t> events_per_day,
                                      const privacy::Laws& laws) {
  TACIT_ASSIGN(std::vector<OtherMode> others, AsOnce(s, laws));
  const std::string why_not = s.once() ? NoDayToHold(s, events_per_day) : "";
  if (s.once() && (s.of_users() || !s.learner.model.traits().only_once.empty())) return others;
  if (why_not.empty()) {
    TACIT_ASSIGN(std::vector<OtherMode> held, HeldModes(s, events_per_day, laws));
    for (OtherMode& mode : held) others.push_back(std::move(mode));
  } else {
    for (const char* mode : {"poisson", "allocate"})
      others.push_back({.mode = mode, .words = why_not});
  }
  others.push_back({.mode = "correlated", .words = "refused: no accountant"});
  return others;
}

Result<LearnerForecast> Forecast(const Subject& s, std::optional<uint64_t> events_per_day,
                                 Answers* answers) {
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
                           .allowance = s.of_users() ? promise.bounds.allowance : 0,
                           .steps_unknown = StepsUnknown(s),
                           .noise = SignalText(s.learner, s.plan, s.FileRecords(events_per_day)),
                           .untouched_rows = s.plan.model->UntouchedRows(),
                           .rows = s.plan.model->RowsText(),
                           .not_covered = privacy::NotCovered(s.plan.charge.mechanism)};
  TACIT_ASSIGN(forecast.ahead,
               Ahead({s}, promise.delta, {}, events_per_day, answers, &forecast.tells));
  if (!s.is_private()) return forecast;
  TACIT_ASSIGN(forecast.others, Others(s, events_per_day, answers->laws()));
  const privacy::Charge& charge = s.plan.charge;
  const bool sampled_gaussian =
      charge.zcdp_rho == 0 && !s.once() && charge.block_steps == 0 && !s.plan.opening_charge;
  if (sampled_gaussian)
    forecast.estimate = privacy::GdpCltEpsilonEstimate(
        charge.noise_multiplier, charge.sampling_rate, s.learner.participation.steps_per_period,
        Delta(promise.delta));
  return forecast;
}

// Warns where the configuration's batch and delta do not fit the number of events.
void WarnOfEvents(const Subject& s, std::optional<uint64_t> events_per_day,
                  std::vector<std::string>* warnings) {
  const std::string& id = s.plan.promise.learner;
  const Participation& p = s.learner.participation;
  uint64_t period = p.period;
  if (period == 0 && p.period_files <= 1) period = events_per_day.value_or(0);
  const double expected = p.Rate() * static_cast<double>(period);
  const auto batch = static_cast<double>(p.batch);
  if (!s.once() && !s.of_users() && period > 0 && std::abs(batch - expected) > 0.1 * expected)
    warnings->push_back(fmt::format(
        "learner '{}': participation.batch is {}, but {} of a period of {} is {:.0f}: updates are "
        "divided by the former",
        id, WithThousands(p.batch),
        p.mode == Participation::Mode::kPoisson ? fmt::format("sampling_rate {}", p.sampling_rate)
                                                : fmt::format("1 / {}", p.steps_per_period),
        Counted(period, "event"), expected));
  if (!s.is_private()) return;
  if (std::string few = TooFewRecords(s.learner, s.plan, s.FileRecords(events_per_day));
      !few.empty())
    warnings->push_back(std::move(few));
  const double delta = s.plan.promise.delta;
  if (events_per_day && delta * static_cast<double>(*events_per_day) >= 1) {
    warnings->push_back(
        fmt::format("learner '{}': privacy.delta {} is not below 1 / {}, one over the events of a "
                    "day: the promise would still hold if some events were revealed whole",
                    id, delta, WithThousands(*events_per_day)));
  } else if (!events_per_day && delta > 1e-5 && privacy::WeaknessOf(0, delta).delta.empty()) {
    warnings->push_back(fmt::format(
        "learner '{}': privacy.delta {} is large; it should be well below one over the number of "
        "events (--events-per-day N)",
        id, delta));
  }
}

// No step is taken that crosses the total budget, so that all it leaves room for is spent at most.
void KeepWithinBudget(PrivacyForecast* forecast) {
  if (!forecast->budget) return;
  EpsilonAhead& total = forecast->total;
  for (double* ahead :
       {&total.period, &total.day, &total.days_30, &total.year, &total.all_passes, &total.allowed})
    *ahead = std::min(*ahead, forecast->budget->epsilon);
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
          fmt::format("learner '{}' is not private: nothing bounds what it reveals", learner.id));
}

}  // namespace

std::string ChargeText(const privacy::Charge& charge) {
  std::string text;
  const auto add = [&](const char* name, double value) {
    if (value > 0) text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", name, value);
  };
  if (std::isfinite(charge.noise_multiplier)) add("noise multiplier", charge.noise_multiplier);
  add("selection", charge.sigma_selection);
  add("gradient", charge.sigma_gradient);
  add("clip count", charge.sigma_clip);
  add("zCDP rho", charge.zcdp_rho);
  return text.empty() ? "no noise" : text;
}

Result<PrivacyForecast> ForecastPrivacy(const Assembly& assembly,
                                        std::optional<uint64_t> events_per_day,
                                        privacy::Laws laws) {
  const config::Source& source = assembly.config.source;
  PrivacyForecast forecast;
  forecast.events_per_day = events_per_day;
  if (const auto each_day = source.records_per_day()) forecast.events_per_day = each_day;
  forecast.budget = assembly.total_budget;
  std::vector<Subject> subjects;
  Answers answers(std::move(laws));
  for (size_t i = 0; i < assembly.learners.size(); ++i) {
    const Subject subject{assembly.config.learners[i], source, assembly.learners[i]};
    const privacy::Promise& promise = subject.plan.promise;
    forecast.delta = std::max(forecast.delta, promise.delta);
    TACIT_ASSIGN(LearnerForecast learner, Forecast(subject, forecast.events_per_day, &answers));
    forecast.learners.push_back(std::move(learner));
    WarnOfEvents(subject, forecast.events_per_day, &forecast.warnings);
    subjects.push_back(subject);
  }
  for (const QualityPlan& plan : assembly.qualities)
    forecast.delta = std::max(forecast.delta, plan.promise.delta);
  if (assembly.breaker) forecast.delta = std::max(forecast.delta, assembly.breaker->promise.delta);
  for (std::string& weak : WeakPromises(assembly)) forecast.warnings.push_back(std::move(weak));
  for (std::string& refused : FirstStepsRefused(assembly, answers.laws()))
    forecast.warnings.push_back(std::move(refused));
  if (forecast.budget) forecast.delta = forecast.budget->delta;
  if (subjects.empty()) {  // every learner was refused
    forecast.total = UnboundedAhead();
    return forecast;
  }
  const bool of_users = std::ranges::all_of(subjects, &Subject::of_users);
  forecast.unit = of_users ? privacy::Unit::kUser : privacy::Unit::kEvent;
  forecast.breaker = assembly.breaker;
  forecast.qualities = assembly.qualities;
  Events once = assembly.breaker ? assembly.breaker->charge.Events(1) : Events();
  for (const QualityPlan& plan : assembly.qualities)
    for (const auto& event : plan.charge.Events(plan.passes_most)) once.push_back(event);
  TACIT_ASSIGN(forecast.total, Ahead(subjects, forecast.delta, once, forecast.events_per_day,
                                     &answers, &forecast.tells));
  Warn(&forecast);
  KeepWithinBudget(&forecast);
  return forecast;
}

}  // namespace tacit::wiring
