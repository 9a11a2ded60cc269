#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "stream/steps/participation.h"
#include "stream/steps/sum_blocks.h"
#include "stream/steps/user_units.h"

namespace tacit::stream {
namespace {

using event::PublicCut;

constexpr uint64_t kOffsetsMax = uint64_t{1} << 62;

// Holds a step that has all its offsets until the next record or public cut of its partition: only
// then is it known whether a cut is at its end. So steps and their cuts do not depend on how the
// source cut its frames. With full_at_once no cut matters to a full step, so it is not held.
class OnceParticipation final : public Participation {
 public:
  explicit OnceParticipation(OnceOptions options)
      : sizes_{.full = options.offsets_per_step,
               .opening = options.opening_offsets,
               .growing_from = options.growing_from},
        files_per_step_(options.files_per_step),
        full_at_once_(options.full_at_once),
        offsets_per_part_(options.offsets_per_part),
        position_(std::move(options.start)) {
    TACIT_CHECK(sizes_.full > 0 && sizes_.full <= kOffsetsMax, "no size of a step");
    TACIT_CHECK(sizes_.opening <= kOffsetsMax, "no size of the first step");
    TACIT_CHECK(files_per_step_ > 0, "a step without files");
    for (const OffsetRange& next : position_.next)
      pending_.push_back({next.partition, next.begin, next.begin, next.end, 0, 0, 0, 0, {}});
  }

  bool Cut(const event::RawRecords& frame, const event::Batch& examples, const Emit& emit) override;

  bool Finish(const Emit& emit) override {
    for (Pending& pending : pending_)
      if (!EmitPending(&pending, nullptr, emit)) return false;
    return true;
  }

 private:
  // The step being filled from a partition: offsets [begin, end) so far.
  struct Pending {
    int32_t partition = 0;
    uint64_t begin = 0, end = 0;
    uint64_t ends_at = 0;      // where it ended before it was read again; else at most `begin`
    uint64_t skip_to = 0;      // lower offsets are skipped
    uint32_t files_ended = 0;  // since `begin`
    uint64_t parts_end = 0;    // examples before it came as previews
    uint64_t lost = 0;         // offsets before `end` that were not read
    event::Batch examples;
  };

  Pending* FindOrAdd(const event::RawRecords& frame);
  static void TakeExamples(Pending* pending, StepBatch* batch);
  uint64_t FullAt(const Pending& pending) const {
    const uint64_t full = pending.begin + sizes_.Of(position_.step);
    return pending.ends_at > pending.begin ? std::min(pending.ends_at, full) : full;
  }
  // Ends the step at the cut, but not before ends_at. The rest up to there counts as lost, even if
  // it exists.
  bool EndAtLoss(Pending* pending, const PublicCut& cut, const Emit& emit);
  // Emits what is read of a step that is not full as a preview, once it is a part.
  bool EmitPart(Pending* pending, const Emit& emit);
  // Emits the step if it has any offsets, and starts the next one.
  bool EmitPending(Pending* pending, const PublicCut* cut, const Emit& emit);

