#include "wiring/restore/gap.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/text.h"
#include "privacy/chain.h"
#include "store/witness/price_tally.h"
#include "train/learner/position.h"

namespace tacit::wiring {
namespace {

auto RefuseLearner(const LearnerPlan& plan, std::string_view why) {
  return Fail(ErrorCode::kRefused, fmt::format("learner '{}': {}", plan.id, why));
}

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

// Sums and products that end at the greatest number: what is remembered may be any.
uint64_t Plus(uint64_t a, uint64_t b) { return a > kMost - b ? kMost : a + b; }
uint64_t Times(uint64_t a, uint64_t b) { return b > 0 && a > kMost / b ? kMost : a * b; }

uint64_t SizeOf(const std::vector<OffsetRange>& ranges) {
  uint64_t offsets = 0;
  for (const OffsetRange& range : ranges) offsets = Plus(offsets, range.size());
  return offsets;
}

// The offsets that the lost steps covered, in each partition: from where the copy reads on to where
// the lost store stood. A period that was unfinished then is among them.
std::vector<OffsetRange> RangesBetween(const stream::Position& from, const stream::Position& to) {
  std::map<int32_t, uint64_t> begins;
  for (const OffsetRange& range : from.next) begins[range.partition] = range.begin;
  std::vector<OffsetRange> ranges;
  for (const OffsetRange& range : to.next) {
    const uint64_t begin = begins[range.partition];  // 0: the copy had not read there
    const uint64_t end = std::max(range.begin, range.end);
    if (begin < end) ranges.push_back({range.partition, begin, end});
  }
  return ranges;
}

using Charged = store::WitnessedLearner::Charged;

// The promise that was charged is the one that the configuration makes; its bounds may differ.
bool IsPromised(const Charged& charged, const LearnerPlan& plan) {
  const privacy::Promise& promise = plan.promise;
  return charged.unit == promise.unit && charged.adjacency == promise.adjacency &&
         charged.participation == promise.participation && charged.delta == promise.delta;
}

// It is the same promise, at one of the configuration's prices.
bool IsCharged(const Charged& charged, const LearnerPlan& plan) {
  return (charged.charge == plan.charge || charged.charge == plan.opening_charge) &&
         IsPromised(charged, plan) && charged.bounds == plan.promise.bounds;
}

// The steps of a gap by price and by the bounds that were in force, each once.
class LostSteps {
 public:
  struct Line {
    privacy::Charge charge;
    privacy::Bounds bounds;
    uint64_t steps = 0;
  };

  void Add(const privacy::Charge& charge, const privacy::Bounds& bounds, uint64_t steps) {
    if (steps == 0) return;
    for (Line& line : lines_)
      if (line.charge == charge && line.bounds == bounds) {
        line.steps += steps;
        return;
      }
    lines_.push_back({charge, bounds, steps});
  }
  const std::vector<Line>& lines() const { return lines_; }

 private:
  std::vector<Line> lines_;
};

// One learner's gap as it is put together.
class GapFinder {
 public:
  GapFinder(const LearnerPlan& plan, const config::Learner& learner, const LearnerTrail& trail)
      : plan_(plan),
        trail_(trail),
        period_steps_(once() ? 1 : learner.participation.PeriodSteps()) {}

  Result<std::optional<FoundGap>> Find(const std::string& topic) {
    TACIT_RETURN_IF_ERROR(CheckOrder());
    if (trail_.last.steps == trail_.copy.steps && !moved()) return std::optional<FoundGap>{};
    TACIT_RETURN_IF_ERROR(CheckPaid());
    TACIT_RETURN_IF_ERROR(ReadPositions());
    TACIT_RETURN_IF_ERROR(AddEntries());
    TACIT_RETURN_IF_ERROR(AddRemembered());
    FindLongestPeriod();
    TACIT_RETURN_IF_ERROR(CheckOffsets());
    FoundGap found;
    found.gap.learner = plan_.index;
    found.gap.position = position_;
    found.gap.step = end_.step;
    MakeCharges(topic, &found.gap);
    if (of_users()) CountUsers(&found);
    return std::optional(std::move(found));
  }

 private:
  // Blocks are charged with their period's first step, by whole periods.
  bool in_blocks() const { return plan_.charge.block_steps > 0; }
  uint64_t InWholePeriods(uint64_t steps) const {
    return in_blocks() ? Times(Plus(steps, period_steps_ - 1) / period_steps_, period_steps_)
                       : steps;
  }
  // The rest of a period whose blocks are paid for costs nothing more, yet moves the learner on.
  bool moved() const {
    return in_blocks() && trail_.last.position && *trail_.last.position != trail_.copy.position;
  }
  bool of_users() const { return plan_.promise.unit == privacy::Unit::kUser; }
  uint64_t later_steps() const { return trail_.later ? trail_.later->steps : trail_.copy.steps; }

