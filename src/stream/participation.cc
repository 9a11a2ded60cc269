#include "stream/participation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tacit::stream {
namespace {

using event::PublicMark;

constexpr uint64_t kOffsetsMax = uint64_t{1} << 62;

// A step with all its offsets is held until the next record or mark of its partition: only then is
// it known whether a mark stands at its end. So steps and their marks do not depend on how the
// source cut its frames.
class OnceParticipation final : public Participation {
 public:
  explicit OnceParticipation(OnceOptions options)
      : offsets_per_step_(options.offsets_per_step),
        files_per_step_(options.files_per_step),
        position_(std::move(options.start)) {
    TACIT_CHECK(offsets_per_step_ > 0 && offsets_per_step_ <= kOffsetsMax, "no size of a step");
    TACIT_CHECK(files_per_step_ > 0, "a step without files");
    for (const OffsetRange& next : position_.next)
      pending_.push_back({next.partition, next.begin, next.begin, 0, {}});
  }

  bool Feed(const event::RawRecords& frame, const event::Batch& examples,
            const Emit& emit) override;

  bool Finish(const Emit& emit) override {
    for (Pending& pending : pending_)
      if (!EmitPending(&pending, nullptr, emit)) return false;
    return true;
  }

 private:
  // The step that a partition is filling: offsets [begin, end) so far.
  struct Pending {
    int32_t partition = 0;
    uint64_t begin = 0, end = 0;
    uint32_t files_ended = 0;  // since `begin`
    event::Batch examples;
  };

  Pending* FindOrAdd(const event::RawRecords& frame);
  // Emits the step when it has any offsets, and starts the next one.
  bool EmitPending(Pending* pending, const PublicMark* mark, const Emit& emit);

  const uint64_t offsets_per_step_;
  const uint32_t files_per_step_;
  Position position_;
  std::vector<Pending> pending_;  // in the order of position_.next
};

OnceParticipation::Pending* OnceParticipation::FindOrAdd(const event::RawRecords& frame) {
  for (Pending& pending : pending_)
    if (pending.partition == frame.partition) return &pending;
  // A partition that the start position does not know begins where its first frame does.
  const OffsetRange start{frame.partition, frame.first_offset, frame.first_offset};
  position_.period_start.push_back(start);
  position_.next.push_back(start);
  pending_.push_back({frame.partition, frame.first_offset, frame.first_offset, 0, {}});
  return &pending_.back();
}

bool OnceParticipation::EmitPending(Pending* pending, const PublicMark* mark, const Emit& emit) {
  if (pending->begin == pending->end) return true;
  const auto index = static_cast<size_t>(pending - pending_.data());
  position_.next[index] = {pending->partition, pending->end, pending->end};
  ++position_.step;

  StepBatch step;
  step.ranges = {{pending->partition, pending->begin, pending->end}};
  step.after = position_;
  if (mark != nullptr) step.marks = {*mark};
  step.units = static_cast<uint32_t>(pending->examples.size());
  step.unit_of.resize(step.units);
  for (uint32_t i = 0; i < step.units; ++i) step.unit_of[i] = i;  // every event is a unit
  step.examples = std::move(pending->examples);

  pending->begin = pending->end;
  pending->files_ended = 0;
  pending->examples = EmptyLike(step.examples);
  return emit(std::move(step));
}

bool OnceParticipation::Feed(const event::RawRecords& frame, const event::Batch& examples,
                             const Emit& emit) {
  Pending* pending = FindOrAdd(frame);
  TACIT_CHECK(frame.first_offset == pending->end, "records are missing or repeated");
  pending->examples.partition = frame.partition;
  pending->examples.dense_width = examples.dense_width;
  pending->examples.slots = examples.slots;

  size_t example = 0;
  auto mark = frame.marks.begin();
  for (;;) {
    for (; mark != frame.marks.end() && mark->offset == pending->end; ++mark) {
      if (pending->begin == pending->end || ++pending->files_ended < files_per_step_) continue;
      if (!EmitPending(pending, &*mark, emit)) return false;
    }
    if (pending->end == frame.end_offset()) break;
    if (pending->end - pending->begin == offsets_per_step_ && !EmitPending(pending, nullptr, emit))
      return false;

    uint64_t cut = std::min(frame.end_offset(), pending->begin + offsets_per_step_);
    if (mark != frame.marks.end()) {
      TACIT_CHECK(mark->offset > pending->end, "marks out of order");
      cut = std::min(cut, mark->offset);
    }
    const auto after = std::lower_bound(examples.offset.begin() + static_cast<ptrdiff_t>(example),
                                        examples.offset.end(), cut);
    const auto examples_end = static_cast<size_t>(after - examples.offset.begin());
    pending->examples.AppendRange(examples, example, examples_end);
    example = examples_end;
    pending->end = cut;
  }
  TACIT_CHECK(example == examples.size() && mark == frame.marks.end(),
              "examples or marks outside their frame");
  return true;
}

}  // namespace

std::unique_ptr<Participation> MakeOnceParticipation(OnceOptions options) {
  return std::make_unique<OnceParticipation>(std::move(options));
}

}  // namespace tacit::stream