  const StepSizes sizes_;
  const uint32_t files_per_step_;
  const bool full_at_once_;
  const uint64_t offsets_per_part_;  // 0: steps come whole
  Position position_;
  std::vector<Pending> pending_;  // in the order of position_.next
};

OnceParticipation::Pending* OnceParticipation::FindOrAdd(const event::RawRecords& frame) {
  for (Pending& pending : pending_)
    if (pending.partition == frame.partition) return &pending;
  // A partition that the start position lacks begins at its first frame.
  const OffsetRange start{frame.partition, frame.first_offset, frame.first_offset};
  position_.period_start.push_back(start);
  position_.next.push_back(start);
  pending_.push_back({frame.partition, frame.first_offset, frame.first_offset, 0, 0, 0, 0, 0, {}});
  return &pending_.back();
}

void OnceParticipation::TakeExamples(Pending* pending, StepBatch* batch) {
  batch->units = static_cast<uint32_t>(pending->examples.size());
  batch->unit_of.resize(batch->units);
  std::iota(batch->unit_of.begin(), batch->unit_of.end(), 0u);  // every event is a unit
  batch->examples = std::exchange(pending->examples, EmptyLike(pending->examples));
  pending->parts_end = pending->end;
}

bool OnceParticipation::EmitPending(Pending* pending, const PublicCut* cut, const Emit& emit) {
  if (pending->begin == pending->end) return true;
  const auto index = static_cast<size_t>(pending - pending_.data());
  position_.next[index] = {pending->partition, pending->end, pending->end};
  ++position_.step;

  StepBatch step;
  step.ranges = {{pending->partition, pending->begin, pending->end}};
  step.lost = std::exchange(pending->lost, 0);
  step.after = position_;
  if (cut != nullptr) step.cuts = {*cut};
  step.cuts_passed = pending->files_ended;
  if (cut != nullptr && cut->kind != PublicCut::Kind::kFileEnd) ++step.cuts_passed;
  TakeExamples(pending, &step);
  step.sum_block_end = BlocksByOffset(step.examples.offset, 1);

  pending->begin = pending->end;
  pending->files_ended = 0;
  return emit(std::move(step));
}

bool OnceParticipation::EmitPart(Pending* pending, const Emit& emit) {
  const uint64_t from = std::max(pending->begin, pending->parts_end);
  if (offsets_per_part_ == 0 || pending->end == FullAt(*pending)) return true;
  if (pending->end - from < offsets_per_part_ || pending->examples.size() == 0) return true;
  StepBatch part;
  part.kind = StepBatch::Kind::kPreview;
  part.after = position_;
  TakeExamples(pending, &part);
  return emit(std::move(part));
}

bool OnceParticipation::EndAtLoss(Pending* pending, const PublicCut& cut, const Emit& emit) {
  const uint64_t read_to = pending->end;
  pending->end = std::max({pending->end, cut.offset, pending->ends_at});
  pending->lost = pending->end - read_to;
  pending->skip_to = pending->end;
  return EmitPending(pending, &cut, emit);
}

bool OnceParticipation::Cut(const event::RawRecords& frame, const event::Batch& examples,
                            const Emit& emit) {
  Pending* pending = FindOrAdd(frame);
  TACIT_CHECK(frame.first_offset >= pending->end || pending->end == pending->skip_to,
              "records are repeated");
  pending->examples.partition = frame.partition;
  pending->examples.dense_width = examples.dense_width;
  pending->examples.slots = examples.slots;

  auto cut = frame.cuts.begin();
  for (; cut != frame.cuts.end() && cut->kind == PublicCut::Kind::kLost; ++cut) {
    // Another learner, further behind, lost records; all of this step's are there.
    if (cut->offset <= pending->begin) continue;
    if (!EndAtLoss(pending, *cut, emit)) return false;
  }
  if (frame.end_offset() < pending->end) return true;
  while (cut != frame.cuts.end() && cut->offset < pending->end) ++cut;
  auto example = static_cast<size_t>(
      std::lower_bound(examples.offset.begin(), examples.offset.end(), pending->end) -
      examples.offset.begin());
  for (;;) {
    for (; cut != frame.cuts.end() && cut->offset == pending->end; ++cut) {
      if (pending->begin == pending->end) continue;
      if (cut->kind == PublicCut::Kind::kFileEnd && ++pending->files_ended < files_per_step_)
        continue;
      if (!EmitPending(pending, &*cut, emit)) return false;
    }
    const bool all = pending->end == frame.end_offset();
    if (all && !full_at_once_) break;
    if (pending->end == FullAt(*pending) && !EmitPending(pending, nullptr, emit)) return false;
    if (all) break;

    uint64_t to = std::min(frame.end_offset(), FullAt(*pending));
    if (cut != frame.cuts.end()) {
      TACIT_CHECK(cut->offset > pending->end, "cuts out of order");
      to = std::min(to, cut->offset);
    }
    const auto after = std::lower_bound(examples.offset.begin() + static_cast<ptrdiff_t>(example),
                                        examples.offset.end(), to);
    const auto examples_end = static_cast<size_t>(after - examples.offset.begin());
    pending->examples.AppendRange(examples, example, examples_end);
    example = examples_end;
    pending->end = to;
  }
  TACIT_CHECK(example == examples.size() && cut == frame.cuts.end(),
              "examples or cuts outside their frame");
  return EmitPart(pending, emit);
}

}  // namespace

std::unique_ptr<Participation> MakeOnceParticipation(OnceOptions options) {
  if (options.users) {
    TACIT_CHECK(options.offsets_per_part == 0, "a user's records of a step come together");
    return MakeUserOnce(std::move(options));
  }
  return std::make_unique<OnceParticipation>(std::move(options));
}

}  // namespace tacit::stream
