#include "privacy/forecast.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "privacy/query_table.h"
#include "privacy/user_costs.h"

namespace tacit::privacy {
namespace {

constexpr double kDayMs = 86400e3;
constexpr double kHorizonMs = 100 * 365.25 * kDayMs;
// A shorter history does not support a forecast.
constexpr int64_t kLeastHistoryMs = 1000;
constexpr uint64_t kLeastSteps = 10;

}  // namespace

Growth Growth::Of(std::span<const LedgerEntry> entries, std::string_view learner) {
  const LearnerNames names(entries);
  std::vector<const LedgerEntry*> own;
  for (const LedgerEntry& entry : entries)
    if (names.Now(entry.learner) == learner) own.push_back(&entry);
  Growth growth;
  if (!own.empty()) growth.Observe(own);
  return growth;
}

void Growth::Observe(const std::vector<const LedgerEntry*>& own) {
  now_ = own.back()->worst;
  begin_ms_ = own.front()->first_time_ms;
  uint64_t steps = 0, sampled_steps = 0;
  for (const LedgerEntry* entry : own) {
    end_ms_ = std::max(end_ms_, entry->last_time_ms);
    steps += entry->steps;
    if (entry->charge.sampling_rate < 1) sampled_steps += entry->steps;
  }
  if (!now_.bounded()) {
    kind_ = Kind::kUnbounded;
    return;
  }
  const bool enough = end_ms_ - begin_ms_ >= kLeastHistoryMs && steps >= kLeastSteps;
  if (own.front()->unit == Unit::kUser) {
    const uint64_t allowance = own.back()->bounds.allowance;
    const bool used_up = allowance > 0 && steps >= allowance;
    kind_ = used_up ? Kind::kConstant : enough ? Kind::kByStep : Kind::kTooLittle;
    each_step_costs_ = !used_up;
    gained_ = now_;
    gains_ = static_cast<double>(steps);
    return;
  }
  ObservePasses(own);
  if (gains_ > 0) {
    kind_ = enough && last_gain_ms_ > begin_ms_ ? Kind::kByPass : Kind::kTooLittle;
  } else if (sampled_steps > 0 && now_.SampledSteps() >= sampled_steps) {
    kind_ = Kind::kTooLittle;  // still the first period: every step was on the same records
  } else {
    kind_ = Kind::kConstant;
  }
}

// Finds passes. A step on records used before begins an entry of its own, unless the previous
// step's records were used before too: a sampled period's steps are all on the same records. The
// first charge of a setting is not another use.
void Growth::ObservePasses(const std::vector<const LedgerEntry*>& own) {
  struct Setting {
    const Charge* charge;
    Spending first, latest;  // cost of the first pass, and of the current one
    bool growing = true;     // at its last entry
    bool again = false;      // a pass after the first has begun
    uint64_t seen = 0;       // entries that cost something, up to the setting's last one
    double passes = 0;       // passes after the first that it has paid for
  };
  std::vector<Setting> settings;
  Spending before;
  uint64_t costly = 0;
  for (const LedgerEntry* entry : own) {
    if (entry->steps == 0) continue;  // paid for before
    const Spending gain = Difference(entry->worst, std::exchange(before, entry->worst));
    const bool growing = gain.SampledSteps() == entry->steps;
    auto setting = std::find_if(settings.begin(), settings.end(),
                                [&](const Setting& s) { return *s.charge == entry->charge; });
    pending_ = {};
    const uint64_t costly_before = costly;
    if (!gain.empty()) ++costly;
    if (setting == settings.end()) {
      settings.push_back({&entry->charge, gain, gain, growing, false, costly, 0});
      continue;
    }
    // If another setting (a period's opening, say) cost something in between, records are used
    // again.
    const bool returns = costly_before > std::exchange(setting->seen, costly);
    if (!gain.empty() && (!setting->growing || returns)) {
      // A pass may cost in several settings: the opening of its periods and their steps.
      gains_ = std::max(gains_, ++setting->passes);
      last_gain_ms_ = entry->first_time_ms;
      setting->again = true;
      setting->latest = {};
    }
    setting->growing = growing;
    setting->latest.Add(gain);
    if (setting->again) {
      gained_.Add(gain);
      if (growing) pending_ = Difference(setting->first, setting->latest);
    } else {
      setting->first.Add(gain);
    }
  }
  gained_.Add(pending_);
}

Spending Growth::AfterOneMore() const {
  Spending then = now_;
  if (each_step_costs_) then.Add(Scaled(gained_, 1 / gains_));
  return then;
}

Growth Growth::AtRest() const {
  Growth rest = *this;
  if (kind_ != Kind::kNothing && kind_ != Kind::kUnbounded) rest.kind_ = Kind::kConstant;
  rest.pending_ = {};
  rest.each_step_costs_ = false;
  return rest;
}

Spending Growth::At(double time_ms) const {
  double share = 0;  // future gain, as a share of gained_
  if (kind_ == Kind::kByStep) {
    share = (time_ms - static_cast<double>(end_ms_)) / static_cast<double>(end_ms_ - begin_ms_);
  } else if (kind_ == Kind::kByPass) {
    const double each = static_cast<double>(last_gain_ms_ - begin_ms_) / gains_;
    // An overdue pass may come at any time from the next moment on.
    const double last = static_cast<double>(last_gain_ms_), end = static_cast<double>(end_ms_);
    share = std::floor((time_ms - (last + each > end ? last : end)) / each) / gains_;
  }
  Spending then = now_;
  if (time_ms > static_cast<double>(end_ms_)) then.Add(pending_);
  if (share > 0) then.Add(Scaled(gained_, share));
  return then;
}

std::optional<Spending> MostEver(std::span<const LedgerEntry> entries, std::string_view learner,
                                 const UseLimits& limits) {
  const LearnerNames names(entries);
  Spending most, now;
  UserCosts users;
  std::vector<const Charge*> charges;  // per charge, limits.steps or releases
  for (const LedgerEntry& entry : entries) {
    if (names.Now(entry.learner) != learner) continue;
    if (!entry.worst.bounded()) return std::nullopt;
    if (entry.unit == Unit::kUser) users.Bound(entry.bounds);
    if (entry.unit == Unit::kUser && users.unbounded()) return std::nullopt;
    now = entry.worst;
    const Charge& charge = entry.charge;
    if (std::any_of(charges.begin(), charges.end(), [&](auto* c) { return *c == charge; }))
      continue;
    charges.push_back(&charge);
    const bool release = IsOfPeriod(charge);
    most.Add(Spending::Of(charge, release ? limits.releases : limits.steps));
    users.Add(charge, ~uint64_t{0} >> 1);  // as often as the allowance permits
  }
  if (!users.unbounded()) most = users.Worst();
  if (charges.empty()) return std::nullopt;
  // Earlier spending may stem from another configuration that allowed more.
  if (!most.Covers(now)) most.Add(now);
  return most;
}

namespace {

// Checks that one more step fits the budget: of some learner whose steps cost, where there is any.
bool MayStep(std::span<const Growth> growths, const TotalBudget& budget) {
  const auto fits = [&](const Growth* one) {
    Spending sum;
    for (const Growth& growth : growths)
      sum.Add(&growth == one ? growth.AfterOneMore() : growth.now());
    return EpsilonMeter().Bounds(sum, Delta(budget.delta)).upper <= budget.epsilon;
  };
  const bool costs = std::ranges::any_of(growths, &Growth::each_step_costs);
  if (!costs) return fits(nullptr);
  return std::ranges::any_of(
      growths, [&](const Growth& one) { return one.each_step_costs() && fits(&one); });
}

double EpsilonAt(std::span<const Growth> growths, double time_ms, double delta) {
  Spending sum;
  for (const Growth& growth : growths) sum.Add(growth.At(time_ms));
  return EpsilonMeter().Bounds(sum, Delta(delta)).upper;
}

// The first moment at which the budget is crossed, to the minute or a ten-thousandth of the way.
double CrossingAfter(std::span<const Growth> growths, const TotalBudget& budget, double from) {
  const auto crossed = [&](double ahead) {
    return EpsilonAt(growths, from + ahead, budget.delta) > budget.epsilon;
  };
  double low = 0, high = 60e3;
  while (high < kHorizonMs && !crossed(high)) {
    low = high;
    high *= 2;
  }
  if (high >= kHorizonMs && !crossed(kHorizonMs)) return kHorizonMs;
  high = std::min(high, kHorizonMs);
  while (high - low > std::max(60e3, 1e-4 * high)) {
    const double middle = low + (high - low) / 2;
    (crossed(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

Forecast Foretell(std::span<const Growth> growths, const TotalBudget& budget,
                  const std::optional<Spending>& most) {
  Forecast forecast{.budget = budget.epsilon, .delta = budget.delta};
  bool grows = false, too_little = false, nothing = true, unbounded = false;
  for (const Growth& growth : growths) {
    using Kind = Growth::Kind;
    if (growth.kind() == Kind::kNothing) continue;
    forecast.begin_ms =
        nothing ? growth.begin_ms() : std::min(forecast.begin_ms, growth.begin_ms());
    forecast.end_ms = std::max(forecast.end_ms, growth.end_ms());
    nothing = false;
    unbounded |= growth.kind() == Kind::kUnbounded;
    too_little |= growth.kind() == Kind::kTooLittle;
    grows |= growth.kind() == Kind::kByStep || growth.kind() == Kind::kByPass;
  }
  // Histories that end sooner are not grown to the last one's end: this was not spent.
  Spending now;
  for (const Growth& growth : growths) now.Add(growth.now());
  forecast.epsilon = EpsilonMeter().Bounds(now, Delta(budget.delta)).upper;
  if (most) forecast.most = EpsilonMeter().Bounds(*most, Delta(budget.delta)).upper;
  using Kind = Forecast::Kind;
  if (unbounded || !std::isfinite(budget.epsilon) || !(budget.epsilon > 0)) {
    forecast.kind = Kind::kNoBudget;
  } else if (nothing) {
    forecast.kind = Kind::kNothingSpent;
  } else if (most && forecast.most <= budget.epsilon) {
    forecast.kind = Kind::kBounded;
  } else if (!MayStep(growths, budget)) {
    forecast.kind = Kind::kExhausted;
  } else if (too_little) {
    forecast.kind = Kind::kTooLittleHistory;
  } else if (!grows) {
    forecast.kind = Kind::kConstant;
  } else {
    const double ahead = CrossingAfter(growths, budget, static_cast<double>(forecast.end_ms));
    forecast.kind = ahead < kHorizonMs ? Kind::kRunsOut : Kind::kBeyondHorizon;
    forecast.runs_out_ms = forecast.end_ms + static_cast<int64_t>(ahead);
  }
  return forecast;
}

}  // namespace tacit::privacy
