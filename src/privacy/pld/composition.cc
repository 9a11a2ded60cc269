#include "privacy/pld/composition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "privacy/pld/transform.h"

namespace tacit::privacy::pld {
namespace {

// Bounds this close are accepted: relative, and absolute in epsilon.
constexpr double kClose = 1.5e-3;
constexpr double kCloseEpsilon = 7e-7;
constexpr int kMostPlans = 5;
// The sketches of laws that plans are made by end where this is left of them: a lesser delta at
// some epsilon is bounded, and not told sharply.
constexpr double kLeastTold = 1e-20;
// UpperEpsilon's lattices are a little coarser than those of any later question about the same
// events, so that its answer is the higher one.
constexpr double kCoarser = 1.3;
constexpr double kMostRounding = 0.05;
constexpr double kMostEvents = 2e11;  // each rounds at least 1000 times
// Limit of stored transform values of all kinds together, per side; beyond it a coarser lattice is
// used.
constexpr double kMostFrequencies = 1 << 24;
constexpr double kMostWork = 4e8;
constexpr int64_t kLongestFft = 1 << 22;

// Later plans are for laws with heavy tails, which need more cells there.
double CellsFor(int plans) {
  return plans == 1 ? kUsualCells : kUsualCells * std::sqrt(std::exp2(plans - 0.5));
}

// Checks that a plan made for one epsilon is tight at another. If the plan's is higher, its tilt
// exceeds the answer's and bounds loosen quickly.
bool IsNear(double planned, double found) {
  return planned < 1.1 * found + 1e-6 && planned > 0.7 * found - 1e-6;
}

Error TooManyEvents() {
  return {ErrorCode::kRefused,
          "too many events: rounding could decide this answer, so there is none"};
}

Error NoBound() {
  return {ErrorCode::kRefused, "no bound can be certified for these events at this delta"};
}

// An event beyond these limits promises nothing, and its loss leaves no room for the others'.
constexpr double kMostEpsilon = 1e4, kMostZcdp = 1e3;

// Refuses events whose bound would be absurd before they are put on a lattice.
Status CheckSizes(std::span<const Counted> events) {
  for (const Counted& counted : events) {
    const Event& event = counted.kind->event;
    const double sigma = event.noise_multiplier;
    const bool gaussian = event.kind == EventKind::kGaussian ||
                          event.kind == EventKind::kPoissonGaussian ||
                          event.kind == EventKind::kAllocation;
    const double epsilon = gaussian ? 0.5 / (sigma * sigma) : event.epsilon;
    if (epsilon > kMostEpsilon)
      return Fail(
          ErrorCode::kRefused,
          fmt::format("an event of {} {:g} promises nothing, and is not composed with others",
                      gaussian ? "noise multiplier" : "epsilon", gaussian ? sigma : epsilon));
    if (event.kind == EventKind::kZcdp && event.rho * counted.count > kMostZcdp)
      return Fail(ErrorCode::kRefused,
                  fmt::format("zCDP of {:g} in all promises nothing, and is not composed",
                              event.rho * counted.count));
  }
  return {};
}

int64_t PowerOfTwoFrom(int64_t value) {
  int64_t power = 4;
  while (power < value) power *= 2;
  return power;
}

}  // namespace

void Composition::Add(const Event& event, double count) {
  for (Counted& counted : events_) {
    if (event.kind == EventKind::kZcdp && counted.kind->event.kind == EventKind::kZcdp) {
      // rho adds up exactly; composing the curves would cost more.
      const double rho = counted.kind->event.rho + count * event.rho;
      // Drops all results for the old kind: a stream adds to it with every step.
      plan_.reset();
      upper_.reset();
      lower_.reset();
      chernoff_.reset();
      kinds_.remove_if([&](const Kind& kind) { return &kind == counted.kind; });
      kinds_.emplace_back(Event::Zcdp(rho), direction_, source_);
      counted.kind = &kinds_.back();
      return;
    }
    if (counted.kind->event == event) {
      counted.count += count;
      return;
    }
  }
  const bool zcdp = event.kind == EventKind::kZcdp;
  kinds_.emplace_back(zcdp ? Event::Zcdp(count * event.rho) : event, direction_, source_);
  events_.push_back({&kinds_.back(), zcdp ? 1 : count});
}

Result<LatticeLaws> Composition::LawsOf(const Counted& counted, const Plan& plan, bool both) const {
  const double centre = CumulantsAt(counted, plan.tilt).mean;
  const Grid grid = MakeGrid(*counted.kind->law, plan.step, plan.Spacing(counted.count), centre,
                             plan.tail, plan.cells_per_scale);
  LatticeLaws laws = counted.kind->event.kind == EventKind::kZcdp
                         ? DiscretiseZcdp(counted.kind->event.rho, grid)
                         : Discretise(*counted.kind->law, grid, both);
  if (!IsWhole(laws.upper)) return Fail(NoBound());
  return laws;
}

Saddle Composition::SaddleFor(double log_delta) const {
  Cap(events_, log_delta);
  return SaddleForDelta(events_, log_delta);
}

// The caps need a delta, which a first look with loose caps provides.
Saddle Composition::SaddleAt(double epsilon) const {
  Cap(events_, -80);
  Cap(events_, SaddleForEpsilon(events_, epsilon).log_delta - 5);
  const Saddle saddle = SaddleForEpsilon(events_, epsilon);
  const double least = std::log(kLeastTold);
  return saddle.log_delta < least ? SaddleFor(least) : saddle;
}

Status Composition::Replan(const Saddle& saddle, double budget, double cells, bool both) {
  plan_.reset();
  double all = 0;
  for (const Counted& counted : events_) all += counted.count;
  if (all > kMostEvents) return Fail(TooManyEvents());
  for (bool mind_edges = both; budget < 1e12; budget *= mind_edges ? 1 : 4, mind_edges = false) {
    Plan plan = MakePlan(events_, saddle, budget, cells, mind_edges);
    std::vector<LatticeLaws> laws;
    std::vector<Side::Entry> uppers, lowers;
    for (const Counted& counted : events_) {
      TACIT_ASSIGN(LatticeLaws of, LawsOf(counted, plan, both));
      laws.push_back(std::move(of));
    }
    double points = 0;
    for (size_t i = 0; i < laws.size(); ++i) {
      uppers.push_back({&laws[i].upper, events_[i].count});
      lowers.push_back({&laws[i].lower, events_[i].count});
      points += static_cast<double>(laws[i].upper.index.size());
    }
    TACIT_RETURN_IF_ERROR(ChooseWindow(plan, [&](double tilt) {
      double sum = 0;
      for (size_t i = 0; i < laws.size(); ++i)
        sum += events_[i].count * LogMoment(laws[i].upper, plan.step, tilt, 0);
      return sum;
    }));
    Side upper(plan, true), lower(plan, false);
    int64_t count = upper.ChooseFrequencies(uppers);
    if (both) count = std::max(count, lower.ChooseFrequencies(lowers));
    const int64_t power = PowerOfTwoFrom(plan.period);
    const double kinds = static_cast<double>(laws.size());
    if (power <= kLongestFft && WantsFft(static_cast<size_t>(points / kinds), power, count)) {
      plan.period = power;
      count = power / 2 + 1;
      upper = Side(plan, true);
      lower = Side(plan, false);
      upper.SetFrequencies(count);
      lower.SetFrequencies(count);
    } else if (static_cast<double>(count) * points > kMostWork) {
      continue;
    }
    if (static_cast<double>(count) * kinds > kMostFrequencies) continue;
    for (size_t i = 0; i < laws.size(); ++i) {
      upper.AddPart(events_[i].kind, laws[i].upper);
      if (both) lower.AddPart(events_[i].kind, laws[i].lower);
    }
    plan_ = plan;
    upper_ = std::move(upper);
    lower_.reset();
    if (both) lower_ = std::move(lower);
    return {};
  }
  return Fail(ErrorCode::kInvalidArgument,
              "these events differ too much in size to be composed at this delta");
}

// Adds parts for new kinds and updates the counts.
Status Composition::Refresh() {
  for (const Counted& counted : events_) {
    if (upper_->Has(counted.kind)) continue;
    TACIT_ASSIGN(const LatticeLaws laws, LawsOf(counted, *plan_, lower_.has_value()));
    upper_->AddPart(counted.kind, laws.upper);
    if (lower_) lower_->AddPart(counted.kind, laws.lower);
  }
  upper_->SetCounts(events_);
  if (lower_) lower_->SetCounts(events_);
  return {};
}

// Drops results for far fewer events or other kinds, which would mislead.
void Composition::ForgetStale() {
  double count = 0;
  for (const Counted& counted : events_) count += counted.count;
  if (count > 1.5 * last_count_ || events_.size() != last_kinds_) {
    last_.reset();
    accepted_epsilon_ = accepted_delta_ = 0;
    last_count_ = count;
    last_kinds_ = events_.size();
  }
  // A plan for small events does not fit large ones either.
  if (!plan_) return;
  double more = 0;
  for (const Counted& counted : events_)
    if (!upper_->Has(counted.kind)) more += counted.count * CumulantsAt(counted, 0).variance;
  if (more > 0.5 * plan_->saddle.cumulants.variance) plan_.reset();
}

// Asks under the current plan; if the bounds are far apart, under a new one, and then under plans
// based on the last result. `ask` returns the bounds and their distance.
template <class MakeSaddle, class Ask>
Result<Interval> Composition::Answer(MakeSaddle make_saddle, Ask ask, double enough,
                                     double& accepted) {
  if (events_.empty()) return Interval{};
  ForgetStale();
  Interval best{0, std::numeric_limits<double>::infinity()};
  double budget = std::numeric_limits<double>::infinity();
  for (int plans = plan_ && lower_ ? 0 : 1;; ++plans) {
    if (plans > 0) {
      const Saddle saddle = make_saddle();
      const double known =
          last_ ? BudgetFor(last_->epsilon, last_->slope) / 2.5 : UsualBudget(saddle);
      budget = std::min({budget / 4, known, UsualBudget(saddle)});
      TACIT_RETURN_IF_ERROR(Replan(saddle, budget, CellsFor(plans), true));
    }
    TACIT_RETURN_IF_ERROR(Refresh());
    if (upper_->rounding() > kMostRounding) {
      if (plans == 0) continue;
      plan_.reset();
      // A distant earlier question may have caused this tilt.
      if (!std::exchange(last_, std::nullopt)) return Fail(TooManyEvents());
      continue;
    }
    const Asked asked = ask(*upper_, *lower_);
    // The bounds of every plan hold. Where they contradict each other, some arithmetic has failed.
    best = {std::max(best.lower, asked.interval.lower), std::min(best.upper, asked.interval.upper)};
    if (best.lower > best.upper) {
      plan_.reset();
      last_.reset();
      return Fail(NoBound());
    }
    if (std::isinf(asked.interval.upper)) {
      plan_.reset();
      const bool misled = std::exchange(last_, std::nullopt).has_value();
      if ((misled || plans == 0) && plans < kMostPlans) continue;
      if (std::isinf(best.upper)) return Fail(NoBound());
      return best;
    }
    last_ = asked;
    const bool close = asked.distance <= kCloseEpsilon + std::max(kClose, accepted) * asked.epsilon;
    // Bounds that are merely enough say nothing of what finer lattices would reach.
    if (close || best.upper <= enough) return best;
    // A plan of a distant question says little of where the next one belongs.
    if (plans == 0 && !IsNear(plan_->saddle.epsilon, asked.epsilon)) last_.reset();
    if (plans == kMostPlans) {
      accepted = 1.25 * asked.distance / std::max(asked.epsilon, kCloseEpsilon);
      return best;
    }
  }
}

// Checks for a heavy tail, which has most of the variance under the tilt: a first plan is likely to
// be far off.
bool Composition::IsHeavy(double log_delta) {
  const Saddle saddle = SaddleFor(log_delta);
  return saddle.cumulants.variance >= 3 * CumulantsAt(events_, 0).variance;
}

// Asks the upper side alone, which costs little; infinite if it gives no bound.
double Composition::LookAhead(double log_delta) {
  std::optional<Hint> found;
  const Result<double> epsilon = UpperEpsilon(log_delta, found);
  if (!epsilon) return std::numeric_limits<double>::infinity();
  last_ = Asked{{0, *epsilon}, *epsilon, *epsilon, found->slope};
  return *epsilon;
}

Result<std::optional<double>> Composition::CheapUpper(double log_delta) {
  TACIT_RETURN_IF_ERROR(CheckSizes(events_));
  if (events_.empty() || !IsHeavy(log_delta)) return std::optional<double>();
  std::optional<Hint> none;
  TACIT_ASSIGN(const double epsilon, UpperEpsilon(log_delta, none));
  return std::optional(epsilon);
}

Result<Interval> Composition::Epsilon(double log_delta, double enough) {
  if (events_.empty()) return Interval{};
  TACIT_RETURN_IF_ERROR(CheckSizes(events_));
  ForgetStale();
  double seen = std::numeric_limits<double>::infinity();
  if (!last_ && !(plan_ && lower_) && IsHeavy(log_delta)) seen = LookAhead(log_delta);
  const auto make_saddle = [&] {
    if (!last_ || !(last_->epsilon > 0)) return SaddleFor(log_delta);
    Cap(events_, log_delta);
    Saddle saddle = SaddleForEpsilon(events_, last_->epsilon);
    saddle.log_delta = log_delta;
    return saddle;
  };
  auto interval = Answer(
      make_saddle,
      [&](const Side& upper, const Side& lower) {
        Asked asked;
        asked.epsilon = upper.Epsilon(
            log_delta, last_ && last_->epsilon > 0 ? last_->epsilon : plan_->saddle.epsilon);
        if (std::isinf(asked.epsilon)) return Asked{{0, asked.epsilon}, asked.epsilon, 0, 0};
        asked.interval = {lower.Epsilon(log_delta, asked.epsilon), asked.epsilon};
        asked.distance = asked.epsilon - asked.interval.lower;
        asked.slope = upper.Slope(asked.epsilon);
        return asked;
      },
      enough, accepted_epsilon_);
  if (interval) interval->upper = std::min(interval->upper, seen);
  return interval;
}

Result<Interval> Composition::DeltaAt(double epsilon) {
  TACIT_RETURN_IF_ERROR(CheckSizes(events_));
  return Answer([&] { return SaddleAt(epsilon); },
                [&](const Side& upper, const Side& lower) {
                  Asked asked{{lower.DeltaAt(epsilon), upper.DeltaAt(epsilon)}, 0, epsilon, 0};
                  const auto& [low, high] = asked.interval;
                  asked.slope = upper.Slope(epsilon);
                  // Beside the greatest loss the lower curve ends: it is as far off as the epsilon
                  // where it reaches the upper bound.
                  if (high > std::max(low, kLeastTold))
                    asked.distance = low > 0 ? std::log(high / low) / std::max(asked.slope, 1e-3)
                                             : epsilon - lower.Epsilon(std::log(high), epsilon);
                  return asked;
                },
                -1, accepted_delta_);
}

// Asks under a plan for the hint, then under plans based on the last result, until one fits;
// returns the least bound. A distant hint is dropped: its tilt may leave nothing but rounding.
Result<double> Composition::UpperEpsilon(double log_delta, std::optional<Hint>& hint) {
  if (events_.empty()) return 0.0;
  TACIT_RETURN_IF_ERROR(CheckSizes(events_));
  std::optional<Hint> best;
  for (int plans = 1;; ++plans) {
    Saddle saddle = SaddleFor(log_delta);
    if (hint && hint->epsilon > 0) {
      saddle = SaddleForEpsilon(events_, hint->epsilon);
      saddle.log_delta = log_delta;
    }
    double budget = UsualBudget(saddle);
    if (hint) budget = std::min(budget, BudgetFor(hint->epsilon, hint->slope));
    const bool is_told = plans == 1 && hint;
    auto found = UpperUnder(saddle, kCoarser * budget, log_delta);
    if (!found) {
      if (best) break;
      if (!is_told) return Fail(std::move(found.error()));
      hint.reset();
      continue;
    }
    if (!best || found->epsilon < best->epsilon) best = *found;
    const bool is_near = IsNear(saddle.epsilon, found->epsilon);
    const bool is_fine = BudgetFor(found->epsilon, found->slope) > budget / 2;
    if ((is_near && is_fine) || plans == kMostPlans) break;
    hint = *found;
    if (is_told && !is_near) hint.reset();
  }
  hint = best;
  return best->epsilon;
}

Result<Composition::Hint> Composition::UpperUnder(const Saddle& saddle, double budget,
                                                  double log_delta) {
  TACIT_RETURN_IF_ERROR(Replan(saddle, budget, kUsualCells, false));
  TACIT_RETURN_IF_ERROR(Refresh());
  if (upper_->rounding() > kMostRounding) return Fail(TooManyEvents());
  const double epsilon = upper_->Epsilon(log_delta, saddle.epsilon);
  if (std::isinf(epsilon)) return Fail(NoBound());
  return Hint{epsilon, upper_->Slope(epsilon)};
}

// E[(1 - e^(epsilon - L))_+] <= E[e^(c L)] e^(-c epsilon) c^c / (1 + c)^(1 + c).
Result<double> Composition::ChernoffLogDelta(double epsilon, bool afresh) {
  if (!chernoff_ || afresh) {
    const Saddle saddle = SaddleAt(epsilon);
    chernoff_.emplace();
    chernoff_->plan = MakePlan(events_, saddle, UsualBudget(saddle), kUsualCells, true);
  }
  const Plan& plan = chernoff_->plan;
  double log_moment = 0, infinite = 0, rounding = 0;
  for (const Counted& counted : events_) {
    auto [place, is_new] = chernoff_->of.try_emplace(counted.kind);
    if (is_new) {
      auto laws = LawsOf(counted, plan, false);
      if (!laws) {
        chernoff_.reset();
        return Fail(std::move(laws.error()));
      }
      const LatticeLaw& law = laws->upper;
      place->second = {LogMoment(law, plan.step, plan.tilt, 0), law.infinite_mass,
                       0x1p-53 * (2 * static_cast<double>(law.index.size()) + 100)};
    }
    const Moment& moment = place->second;
    log_moment += counted.count * moment.log_moment;
    infinite += counted.count * moment.infinite_mass;
    rounding += counted.count * (moment.rounding + 0x1p-50 * std::abs(moment.log_moment));
  }
  const double c = plan.tilt;
  const double log_delta =
      log_moment + rounding - c * epsilon - std::log1p(c) - c * std::log1p(1 / c);
  return std::log(std::exp(log_delta) + infinite);
}

}  // namespace tacit::privacy::pld
