#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/threads/mutex.h"
#include "metrics/registry.h"
#include "stream/kafka/period_share.h"
#include "workers/board.h"
#include "workers/collector.h"
#include "workers/records.h"
#include "workers/seal.h"

namespace tacit::workers {

// The two topics, as a trainer uses them. No call waits for brokers: they are asked beside it.
class TrainerTopics {
 public:
  using Show = std::function<void(std::string_view key, std::string_view value)>;

  virtual ~TrainerTopics() = default;
  // Shows the records of NAME.sums that have come, after `timeout` at the latest. It begins with
  // the topic, and does so again after a failure, which the outcome tells of.
  virtual Status ReadSums(std::chrono::milliseconds timeout, const Show& show) = 0;
  // True once all was shown that was there when reading began.
  virtual bool caught_up() const = 0;
  // Has this plan written, and no older one any more; how the last try to write one went, and
  // whether the newest plan is written.
  virtual void WritePlan(std::string plan) = 0;
  virtual Status plan_status() const = 0;
  virtual bool plan_written() const = 0;
  // Has the sums deleted that were shown since reading last began. Returns how it went the time
  // before.
  virtual Status DeleteShown() = 0;
};

// The bytes of bodies that are not whole, for plans of memory.
inline constexpr uint64_t kHeldBytesMost = uint64_t{128} << 20;

struct DealerOptions {
  SharedKey key{};
  // Returns the events of a learner's part, or says what is wrong with its bytes. If empty, parts
  // are taken as they come.
  std::function<Result<uint64_t>(LearnerIndex learner, std::string_view part)> events = {};
  Clock::Duration patience = std::chrono::seconds(5);
  double check = 0;  // the share of bodies that the trainer sums up too
  uint64_t held_bytes_most = kHeldBytesMost;
};

// Workers say hello each second: after a start a dealer writes a plan without slices, and waits for
// so long to hear who answers it.
inline constexpr std::chrono::milliseconds kFirstHellos{1500};
// A dealer waits so long at a start until that plan is written, and until it has read what lies in
// the topic of sums.
inline constexpr std::chrono::seconds kCatchUpMost{30};
// Plans are written again after so long, for workers that have missed one.
inline constexpr std::chrono::seconds kBetweenPlans{10};

// Deals a trainer's periods out to workers, and takes their sums. All that no worker delivers, the
// trainer reads itself; where a topic is away, it reads all. The first period of a store is the
// trainer's: no worker has a model yet.
//
// A hello counts once, if it answers a plan that this process wrote in this period or in the one
// before: a hello that somebody writes into the topic again says nothing of who is there. A worker
// gets slices while its hellos name the head of this period, or of the one before, which it may
// have left by now: with another model, or none, it sums nothing.
//
// One thread, except for trouble().
class Dealer final : public stream::PeriodShare {
 public:
  // The references must outlive the dealer.
  Dealer(const DealerOptions& options, TrainerTopics& topics, const Clock& clock,
         metrics::Registry& registry);

  // The learners' keys in the store; this trainer's build; and a secret that workers do not know:
  // which bodies are checked follows from it, so that they are the same after a restart. REQUIRES a
  // call before Begin.
  void SetStore(std::map<LearnerIndex, uint16_t> keys, const Digest& build, std::string secret) {
    keys_ = std::move(keys);
    build_ = build;
    secret_ = std::move(secret);
  }

  void Begin(stream::SharedPeriod period) override;
  Result<stream::PeriodPiece> Next(std::chrono::milliseconds timeout) override;
  Status HaveRead(const std::vector<std::optional<stream::LastRecord>>& last) override;
  std::map<int32_t, stream::LastRecord> Last() const override { return collector_.Last(); }

  // Says what is wrong with workers and their topics; empty if nothing is. Any thread.
  std::string trouble() const;

 private:
  enum Trouble : size_t { kSums, kPlan, kDeletion, kLate, kDeadly, kMemory, kTroubles };

  // Takes what has come to the topic of sums.
  Status Follow(std::chrono::milliseconds timeout);
  Status Take(std::string_view key, std::string_view value);
  // The parts of sums, which must be those of the period's learners.
  Result<std::vector<event::SummedPart>> PartsOf(std::string_view sums) const;
  // Each offset of a body is an event of each learner's sums, or is counted as none.
  Status Check(const Body& body) const;
  Status TakeChunk(const SealedRecord& record);
  // Has the trainer sum what a worker had, whose sums have no room here.
  void GiveBack(const std::string& worker);
  void TakeHello(const SealedRecord& record);
  // Tells whether a hello was said just now, and notes that it was heard.
  bool IsFresh(const Hello& hello);
  void Refuse(Outcome outcome, const std::string& why);
  // Once a period.
  void Tell(const std::string& why);
  stream::PeriodPiece Look();
  bool MayDeal();
  void Deal();
  // Writes the plan of the period.
  void Announce();
  // Takes back from the workers what they were dealt, if plans are not written.
  void TakeBack();
  // Notes workers that are late, and a slice that has ended too many workers, and waits.
  void NoteWorkers();
  // Leaves to the trainer what it has to read next, if it reads nothing now: a slice of its own, or
  // else a check.
  stream::PeriodPiece LeaveOwn();
  bool IsChecked(const BodyName& body) const;
  void Note(Trouble trouble, const Status& status);

  const DealerOptions options_;
  TrainerTopics& topics_;
  const Clock& clock_;
  Collector collector_;
  Board board_;

  std::map<LearnerIndex, uint16_t> keys_;      // in the store
  std::map<uint16_t, LearnerIndex> learners_;  // of the period, by key
  Digest build_{};
  std::string secret_;
  stream::SharedPeriod period_;
  Digest head_{}, head_before_{};  // of the period and the one before
  // The newest plan, or the start; the first plan of the period, and of the period before.
  int64_t plan_ms_, period_from_, fresh_from_;
  struct LastHello {
    int64_t plan_ms = 0;
    uint64_t number = 0;
  };
  std::map<std::string, LastHello> heard_;       // fresh ones, by worker
  bool joined_ = false;                          // it has waited for the first hellos
  bool dealt_ = false;                           // this period
  std::optional<Clock::TimePoint> waits_since_;  // for the first hellos
  Clock::TimePoint reads_since_{};               // what lay there at the start
  std::optional<Clock::TimePoint> ended_;        // the period before
  Clock::TimePoint begun_, followed_, next_plan_;
  std::deque<stream::PeriodPiece> sums_;    // counted, and not handed on
  std::deque<stream::PeriodPiece> checks_;  // the same with their ranges: they are read first
  Ranges own_;                              // left to the trainer, which reads them now
  bool checking_ = false;                   // they are those of the first check
  bool no_room_ = false;                    // for a body, in this period
  std::set<std::string> told_;              // in this period

  const metrics::Gauge workers_, period_seconds_, gap_seconds_;
  const metrics::Counter by_trainer_, by_workers_, checked_, repeated_;
  std::map<Outcome, metrics::Counter> refused_;
  mutable Mutex mutex_;
  std::array<std::string, kTroubles> troubles_ TACIT_GUARDED_BY(mutex_);
};

}  // namespace tacit::workers
