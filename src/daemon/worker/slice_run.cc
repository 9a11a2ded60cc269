#include "daemon/worker/slice_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "stream/steps/participation.h"

namespace tacit::daemon {

SliceRun::SliceRun(SliceParts parts, workers::Ranges ranges)
    : parts_(std::move(parts)), ranges_(std::move(ranges)) {
  for (const OffsetRange& range : ranges_) summed_.push_back({.range = range});
}

SliceRun::~SliceRun() {
  if (intake_ != nullptr) intake_->Stop();
}

Result<std::unique_ptr<SliceRun>> SliceRun::Begin(SliceParts parts, workers::Ranges ranges) {
  std::unique_ptr<SliceRun> run(new SliceRun(std::move(parts), std::move(ranges)));
  run->parts_.source.SetRanges(run->ranges_);
  train::IntakeOptions options{
      .learners = {{.index = LearnerIndex(0),
                    .participation =
                        [part = run->parts_.offsets_per_part](stream::Position start) {
                          return stream::MakeTopicPeriodParticipation(part, std::move(start));
                        },
                    .start = {}}},
      .filter = run->parts_.filter,
      .decode_threads = run->parts_.decode_threads,
      .on_decoded = [self = run.get()](const event::RawRecords& records, const event::Batch& batch,
                                       std::span<const event::DeadLetter> dead) {
        self->Count(records, batch, dead);
      }};
  run->intake_ =
      std::make_unique<train::Intake>(std::move(options), run->parts_.source, run->parts_.codec,
                                      run->parts_.transform, run->parts_.dead_letters);
  TACIT_RETURN_IF_ERROR(run->intake_->Start());
  return run;
}

// A run of records lies in one range. What is neither an example nor a dead letter is of a user who
// opted out.
void SliceRun::Count(const event::RawRecords& records, const event::Batch& batch,
                     std::span<const event::DeadLetter> dead) {
  if (records.size() == 0) return;
  parts_.news.See(records, dead);
  parts_.watch.See(batch);
  const auto summed = std::ranges::find_if(summed_, [&](const workers::SummedRange& one) {
    return one.range.partition == records.partition && one.range.begin <= records.first_offset &&
           records.end_offset() <= one.range.end;
  });
  TACIT_CHECK(summed != summed_.end(), "records of no range of the slice");
  for (const event::DeadLetter& letter : dead) ++summed->dead[static_cast<size_t>(letter.part)];
  summed->opted_out += records.size() - batch.size() - dead.size();
  done_ += records.size();
}

Result<std::optional<workers::Body>> SliceRun::Continue(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  do {
    const auto left = deadline - std::chrono::steady_clock::now();
    const auto step =
        intake_->steps().PopFor(std::max(left, std::chrono::steady_clock::duration::zero()));
    if (!step) {
      if (!intake_->steps().closed_and_empty()) return std::optional<workers::Body>();
      TACIT_ASSIGN(workers::Body body, Finish());
      return std::optional(std::move(body));
    }
    if (step->batch.examples.size() == 0) continue;
    for (const SummedLearner& learner : parts_.learners)
      TACIT_RETURN_IF_ERROR(learner.summer->Add(step->batch));
  } while (std::chrono::steady_clock::now() < deadline);
  return std::optional<workers::Body>();
}

Result<workers::Body> SliceRun::Finish() {
  intake_->Stop();
  TACIT_RETURN_IF_ERROR(intake_->status());
  const std::vector<stream::ReadRange>& read = parts_.source.read();
  if (read.size() != ranges_.size())
    return Fail(ErrorCode::kUnavailable, "a slice was not read to its end");
  workers::Body body;
  for (size_t i = 0; i < read.size(); ++i) {
    summed_[i].before = read[i].before;
    summed_[i].last = read[i].last;
    summed_[i].empty = read[i].empty;
    body.ranges.push_back(summed_[i]);
  }
  std::vector<workers::LearnerPart> parts;
  for (const SummedLearner& learner : parts_.learners)
    parts.push_back({learner.key, learner.summer->Take()});
  body.sums = workers::EncodeParts(parts);
  return body;
}

}  // namespace tacit::daemon