  bool once() const { return plan_.promise.participation == privacy::ParticipationMode::kOnce; }

  Status CheckOrder() const {
    if (trail_.last.steps >= later_steps() && later_steps() >= trail_.copy.steps) return {};
    return RefuseLearner(
        plan_, fmt::format("it had taken {} steps in the copy, {} later and {} in the end: these "
                           "are two stores that went different ways",
                           trail_.copy.steps, later_steps(), trail_.last.steps));
  }

  Status RefuseOtherWay() const {
    return RefuseLearner(plan_,
                         "it had taken more steps at one of its prices in the copy than in the "
                         "end: these are two stores that went different ways");
  }

  Status RefusePrice() const {
    return RefuseLearner(
        plan_,
        "its steps after the copy were charged at another price, or promised something else: "
        "restore it with the configuration that the lost store ran with; what may change, may be "
        "changed afterwards");
  }

  // Checks that steps which nothing was charged for belong to blocks of the configuration's price.
  Status CheckPaid() const {
    if (trail_.last.steps > trail_.copy.steps) return {};
    const auto& charged = trail_.last.charged;
    const store::PriceTally ledger(trail_.entries_of_copy);
    const auto paid = ledger.Of(trail_.copy.name);
    const bool by_copy = paid.empty() || paid.back().charged.charge == plan_.charge;
    if (by_copy && charged && IsCharged(*charged, plan_) && charged->charge == plan_.charge)
      return {};
    return RefusePrice();
  }

  Status ReadPositions() {
    const bool later_is_last = trail_.later && later_steps() == trail_.last.steps;
    if (trail_.last.position) {
      position_ = *trail_.last.position;
    } else if (later_is_last && !trail_.later->position.empty()) {
      position_ = trail_.later->position;
    } else {
      return RefuseLearner(plan_,
                           "its position was too long to be remembered, so that its records after "
                           "the copy would be learnt from twice");
    }
    TACIT_ASSIGN(begin_, train::DecodePosition(trail_.copy.position));
    TACIT_ASSIGN(end_, train::DecodePosition(position_));
    TACIT_RETURN_IF_ERROR(CheckNumbers());
    TACIT_RETURN_IF_ERROR(CheckPartitions());
    // A period that was begun anew was charged once more on the same records.
    periods_per_offset_ = Plus(end_.begun_anew - begin_.begun_anew, 1);
    if (begin_.pass != end_.pass && !of_users())
      return RefuseLearner(plan_,
                           "a pass over its source ended after the copy: how often each event was "
                           "learnt from cannot be said");
    return {};
  }

  Status RefusePosition(std::string_view field, const std::string& why) const {
    return RefuseLearner(plan_, fmt::format("position.{} {}: these are two stores that went "
                                            "different ways, or the position was changed",
                                            field, why));
  }

  // Checks that the learner's numbers have only grown.
  Status CheckNumbers() const {
    using stream::Position;
    static constexpr std::pair<std::string_view, uint64_t Position::*> kNumbers[] = {
        {"pass", &Position::pass},
        {"period", &Position::period},
        {"step", &Position::step},
        {"begun_anew", &Position::begun_anew},
        {"longest_period", &Position::longest_period}};
    for (const auto& [field, number] : kNumbers)
      if (end_.*number < begin_.*number)
        return RefusePosition(
            field, fmt::format("is {}, and {} in the copy", end_.*number, begin_.*number));
    return {};
  }

  // Checks that the learner has read on in each partition of the copy.
  Status CheckPartitions() const {
    std::map<int32_t, uint64_t> begins;
    for (const OffsetRange& range : end_.next)
      if (range.partition < 0 || !begins.emplace(range.partition, range.begin).second)
        return RefusePosition("next", fmt::format("has partition {}{}", range.partition,
                                                  range.partition < 0 ? "" : " twice"));
    if (begin_.pass != end_.pass) return {};
    for (const OffsetRange& range : begin_.next) {
      const auto found = begins.find(range.partition);
      if (found == begins.end())
        return RefusePosition(
            "next", fmt::format("has no partition {}, which the copy has read", range.partition));
      if (found->second < range.begin)
        return RefusePosition("next",
                              fmt::format("is at offset {} of partition {}, and at {} in the copy",
                                          found->second, range.partition, range.begin));
    }
    return {};
  }

