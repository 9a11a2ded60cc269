#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "stream/participation.h"

namespace tacit::stream {
namespace {

constexpr size_t kPreviewExamples = 4096;
constexpr uint64_t kUnbounded = uint64_t{1} << 62;

void SetUnits(StepBatch* step) {
  step->units = static_cast<uint32_t>(step->examples.size());
  step->unit_of.resize(step->units);
  for (uint32_t i = 0; i < step->units; ++i) step->unit_of[i] = i;  // every event is a unit
}

// A period is cut exactly as a step of `once` is; what is done with it differs.
class PoissonParticipation final : public Participation {
 public:
  PoissonParticipation(PoissonOptions options, std::unique_ptr<noise::NoiseSource> coins)
      : options_(std::move(options)), coins_(std::move(coins)), position_(options_.start) {
    TACIT_CHECK(options_.steps_per_period > 0, "a period without steps");
    TACIT_CHECK(options_.sampling_rate > 0 && options_.sampling_rate <= 1);
    const uint64_t offsets = options_.offsets_per_period;
    periods_ = MakeOnceParticipation({.offsets_per_step = offsets == 0 ? kUnbounded : offsets,
                                      .start = options_.start,
                                      .files_per_step = options_.files_per_period,
                                      .full_at_once = options_.full_at_once});
    if (position_.period_step == 0) return;
    for (const OffsetRange& next : position_.next)
      if (next.end > next.begin) under_way_ = next;
  }

  bool Feed(const event::RawRecords& frame, const event::Batch& examples,
            const Emit& emit) override {
    return periods_->Feed(frame, examples,
                          [&](StepBatch&& period) { return Take(std::move(period), emit); });
  }
  bool Finish(const Emit& emit) override {
    return periods_->Finish([&](StepBatch&& period) { return Take(std::move(period), emit); });
  }

 private:
  bool Take(StepBatch&& period, const Emit& emit);
  bool LearnOrClose(const StepBatch& period, const Emit& emit);
  bool Learn(const StepBatch& period, const Emit& emit);
  bool Preview(const StepBatch& period, const Emit& emit) const;
  StepBatch Sample(const StepBatch& period);
  // Where the partition of a period is, of which so much is to be read again.
  void MoveTo(const OffsetRange& range);

  const PoissonOptions options_;
  std::unique_ptr<noise::NoiseSource> coins_;
  std::unique_ptr<Participation> periods_;
  Position position_;  // after the last emitted step
  // Steps of it were taken before a crash: it is finished before another one begins, whichever
  // partition is read first.
  std::optional<OffsetRange> under_way_;
  std::vector<StepBatch> behind_it_;
  std::vector<OffsetRange> lost_;  // on the ledger with the next period
};

// A partition is where its next period begins until that one is learnt, even while others, which
// came later, are.
bool PoissonParticipation::Take(StepBatch&& period, const Emit& emit) {
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
  if (!LearnOrClose(period, emit)) return false;
  if (!std::exchange(under_way_, std::nullopt)) return true;
  for (const StepBatch& next : std::exchange(behind_it_, {}))
    if (!LearnOrClose(next, emit)) return false;
  return true;
}

bool PoissonParticipation::LearnOrClose(const StepBatch& period, const Emit& emit) {
  const OffsetRange& range = period.ranges.front();
  const bool lost = !period.marks.empty() && period.marks[0].kind == event::PublicMark::Kind::kLost;
  const bool begun = position_.period_step > 0;
  if (!lost || (!begun && period.examples.size() > 0)) return Learn(period, emit);
  // What steps were taken of is on the ledger with them.
  const uint64_t told = begun && under_way_ ? std::min(under_way_->end, range.end) : range.begin;
  if (told < range.end) lost_.push_back({range.partition, told, range.end});
  if (begun) {
    position_.period_step = 0;
    ++position_.period;
  }
  MoveTo({range.partition, range.end, range.end});
  return true;
}

bool PoissonParticipation::Learn(const StepBatch& period, const Emit& emit) {
  if (position_.period_step == 0 && !Preview(period, emit)) return false;
  std::vector<OffsetRange> ranges = std::exchange(lost_, {});
  ranges.insert(ranges.end(), period.ranges.begin(), period.ranges.end());
  const OffsetRange& range = period.ranges.front();
  while (true) {
    StepBatch step = Sample(period);
    step.ranges = ranges;
    step.whole_period = true;
    step.opens_period = position_.period_step == 0;
    ++position_.step;
    const bool last = ++position_.period_step >= options_.steps_per_period;
    if (last) {
      position_.period_step = 0;
      ++position_.period;
      step.marks = period.marks;
    }
    // Until the last step the period is read again after a crash.
    MoveTo({range.partition, last ? range.end : range.begin, range.end});
    step.after = position_;
    if (!emit(std::move(step))) return false;
    if (last) return true;
  }
}

bool PoissonParticipation::Preview(const StepBatch& period, const Emit& emit) const {
  for (size_t begin = 0; begin < period.examples.size(); begin += kPreviewExamples) {
    StepBatch preview;
    preview.preview = true;
    preview.examples = EmptyLike(period.examples);
    preview.examples.AppendRange(period.examples, begin,
                                 std::min(begin + kPreviewExamples, period.examples.size()));
    SetUnits(&preview);
    preview.after = position_;
    if (!emit(std::move(preview))) return false;
  }
  return true;
}

// The gap between two successes of independent coins is geometric: as good as a coin each, and it
// takes one draw per example taken instead of one per example held.
StepBatch PoissonParticipation::Sample(const StepBatch& period) {
  // A new key for each step's coins: a cloned machine must not draw the same batches, for then one
  // sample would be released twice and be charged as two.
  coins_->Rekey();
  StepBatch step;
  const uint64_t n = period.examples.size();
  step.examples = EmptyLike(period.examples);
  for (uint64_t i = coins_->GeometricSkip(options_.sampling_rate); i < n;) {
    step.examples.AppendRange(period.examples, i, i + 1);
    const uint64_t gap = coins_->GeometricSkip(options_.sampling_rate);
    if (gap >= n) break;
    i += gap + 1;
  }
  SetUnits(&step);
  return step;
}

void PoissonParticipation::MoveTo(const OffsetRange& range) {
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

}  // namespace

std::unique_ptr<Participation> MakePoissonParticipation(PoissonOptions options,
                                                        std::unique_ptr<noise::NoiseSource> coins) {
  return std::make_unique<PoissonParticipation>(std::move(options), std::move(coins));
}

}  // namespace tacit::stream
