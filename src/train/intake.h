#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/threads/bounded_queue.h"
#include "base/threads/mutex.h"
#include "event/codec.h"
#include "event/dead_letters.h"
#include "event/feature_transform.h"
#include "stream/source.h"
#include "stream/steps/participation.h"
#include "train/quality/window_counter.h"
#include "train/record_filter.h"
#include "train/turns.h"

namespace tacit::train {

// One learner's next private update; or, for all learners, the end of a window of the breaker.
struct LearnerStep {
  LearnerIndex learner;
  stream::StepBatch batch;
  std::string source_identity;               // the source's identity after these records
  std::optional<WindowEnd> window_end = {};  // no step: `batch` is empty
};

struct IntakeOptions {
  struct Learner {
    // Makes the participation from a position: once at the start, then at each pass's beginning.
    using MakeParticipation =
        std::function<std::unique_ptr<stream::Participation>(stream::Position start)>;

    LearnerIndex index;
    MakeParticipation participation;
    stream::Position start;
    // No budget has room for a step of it any more: it gets none, and nothing is read for it. Where
    // all are, nothing is read.
    bool spent = false;
  };
  std::vector<Learner> learners;
  // The source cuts periods over all its partitions, none of them over a learner's position, and
  // brings their parts, sums of others among them, in any order.
  bool parts_in_any_order = false;
  RecordFilterOptions filter = {};
  // The windows whose ends go among the steps, behind all that end before them; the end of one that
  // is a period comes before the steps of it. In the first of all passes alone: later ones bring
  // the same records.
  struct Windows {
    uint64_t offsets = 0;                // of each; 0: windows are the periods of a topic
    std::vector<OffsetRange> next = {};  // where open ones begin
  };
  std::optional<Windows> windows = {};
  uint32_t passes = 1;            // reads of a source that has an end
  uint32_t decode_threads = 1;    // each decodes a run of records; the codec is used by all
  size_t queued_records_max = 4;  // runs of records between the poll and the decode threads
  size_t queued_steps_max = 4;    // steps between the decode threads and the trainer
  // Called after each run of records, in their order and by one thread at a time, with its good
  // records and its dead letters, in the first pass alone; may be empty.
  std::function<void(const event::RawRecords&, const event::Batch&,
                     std::span<const event::DeadLetter>)>
      on_decoded = {};

  // The bytes of runs between the threads and in their hands, for plans of memory: a run has a MiB
  // and one more record of at most `record_bytes_most`.
  double RunBytes(uint64_t record_bytes_most) const {
    const size_t runs = queued_records_max + 1 + decode_threads;
    return static_cast<double>(runs) * static_cast<double>((1 << 20) + record_bytes_most);
  }
};

// Turns the source's records into steps: one thread polls, others decode and cut. They decode side
// by side, and do the rest in the order in which the records were polled, so that steps do not
// depend on how many there are. Both queues are bounded, so a slow trainer slows the source. A
// record is passed on only after the dead letters before it are durable. Thread-safe.
class Intake {
 public:
  // The references must outlive the intake.
  Intake(IntakeOptions options, stream::Source& source, const event::Codec& codec,
         const event::FeatureTransform& transform, event::DeadLetterSink& dead_letters);
  ~Intake();
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  // Seeks the source to the learners' positions and starts the threads.
  Status Start();
  // Cuts no more steps for this learner. May be called from any thread.
  void Retire(LearnerIndex learner);
  // Stops reading; steps not yet taken are dropped. May be called from any thread, more than once.
  void Stop();

  // The queue of steps; closed when the source has ended for good, has failed or was stopped.
  BoundedQueue<LearnerStep>& steps() { return steps_; }
  // The failure that ended the intake, or success.
  Status status() const;