  // Checks that the offsets between can have been in all of these steps: only they are charged. A
  // period has its opening beside its steps.
  Status CheckOffsets() const {
    if (begin_.pass != end_.pass || !knows_longest_period_) return {};
    const uint64_t steps = trail_.last.steps - trail_.copy.steps;
    const uint64_t offsets = SizeOf(RangesBetween(begin_, end_));
    if (steps <= Times(offsets, Times(periods_per_offset_, Plus(longest_period_, 1)))) return {};
    return RefusePosition("next", fmt::format("is {} after the copy's, and {} were charged",
                                              Counted(offsets, "offset"), Counted(steps, "step")));
  }

  // Adds what the later copy's ledger has beyond the copy's own steps.
  Status AddEntries() {
    if (!trail_.later) return {};
    uint64_t seen = 0;
    const privacy::LearnerNames names(trail_.entries);
    for (const privacy::LedgerEntry& entry : trail_.entries) {
      if (names.Now(entry.learner) != plan_.id) continue;
      const uint64_t end = seen + entry.steps;
      const uint64_t begin = std::max(seen, trail_.copy.steps);
      seen = end;
      if (end <= begin) continue;
      // A ledger knows the promise of its learners, but a copy may not know this learner.
      if (!IsPromised(store::ChargedIn(entry), plan_)) return RefusePrice();
      lost_.Add(entry.charge, entry.bounds, end - begin);
    }
    if (seen == later_steps()) return {};
    return RefuseLearner(plan_, fmt::format("the later copy's ledger has entries of {} steps, and "
                                            "says that it took {}",
                                            seen, later_steps()));
  }

  // Adds the steps that only witness or mark remember: what it has beyond the furthest ledger at
  // each price.
  Status AddRemembered() {
    if (trail_.last.steps == later_steps()) return {};
    if (!trail_.last.charged || !IsCharged(*trail_.last.charged, plan_)) return RefusePrice();
    const store::PriceTally ledger(trail_.later ? trail_.entries : trail_.entries_of_copy);
    uint64_t lost = 0;
    for (const auto& [charged, steps] : trail_.last.prices) {
      const uint64_t before = ledger.StepsAt(plan_.id, charged);
      if (steps < before) return RefuseOtherWay();
      if (steps == before) continue;
      if (!IsPromised(charged, plan_)) return RefusePrice();
      TACIT_RETURN_IF_ERROR(CheckRemembered(charged, steps - before));
      lost_.Add(charged.charge, charged.bounds, steps - before);
      lost += steps - before;
    }
    const uint64_t charged = trail_.last.steps - later_steps();
    if (lost == charged) return {};
    return RefuseLearner(
        plan_,
        fmt::format("{} were charged after the copy, and {} of them are known by their price: "
                    "either these are two stores that went different ways, or there were more "
                    "prices than are remembered; name a later checkpoint or the damaged store with "
                    "--remains, whose ledger has them all",
                    Counted(charged, "step"), lost));
  }

  // Checks that a ledger can have this charge: witness and mark are files like others.
  Status CheckRemembered(const Charged& charged, uint64_t steps) const {
    const privacy::LedgerEntry entry{.learner = plan_.id,
                                     .before = {},
                                     .charge = charged.charge,
                                     .unit = charged.unit,
                                     .adjacency = charged.adjacency,
                                     .participation = charged.participation,
                                     .bounds = charged.bounds,
                                     .steps = steps,
                                     .delta = charged.delta,
                                     .worst = {},
                                     .code_version = {}};
    Status checked = privacy::CheckEntry(entry);
    if (!checked) checked.error().message.insert(0, "a charge that no ledger can have: ");
    return checked;
  }

  // Finds the most steps that a period of the gap can have had.
  void FindLongestPeriod() {
    longest_period_ = std::max(period_steps_, end_.longest_period);
    bool in_bounds = true;
    for (const LostSteps::Line& line : lost_.lines()) {
      longest_period_ = std::max(longest_period_, line.bounds.period_steps);
      in_bounds = in_bounds && line.bounds.period_steps > 0;
    }
    const bool in_position = end_.longest_period > 0;
    knows_longest_period_ = once() || in_bounds || in_position;
    knows_shared_records_ = once() || in_position;
  }

