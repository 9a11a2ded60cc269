#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "stream/steps/participation.h"

namespace tacit::stream {
namespace {

// Knows no size of a period: the source cuts, and this hands on.
class TopicPeriodParticipation final : public Participation {
 public:
  TopicPeriodParticipation(uint64_t offsets_per_part, Position start)
      : offsets_per_part_(offsets_per_part), position_(std::move(start)) {}

  bool Cut(const event::RawRecords& frame, const event::Batch& examples,
           const Emit& emit) override {
    if (!frame.sums.empty() || (frame.recount && frame.size() == 0)) return EmitSums(frame, emit);
    if (frame.recount) return EmitRecount(examples, emit);
    // A part is of one partition, in the order of offsets.
    if (examples.size() > 0 && part_.size() > 0 &&
        (frame.partition != part_.partition || frame.first_offset < part_.offset.back()) &&
        !EmitPart(emit))
      return false;
    if (examples.size() > 0) {
      if (part_.size() == 0) part_ = EmptyLike(examples);
      part_.AppendRange(examples, 0, examples.size());
    }
    part_offsets_ += frame.size();
    if (part_offsets_ >= offsets_per_part_ && part_.size() > 0 && !EmitPart(emit)) return false;
    return frame.period.empty() || EmitPeriod(frame.period, emit);
  }
  // A period that the source has not ended is read again at the next start.
  bool Finish(const Emit&) override { return true; }

 private:
  void TakePart(StepBatch* batch) {
    batch->units = static_cast<uint32_t>(part_.size());
    batch->unit_of.resize(batch->units);
    std::iota(batch->unit_of.begin(), batch->unit_of.end(), 0u);  // every event is a unit
    batch->examples = std::exchange(part_, EmptyLike(part_));
    batch->after = position_;
    part_offsets_ = 0;
  }

  bool EmitPart(const Emit& emit) {
    StepBatch part;
    part.kind = StepBatch::Kind::kPreview;
    TakePart(&part);
    return emit(std::move(part));
  }

  // Examples that are summed up apart from those around them.
  bool EmitRecount(const event::Batch& examples, const Emit& emit) {
    if (part_.size() > 0 && !EmitPart(emit)) return false;
    if (examples.size() == 0) return true;
    StepBatch part;
    part.kind = StepBatch::Kind::kPreview;
    part.recount = true;
    part_ = EmptyLike(examples);
    part_.AppendRange(examples, 0, examples.size());
    TakePart(&part);
    return emit(std::move(part));
  }

  bool EmitSums(const event::RawRecords& frame, const Emit& emit) {
    StepBatch part;
    part.kind = StepBatch::Kind::kSums;
    if (!frame.sums.empty()) part.sums = frame.sums.front().bytes;
    part.sums_from = frame.origin;
    part.recount = frame.recount;
    part.after = position_;
    return emit(std::move(part));
  }

  bool EmitPeriod(const std::vector<OffsetRange>& ranges, const Emit& emit) {
    StepBatch step;
    for (const OffsetRange& range : ranges) {
      auto next = std::ranges::find(position_.next, range.partition, &OffsetRange::partition);
      if (next == position_.next.end()) {
        // A partition that the position lacks begins with its first range.
        const OffsetRange begin{range.partition, range.begin, range.begin};
        position_.period_start.push_back(begin);
        next = position_.next.insert(next, begin);
      }
      if (range.end <= next->begin) continue;  // for a learner that is further back
      TACIT_CHECK(next->begin == range.begin, "a period behind another one than the last");
      *next = {range.partition, range.end, range.end};
      step.ranges.push_back(range);
    }
    if (step.ranges.empty()) return true;
    ++position_.step;
    TakePart(&step);
    return emit(std::move(step));
  }

  const uint64_t offsets_per_part_;
  Position position_;
  event::Batch part_;          // read and not yet handed on
  uint64_t part_offsets_ = 0;  // read for it
};

}  // namespace

std::unique_ptr<Participation> MakeTopicPeriodParticipation(uint64_t offsets_per_part,
                                                            Position start) {
  return std::make_unique<TopicPeriodParticipation>(offsets_per_part, std::move(start));
}

}  // namespace tacit::stream
