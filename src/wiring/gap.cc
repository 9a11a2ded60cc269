#include "wiring/gap.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/text.h"
#include "store/price_tally.h"
#include "train/position.h"

namespace tacit::wiring {
namespace {

auto RefuseLearner(const LearnerPlan& plan, std::string_view why) {
  return Fail(ErrorCode::kRefused, fmt::format("learner '{}': {}", plan.id, why));
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

// True if steps at price `a` cost at least as much as at `b`, however many there are. Only the
// noise may differ: its parts and the clips are for the record.
bool IsAsDear(const privacy::Charge& a, const privacy::Charge& b) {
  return a.mechanism == b.mechanism && a.sampling_rate == b.sampling_rate &&
         a.block_steps == b.block_steps && a.noise_multiplier <= b.noise_multiplier &&
         a.zcdp_rho >= b.zcdp_rho;
}

bool CanBeHeldAgainst(const privacy::Charge& a, const privacy::Charge& b) {
  return IsAsDear(a, b) || IsAsDear(b, a);
}

// Steps at one price. Offsets are in as many of them as `per_offset` says; 0: in all.
struct Priced {
  privacy::Charge charge;
  uint64_t steps = 0;
  uint64_t per_offset = 0;
};

// The charges of a gap, each price once: an offset is not charged again for every run of steps.
class Bill {
 public:
  void Add(const privacy::Charge& charge, uint64_t steps, uint64_t per_offset) {
    if (steps == 0) return;
    const auto same = std::ranges::find(lines_, charge, &Priced::charge);
    if (same == lines_.end()) {
      lines_.push_back({charge, steps, per_offset});
    } else {
      same->steps += steps;
      same->per_offset =
          same->per_offset == 0 || per_offset == 0 ? 0 : std::max(same->per_offset, per_offset);
    }
  }
  std::vector<privacy::CommitCharge> Charges(const std::string& learner, const std::string& topic,
                                             const std::vector<OffsetRange>& ranges) const {
    std::vector<privacy::CommitCharge> charges;
    for (const Priced& line : lines_)
      charges.push_back({.learner = learner,
                         .charge = line.charge,
                         .steps = line.steps,
                         .steps_per_offset = line.per_offset == 0
                                                 ? line.steps
                                                 : std::min(line.steps, line.per_offset),
                         .topic = topic,
                         .ranges = ranges});
    return charges;
  }

 private:
  std::vector<Priced> lines_;
};

// One learner's gap as it is put together.
class GapFinder {
 public:
  GapFinder(const LearnerPlan& plan, const config::Learner& learner, const LearnerTrail& trail)
      : plan_(plan),
        trail_(trail),
        period_steps_(plan.promise.participation == privacy::ParticipationMode::kOnce
                          ? 1
                          : learner.participation.PeriodSteps()) {}

  Result<std::optional<FoundGap>> Find(const std::string& topic) {
    TACIT_RETURN_IF_ERROR(CheckOrder());
    if (trail_.last.steps == trail_.copy.steps && !moved()) return std::optional<FoundGap>{};
    TACIT_RETURN_IF_ERROR(CheckPaid());
    TACIT_RETURN_IF_ERROR(ReadPositions());
    TACIT_RETURN_IF_ERROR(AddEntries());
    TACIT_RETURN_IF_ERROR(AddRemembered());
    FoundGap found;
    found.gap.learner = plan_.index;
    found.gap.position = position_;
    found.gap.step = end_.step;
    const std::vector<OffsetRange> ranges = RangesBetween(begin_, end_);
    found.gap.charges = bill_.Charges(plan_.id, topic, ranges);
    if (found.gap.charges.empty())
      found.gap.charges.push_back({.learner = plan_.id,
                                   .charge = plan_.charge,
                                   .steps = 0,
                                   .steps_per_offset = 0,
                                   .topic = topic,
                                   .ranges = ranges,
                                   .paid_steps = end_.step - begin_.step});
    if (of_users()) CountUsers(&found);
    return std::optional(std::move(found));
  }

 private:
  // Blocks are charged with their period's first step, by whole periods.
  bool in_blocks() const { return plan_.charge.block_steps > 0; }
  uint64_t InWholePeriods(uint64_t steps) const {
    return in_blocks() ? (steps + period_steps_ - 1) / period_steps_ * period_steps_ : steps;
  }
  // The rest of a period whose blocks are paid for costs nothing more, yet moves the learner on.
  bool moved() const {
    return in_blocks() && trail_.last.position && *trail_.last.position != trail_.copy.position;
  }
  bool of_users() const { return plan_.promise.unit == privacy::Unit::kUser; }
  uint64_t later_steps() const { return trail_.later ? trail_.later->steps : trail_.copy.steps; }

  Status CheckOrder() const {
    if (trail_.last.steps >= later_steps() && later_steps() >= trail_.copy.steps) return {};
    return RefuseLearner(
        plan_, fmt::format("it had taken {} steps in the copy, {} later and {} in the end: these "
                           "are two stores that went different ways",
                           trail_.copy.steps, later_steps(), trail_.last.steps));
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
    if (charged && IsCharged(*charged, plan_) && charged->charge == plan_.charge) return {};
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
    // A period that was begun anew was charged once more on the same records.
    per_period_ = (1 + end_.begun_anew - begin_.begun_anew) * period_steps_;
    if (begin_.pass != end_.pass && !of_users())
      return RefuseLearner(plan_,
                           "a pass over its source ended after the copy: how often each event was "
                           "learnt from cannot be said");
    return {};
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
      if (end > begin) bill_.Add(entry.charge, end - begin, PerOffset(store::ChargedIn(entry)));
      seen = end;
    }
    if (seen == later_steps()) return {};
    return RefuseLearner(plan_, fmt::format("the later copy's ledger has entries of {} steps, and "
                                            "says that it took {}",
                                            seen, later_steps()));
  }

  // Tells how many of the steps at this price an offset can be in; 0: all. Periods may have been
  // longer or shorter at other prices.
  uint64_t PerOffset(const Charged& charged) const {
    const auto& opening = plan_.opening_charge;
    const auto mechanism = charged.charge.mechanism;
    if (opening && mechanism == opening->mechanism && mechanism != plan_.charge.mechanism) return 1;
    if (charged.charge == opening) return 1;
    const bool once = charged.participation == privacy::ParticipationMode::kOnce;
    const bool same_periods = once && IsPromised(charged, plan_);
    return same_periods || charged.charge == plan_.charge ? per_period_ : 0;
  }

  bool IsOfPlan(const privacy::Charge& charge) const {
    return charge == plan_.charge || charge == plan_.opening_charge;
  }

  // The prices that the furthest ledger ends with, where they are not the configuration's: of a
  // step, and of an opening if there are any.
  std::vector<privacy::Charge> EarlierPrices() const {
    const auto entries = trail_.later ? trail_.entries : trail_.entries_of_copy;
    const privacy::LearnerNames names(entries);
    const size_t most = plan_.opening_charge ? 2 : 1;
    std::vector<privacy::Charge> prices;
    for (auto entry = entries.rbegin(); entry != entries.rend() && prices.size() < most; ++entry) {
      if (names.Now(entry->learner) != plan_.id || entry->steps == 0) continue;
      if (IsOfPlan(entry->charge)) break;
      if (std::ranges::find(prices, entry->charge) == prices.end()) prices.push_back(entry->charge);
    }
    return prices;
  }

  // Adds the steps that only witness or mark remember.
  Status AddRemembered() {
    if (trail_.last.steps == later_steps()) return {};
    if (!trail_.last.charged || !IsCharged(*trail_.last.charged, plan_)) return RefusePrice();
    if (trail_.last.prices) return AddPriced(*trail_.last.prices);
    AddAtLastPrices(trail_.last.steps - later_steps());
    return {};
  }

  // Adds what the witness has beyond the furthest ledger at each price.
  Status AddPriced(std::span<const store::WitnessedLearner::Priced> prices) {
    const store::PriceTally ledger(trail_.later ? trail_.entries : trail_.entries_of_copy);
    uint64_t lost = 0;
    for (const auto& [charged, steps] : prices) {
      const uint64_t before = ledger.StepsAt(plan_.id, charged);
      if (steps <= before) continue;
      if (!IsPromised(charged, plan_)) return RefusePrice();
      bill_.Add(charged.charge, steps - before, PerOffset(charged));
      lost += steps - before;
    }
    if (lost == trail_.last.steps - later_steps()) return {};
    return RefuseLearner(
        plan_, fmt::format("{} were charged after the copy, and its last prices are those of {}: "
                           "these are two stores that went different ways",
                           Counted(trail_.last.steps - later_steps(), "step"), lost));
  }

  // Adds these steps where the witness knows the last price alone: an older program wrote it, or
  // there were too many. Openings are among the steps that were charged.
  void AddAtLastPrices(uint64_t taken) {
    const std::vector<privacy::Charge> earlier = EarlierPrices();
    const auto dearest = [&](privacy::Charge price) {
      for (const privacy::Charge& before : earlier)
        if (IsAsDear(before, price)) price = before;
      return price;
    };
    const uint64_t steps = InWholePeriods(taken);
    const auto& opening = plan_.opening_charge;
    if (opening) bill_.Add(dearest(*opening), std::min(taken, end_.period - begin_.period + 1), 1);
    bill_.Add(dearest(plan_.charge), steps, per_period_);
    for (const privacy::Charge& before : earlier)
      if (!CanBeHeldAgainst(before, plan_.charge) &&
          !(opening && CanBeHeldAgainst(before, *opening)))
        bill_.Add(before, steps, 0);
  }

  void CountUsers(FoundGap* found) const {
    found->gap.most_uses = trail_.last.most_uses;
    const store::RemainingLearner& counted = trail_.later_has_users ? *trail_.later : trail_.copy;
    const uint64_t steps = trail_.last.steps - counted.steps;
    if (steps == 0) return;
    // A period's users are counted for all of its steps when it opens; blocks are charged then,
    // too.
    const uint64_t most =
        InWholePeriods(steps) + (in_blocks() ? 0 : plan_.promise.bounds.period_steps);
    found->gap.users = store::LearnerGap::Users::kAll;
    found->gap.gap = {.steps = static_cast<uint32_t>(
                          std::min<uint64_t>(most, std::numeric_limits<uint32_t>::max())),
                      .most = trail_.last.most_uses,
                      .period = end_.period};
    found->steps_per_record = std::max(per_period_, plan_.promise.bounds.period_steps);
    const auto from = train::DecodePosition(counted.position);
    if (from && from->pass == end_.pass) found->unaccounted = RangesBetween(*from, end_);
  }

  const LearnerPlan& plan_;
  const LearnerTrail& trail_;
  const uint64_t period_steps_;  // of one period
  uint64_t per_period_ = 0;      // steps that an offset is in
  std::string position_;
  stream::Position begin_, end_;
  Bill bill_;
};

}  // namespace

Result<std::optional<FoundGap>> FindGap(const LearnerPlan& plan, const config::Learner& learner,
                                        const LearnerTrail& trail, const std::string& topic) {
  return GapFinder(plan, learner, trail).Find(topic);
}

}  // namespace tacit::wiring