  // Tells how many of these steps an offset can be in.
  uint64_t PerOffset(const LostSteps::Line& line) const {
    const auto& opening = plan_.opening_charge;
    const auto mechanism = line.charge.mechanism;
    const bool opens = opening && mechanism == opening->mechanism &&
                       (mechanism != plan_.charge.mechanism || line.charge == *opening);
    if (opens || once()) return std::min(line.steps, periods_per_offset_);
    if (!knows_longest_period_) return line.steps;
    return std::min(line.steps, Times(periods_per_offset_, longest_period_));
  }

  void MakeCharges(const std::string& topic, store::LearnerGap* gap) const {
    const std::vector<OffsetRange> ranges = RangesBetween(begin_, end_);
    const auto charges_at = [&](const privacy::Bounds& bounds) {
      std::vector<privacy::CommitCharge> charges;
      for (const LostSteps::Line& line : lost_.lines())
        if (line.bounds == bounds)
          charges.push_back({.learner = plan_.id,
                             .charge = line.charge,
                             .steps = line.steps,
                             .steps_per_offset = PerOffset(line),
                             .topic = topic,
                             .ranges = ranges});
      return charges;
    };
    for (const LostSteps::Line& line : lost_.lines()) {
      const auto has =
          std::ranges::find(gap->earlier, line.bounds, &store::LearnerGap::Earlier::bounds);
      if (line.bounds == plan_.promise.bounds || has != gap->earlier.end()) continue;
      gap->earlier.push_back({line.bounds, charges_at(line.bounds)});
    }
    gap->charges = charges_at(plan_.promise.bounds);
    if (!gap->charges.empty()) return;
    gap->charges.push_back({.learner = plan_.id,
                            .charge = plan_.charge,
                            .steps = 0,
                            .steps_per_offset = 0,
                            .topic = topic,
                            .ranges = ranges,
                            .paid_steps = gap->earlier.empty() ? end_.step - begin_.step : 0});
  }

  void CountUsers(FoundGap* found) const {
    const store::RemainingLearner& counted = trail_.later_has_users ? *trail_.later : trail_.copy;
    const uint64_t steps = trail_.last.steps - counted.steps;
    if (steps == 0) return;
    const auto from = train::DecodePosition(counted.position);
    // A period's users are counted for all of its steps when it opens; blocks are charged then,
    // too.
    const uint64_t period = once() ? 0 : longest_period_;
    const uint64_t most = Plus(InWholePeriods(steps), in_blocks() ? 0 : period);
    const auto narrow = [](uint64_t count) {
      return static_cast<uint32_t>(std::min<uint64_t>(count, std::numeric_limits<uint32_t>::max()));
    };
    found->gap.users = store::LearnerGap::Users::kAll;
    found->gap.gap = {.steps = narrow(most),
                      .allowance = narrow(LargestAllowance()),
                      .period = end_.period,
                      .periods = PeriodsSince(from ? *from : stream::Position()),
                      .period_steps = narrow(period)};
    found->steps_per_record = std::max<uint64_t>(Times(periods_per_offset_, longest_period_), 1);
    if (!from || from->pass != end_.pass || !knows_shared_records_) return;
    found->unaccounted = RangesBetween(*from, end_);
    found->counted_steps = from->step;
  }

  // Finds the largest allowance that any step was taken under; without one a user may be in all.
  uint64_t LargestAllowance() const {
    uint64_t largest = 0;
    for (const LostSteps::Line& line : lost_.lines()) {
      if (line.bounds.allowance == 0) return kMost;
      largest = std::max(largest, line.bounds.allowance);
    }
    return largest;
  }

  store::UsersGap::Periods PeriodsSince(const stream::Position& counted) const {
    using Periods = store::UsersGap::Periods;
    if (once()) return Periods::kRunning;
    if (end_.period_step == 0) return Periods::kBetween;
    const bool open_then = counted.period_step > 0 && counted.period == end_.period;
    return open_then ? Periods::kOpen : Periods::kOpened;
  }

  const LearnerPlan& plan_;
  const LearnerTrail& trail_;
  const uint64_t period_steps_;      // of one period
  uint64_t periods_per_offset_ = 1;  // that an offset is in, at most
  uint64_t longest_period_ = 0;      // in steps
  bool knows_longest_period_ = false;
  bool knows_shared_records_ = false;  // those that are in several periods
  std::string position_;
  stream::Position begin_, end_;
  LostSteps lost_;
};

}  // namespace

Result<std::optional<FoundGap>> FindGap(const LearnerPlan& plan, const config::Learner& learner,
                                        const LearnerTrail& trail, const std::string& topic) {
  return GapFinder(plan, learner, trail).Find(topic);
}

}  // namespace tacit::wiring
