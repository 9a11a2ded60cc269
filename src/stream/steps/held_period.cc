#include "stream/steps/held_period.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "stream/steps/sum_blocks.h"

namespace tacit::stream {
namespace {

constexpr uint64_t kUnbounded = uint64_t{1} << 62;

}  // namespace

HeldPeriods::HeldPeriods(HeldPeriodOptions options)
    : options_(std::move(options)), position_(options_.start) {
  TACIT_CHECK(options_.steps_per_period > 0, "a period without steps");
  TACIT_CHECK(!options_.users || options_.steps_per_period <= UINT32_MAX,
              "a period of too many steps to count");
  const uint64_t offsets = options_.offsets_per_period;
  periods_ = MakeOnceParticipation({.offsets_per_step = offsets == 0 ? kUnbounded : offsets,
                                    .start = options_.start,
                                    .files_per_step = options_.files_per_period,
                                    .full_at_once = options_.full_at_once});
  position_.longest_period = std::max(position_.longest_period, options_.steps_per_period);
  if (position_.period_step == 0) return;
  for (const OffsetRange& next : position_.next)
    if (next.end > next.begin) under_way_ = next;
}

// The part that was begun stays behind as a period of its own: users are counted for both.
void HeldPeriods::BeginAnew() {
  position_.period_step = 0;
  position_.allocation.reset();
  ++position_.period;
  ++position_.begun_anew;
}

// A partition's position is the beginning of its next period until that one is learnt, even while
// later periods of other partitions are.
bool HeldPeriods::Take(StepBatch&& period, const Emit& emit) {
  const auto knows = [&](int32_t partition) {
    return std::ranges::any_of(
        position_.next, [&](const OffsetRange& next) { return next.partition == partition; });
  };
  const OffsetRange& range = period.ranges.front();
  if (!knows(range.partition)) MoveTo({range.partition, range.begin, range.begin});
  for (const OffsetRange& next : period.after.next)
    if (!knows(next.partition)) MoveTo({next.partition, next.begin, next.begin});
  if (under_way_ && under_way_->partition != range.partition) {
    behind_it_.push_back(std::move(period));
    return true;
  }
  if (!LearnOrClose(std::move(period), emit)) return false;
  if (!std::exchange(under_way_, std::nullopt)) return true;
  for (StepBatch& next : std::exchange(behind_it_, {}))
    if (!LearnOrClose(std::move(next), emit)) return false;
  return true;
}

bool HeldPeriods::LearnOrClose(StepBatch&& period, const Emit& emit) {
  const OffsetRange range = period.ranges.front();
  if (under_way_ && closes_unfinished_) {
    Close(range);
    return true;
  }
  const bool lost = !period.cuts.empty() && period.cuts[0].kind == event::PublicCut::Kind::kLost;
  const bool begun = position_.period_step > 0;
  // Offsets decide, never what the records held: one record must not bring in a period's steps.
  if (!lost || (!begun && period.lost < range.size())) {
    if (under_way_ && range.end < under_way_->end) ++position_.begun_anew;
    return Learn(std::move(period), emit);
  }
  // Offsets that steps were taken of are on the ledger with those steps.
  const uint64_t told = begun && under_way_ ? std::min(under_way_->end, range.end) : range.begin;
  if (told < range.end) lost_.push_back({range.partition, told, range.end});
  Close(range);
  return true;
}

// Passes over the rest of a period.
void HeldPeriods::Close(const OffsetRange& range) {
  if (position_.period_step > 0) {
    position_.period_step = 0;
    ++position_.period;
  }
  position_.allocation.reset();
  MoveTo({range.partition, range.end, range.end});
}

void HeldPeriods::AppendUnit(const UnitBatch& from, size_t unit, StepBatch* step) {
  const size_t begin = unit == 0 ? 0 : from.unit_end[unit - 1];
  step->examples.AppendRange(from.examples, begin, from.unit_end[unit]);
  step->unit_of.resize(step->examples.size(), step->units++);
}

// Unit user: a user is in the same block of all steps of a period, or in none.
StepBatch HeldPeriods::MakeStep(const UnitBatch& units, const OffsetRange& period) {
  drawn_.clear();
  Draw(units, &drawn_);
  StepBatch step;
  step.examples = EmptyLike(units.examples);
  std::vector<uint64_t> hashes;
  std::vector<uint32_t> unit_end;
  for (const uint32_t unit : drawn_) {
    AppendUnit(units, unit, &step);
    if (!options_.users) continue;
    hashes.push_back(units.block_hashes[unit]);
    unit_end.push_back(static_cast<uint32_t>(step.examples.size()));
  }
  const double records = static_cast<double>(period.size()) * options_.step_share;
  step.sum_block_end = options_.users ? BlocksByUser(hashes, unit_end, records)
                                      : BlocksByOffset(step.examples.offset, options_.step_share);
  return step;
}

bool HeldPeriods::Learn(StepBatch&& period, const Emit& emit) {
  UnitBatch units;
  status_ = TakeUnits(std::move(period.examples), &units);
  if (!status_) return false;
  const bool opens = position_.period_step == 0;
  if ((opens || options_.users) && !Preview(units, !opens, emit)) return false;
  BeginPeriod(units);
  return TakeSteps(period, &units, emit);
}

bool HeldPeriods::TakeSteps(const StepBatch& period, UnitBatch* units, const Emit& emit) {
  std::vector<OffsetRange> ranges = std::exchange(lost_, {});
  ranges.insert(ranges.end(), period.ranges.begin(), period.ranges.end());
  const OffsetRange& range = period.ranges.front();
  for (bool first = true;; first = false) {
    StepBatch step = MakeStep(*units, range);
    step.ranges = ranges;
    step.period_steps = options_.steps_per_period;
    step.kind =
        position_.period_step == 0 ? StepBatch::Kind::kPeriodFirst : StepBatch::Kind::kPeriodNext;
    ++position_.step;
    const bool last = ++position_.period_step >= options_.steps_per_period;
    if (last) {
      position_.period_step = 0;
      position_.allocation.reset();
      ++position_.period;
      step.cuts = period.cuts;
    }
    // Until the last step, a crash makes the learner read the period again.
    MoveTo({range.partition, last ? range.end : range.begin, range.end});
    step.after = position_;
    step.counts_users = options_.users.has_value();
    if (step.counts_users && first) {
      options_.users->allowances->Count(step.after.step, units->uses);
      step.uses = units->uses;
      step.came = units->came;
    }
    if (!emit(std::move(step))) return false;
    if (last) return true;
  }
}

Status HeldPeriods::TakeUnits(event::Batch&& examples, UnitBatch* units) {
  if (options_.users)
    return TakeUsers(
        *options_.users, examples, &groups_, options_.users->allowances,
        [this](UserUses* user) { return Admit(user); }, units);
  units->examples = std::move(examples);
  units->unit_end.resize(units->examples.size());  // every event is a unit
  std::iota(units->unit_end.begin(), units->unit_end.end(), 1u);
  return {};
}

// A period that has opened keeps the users it opened with, who were counted then. If it now has
// more steps than then, the additional steps are counted too.
bool HeldPeriods::Admit(UserUses* user) const {
  const auto steps = static_cast<uint32_t>(options_.steps_per_period);
  const bool is_in = user->in_period > 0 && user->period == position_.period;
  if (position_.period_step > 0 && !is_in) return false;
  const uint32_t counted = is_in ? std::min(user->in_period, steps) : 0;
  if (uint64_t{user->used} + (steps - counted) > options_.users->allowance) return counted == steps;
  user->used += steps - counted;
  user->in_period = std::max(steps, counted);
  user->period = position_.period;
  return true;
}

// Emits the units as previews. Each is in one preview, so a histogram of them counts it once.
bool HeldPeriods::Preview(const UnitBatch& units, bool again, const Emit& emit) const {
  for (size_t unit = 0; unit < units.units();) {
    StepBatch preview;
    preview.kind = again ? StepBatch::Kind::kPreviewAgain : StepBatch::Kind::kPreview;
    preview.examples = EmptyLike(units.examples);
    while (unit < units.units() && preview.examples.size() < kPreviewExamples)
      AppendUnit(units, unit++, &preview);
    preview.after = position_;
    if (!emit(std::move(preview))) return false;
  }
  return true;
}

void HeldPeriods::MoveTo(const OffsetRange& range) {
  const auto put = [](const OffsetRange& value, std::vector<OffsetRange>* ranges) {
    const auto found = std::ranges::find(*ranges, value.partition, &OffsetRange::partition);
    if (found == ranges->end()) {
      ranges->push_back(value);
    } else {
      *found = value;
    }
  };
  put(range, &position_.next);
  put({range.partition, range.begin, range.begin}, &position_.period_start);
}

}  // namespace tacit::stream
