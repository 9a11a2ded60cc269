#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"
#include "base/ids.h"
#include "base/result.h"
#include "event/codec.h"
#include "event/dead_letters.h"
#include "event/feature_transform.h"
#include "stream/participation.h"
#include "stream/source.h"
#include "train/record_filter.h"

namespace tacit::train {

// One learner's next private update.
struct LearnerStep {
  LearnerIndex learner;
  stream::StepBatch batch;
  std::string source_identity;  // of the source when these records had been read
};

struct FeedOptions {
  struct Learner {
    // The way into steps from a position: once at the start, then at the beginning of each pass.
    using MakeParticipation =
        std::function<std::unique_ptr<stream::Participation>(stream::Position start)>;

    LearnerIndex index;
    MakeParticipation participation;
    stream::Position start;
  };
  std::vector<Learner> learners;
  RecordFilterOptions filter = {};
  uint32_t passes = 1;            // how often a source with an end is read
  size_t queued_records_max = 4;  // runs of records between the poll and the decode thread
  size_t queued_steps_max = 4;    // steps between the decode thread and the trainer
};

// From the source to steps: one thread polls, one decodes and cuts. Both queues are bounded, so a
// slow trainer holds the source back. A record is handed on only after the dead letters before it
// are durable. Thread-safe.
class Feed {
 public:
  // The references must outlive the feed.
  Feed(FeedOptions options, stream::Source& source, const event::Codec& codec,
       const event::FeatureTransform& transform, event::DeadLetterSink& dead_letters);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Seeks the source to where the learners are and starts the threads.
  Status Start();
  // Cuts no more steps for this learner. May be called from any thread.
  void Retire(LearnerIndex learner);
  // Stops reading; steps not yet taken are dropped. May be called from any thread, more than once.
  void Stop();

  // Closed when the source has ended for good, has failed or was stopped.
  BoundedQueue<LearnerStep>& steps() { return steps_; }
  // What ended the feed, when it was a failure.
  Status status() const;

  uint64_t records_read() const { return records_read_; }
  // Records still to be read, all passes counted: an estimate that gets better as files are read.
  uint64_t records_ahead() const { return records_ahead_; }
  uint64_t records_dead() const { return records_dead_; }

 private:
  // What the poll thread hands over: records, or the end of a pass.
  struct Piece {
    event::RawRecords records;
    std::string source_identity;
    bool ends_pass = false;
  };
  class Cutter;  // one learner's participation through all passes

  void Poll();
  Status PollPass(uint64_t pass);
  Status HandOn(Piece piece);
  void Decode();
  Status DecodePiece(const Piece& piece, event::Batch* batch, std::vector<event::DeadLetter>* dead);
  // Drops the letters of what was read before, to know what is new: those were written then.
  void DropTold(const event::RawRecords& records, std::vector<event::DeadLetter>* dead) const;
  void Fail(Error error);
  std::vector<stream::PartitionOffset> FirstPositions(uint64_t pass) const;

  FeedOptions options_;
  stream::Source& source_;
  const event::Codec& codec_;
  const event::FeatureTransform& transform_;
  event::DeadLetterSink& dead_letters_;

  BoundedQueue<Piece> pieces_;
  BoundedQueue<LearnerStep> steps_;
  std::vector<std::unique_ptr<Cutter>> cutters_;
  RecordFilter filter_;  // of the decode thread, as is decoded_pass_
  uint64_t first_pass_ = 0, decoded_pass_ = 0;
  std::vector<stream::PartitionOffset>
      starts_;  // of the first pass: what is before was learnt from
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> records_read_ = 0, records_dead_ = 0, records_ahead_ = 0;
  mutable std::mutex mutex_;
  Status status_;
  std::thread poller_, decoder_;
};

}  // namespace tacit::train
