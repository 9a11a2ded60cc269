#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "event/codec.h"
#include "event/dead_letters.h"
#include "event/feature_transform.h"
#include "stream/kafka/range_source.h"
#include "train/intake.h"
#include "train/learner/part_summer.h"
#include "train/watch/dead_letter_news.h"
#include "train/watch/stream_watch.h"
#include "workers/records.h"

namespace tacit::daemon {

// A learner that a slice is summed for.
struct SummedLearner {
  uint16_t key = 0;  // in the store
  train::PartSummer* summer = nullptr;
};

// The outside of a slice. What it refers to must outlive it.
struct SliceParts {
  stream::RangeSource& source;
  const event::Codec& codec;
  const event::FeatureTransform& transform;
  event::DeadLetterSink& dead_letters;
  // Told of what is read.
  train::DeadLetterNews& news;
  train::StreamWatch& watch;
  std::vector<SummedLearner> learners;  // ascending by key, with the model of the slice's head
  train::RecordFilterOptions filter = {};
  uint32_t decode_threads = 1;
  uint64_t offsets_per_part = 4096;
};

// Sums a slice up: reads its ranges, decodes and filters their records, as a trainer's intake does,
// and adds them up by the model. One thread; those of the intake end with it.
class SliceRun {
 public:
  static Result<std::unique_ptr<SliceRun>> Begin(SliceParts parts, workers::Ranges ranges);
  ~SliceRun();
  SliceRun(const SliceRun&) = delete;
  SliceRun& operator=(const SliceRun&) = delete;

  const workers::Ranges& ranges() const { return ranges_; }
  uint64_t offsets() const { return workers::CountOffsets(ranges_); }
  // The offsets read so far.
  uint64_t done() const { return done_; }

  // Adds up what comes within `timeout`. Returns the body once all of it is summed, and then never
  // again. kUnavailable: the slice cannot be read at present, and all of it is lost.
  Result<std::optional<workers::Body>> Continue(std::chrono::milliseconds timeout);

 private:
  SliceRun(SliceParts parts, workers::Ranges ranges);
  void Count(const event::RawRecords& records, const event::Batch& batch,
             std::span<const event::DeadLetter> dead);
  Result<workers::Body> Finish();

  SliceParts parts_;
  const workers::Ranges ranges_;
  std::vector<workers::SummedRange> summed_;  // written by the intake's threads until it has ended
  std::atomic<uint64_t> done_ = 0;
  std::unique_ptr<train::Intake> intake_;
};

}  // namespace tacit::daemon