  uint64_t records_read() const { return records_read_; }
  // Estimated records still to be read, over all passes; improves as files are read.
  uint64_t records_ahead() const { return records_ahead_; }
  uint64_t records_dead() const { return records_dead_; }
  // Offsets read that wait until a step, or a held period, of this learner is full; those of a
  // period whose steps have begun are none of them.
  uint64_t offsets_waiting(LearnerIndex learner) const;
  // Records that learners are given: read, good, not repeated, and of nobody who opted out.
  uint64_t records_good() const { return records_good_; }

 private:
  // One item of the poll thread's queue: records, or the end of a pass.
  struct Piece {
    event::RawRecords records;
    std::string source_identity;
    bool ends_pass = false;
  };
  struct Ticketed {
    Piece piece;
    uint64_t ticket = 0;  // its place in the order
  };
  class Cutter;  // one learner's participation through all passes

  // Runs keep their memory from one poll to the next: what was cut goes back to the poll thread.
  event::RawRecords TakeSpare();
  void GiveSpare(event::RawRecords records);

  void Poll();
  Status PollPass(uint64_t pass);
  void CountPiece(uint64_t pass, Piece* piece);
  Status HandOn(uint64_t pass, Piece piece);
  std::optional<Ticketed> Take();
  void Decode();
  // All that comes after decoding, when it is the piece's turn.
  Status TakeTurn(Piece* piece, event::Batch* batch, std::vector<event::DeadLetter>* dead);
  // Counts records that another process has read, and summed up.
  void CountSummed(const event::SummedRecords& summed);
  // Takes note of records that another process has summed up too. At their end it takes its sums
  // out of the frame if they are of other records.
  void Recount(std::span<const event::DeadLetter> dead, event::RawRecords* records);
  // Drops dead letters of records that are read again only for deduplication: an earlier run wrote
  // those letters.
  void DropTold(const event::RawRecords& records, std::vector<event::DeadLetter>* dead) const;
  bool CutSteps(const Piece& piece, const event::Batch& batch, Status* status);
  bool CutPeriod(const Piece& piece, const event::Batch& batch,
                 std::span<const event::DeadLetter> dead, Status* status);
  bool CutWindows(const Piece& piece, const event::Batch& batch,
                  std::span<const event::DeadLetter> dead, Status* status);
  bool EndWindow(const Piece& piece, std::optional<WindowEnd> window);
  void Fail(Error error);
  std::vector<stream::PartitionOffset> FirstPositions(uint64_t pass) const;
  void ReadOpenWindows(std::vector<stream::PartitionOffset>* positions);

  IntakeOptions options_;
  stream::Source& source_;
  const event::Codec& codec_;
  const event::FeatureTransform& transform_;
  event::DeadLetterSink& dead_letters_;

  BoundedQueue<Piece> pieces_;
  BoundedQueue<LearnerStep> steps_;
  Mutex spare_mutex_;
  std::vector<event::RawRecords> spare_ TACIT_GUARDED_BY(spare_mutex_);
  Mutex taking_;  // held while a piece gets its ticket
  uint64_t tickets_ TACIT_GUARDED_BY(taking_) = 0;
  Turns turns_;
  // The thread whose turn it is uses these, and windows_, periods_, recounted_ and decoded_pass_.
  std::vector<std::unique_ptr<Cutter>> cutters_;
  RecordFilter filter_;
  std::optional<WindowCounter> windows_;
  std::optional<PeriodCounter> periods_;
  event::SummedRecords recounted_;  // records that another process has summed up too
  uint64_t first_pass_ = 0, decoded_pass_ = 0;
  std::vector<stream::PartitionOffset>
      starts_;  // first pass only: earlier records were learnt from
  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> records_read_ = 0, records_dead_ = 0, records_good_ = 0, records_ahead_ = 0;
  mutable Mutex mutex_;
  Status status_ TACIT_GUARDED_BY(mutex_);
  std::thread poller_;
  std::vector<std::thread> decoders_;
  std::atomic<uint32_t> decoding_ = 0;  // of these, those that have not ended
};

}  // namespace tacit::train
