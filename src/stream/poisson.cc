#include <algorithm>
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
                                      .files_per_step = options_.files_per_period});
  }

  bool Feed(const event::RawRecords& frame, const event::Batch& examples,
            const Emit& emit) override {
    return periods_->Feed(frame, examples, [&](StepBatch&& period) { return Learn(period, emit); });
  }
  bool Finish(const Emit& emit) override {
    return periods_->Finish([&](StepBatch&& period) { return Learn(period, emit); });
  }

 private:
  bool Learn(const StepBatch& period, const Emit& emit);
  bool Preview(const StepBatch& period, const Emit& emit) const;
  StepBatch Sample(const StepBatch& period);
  Position After(const StepBatch& period) const;

  const PoissonOptions options_;
  std::unique_ptr<noise::NoiseSource> coins_;
  std::unique_ptr<Participation> periods_;
  Position position_;  // after the last emitted step
};

bool PoissonParticipation::Learn(const StepBatch& period, const Emit& emit) {
  if (position_.period_step == 0 && !Preview(period, emit)) return false;
  while (true) {
    StepBatch step = Sample(period);
    step.ranges = period.ranges;
    step.whole_period = true;
    step.opens_period = position_.period_step == 0;
    step.after = position_ = After(period);
    const bool last = position_.period_step == 0;
    if (last) step.marks = period.marks;
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

Position PoissonParticipation::After(const StepBatch& period) const {
  Position after = position_;
  ++after.step;
  ++after.period_step;
  if (after.period_step >= options_.steps_per_period) {
    after.period_step = 0;
    ++after.period;
    after.next = after.period_start = period.after.next;
    return after;
  }
  // The period is read again after a crash: go back to where it begins.
  after.next = period.after.next;
  for (OffsetRange& next : after.next)
    for (const OffsetRange& range : period.ranges)
      if (range.partition == next.partition) next = {range.partition, range.begin, range.begin};
  after.period_start = after.next;
  return after;
}

}  // namespace

std::unique_ptr<Participation> MakePoissonParticipation(PoissonOptions options,
                                                        std::unique_ptr<noise::NoiseSource> coins) {
  return std::make_unique<PoissonParticipation>(std::move(options), std::move(coins));
}

}  // namespace tacit::stream
