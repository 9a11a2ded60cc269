#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "workers/records.h"
#include "workers/slices.h"

namespace tacit::workers {

// A worker says hello each second; it is gone when this long nothing was heard of it.
inline constexpr Clock::Duration kSilenceMost = std::chrono::seconds(3);
// A slice that ended this many workers is announced with pauses, and the trainer does not try it.
inline constexpr uint32_t kEndsMost = 3;
inline constexpr Clock::Duration kPauseMost = std::chrono::minutes(1);
// A slice that came late from this many workers is the trainer's.
inline constexpr uint32_t kLateMost = 2;
// A worker whose slice came late gets none for the rest of the period and for the next period; with
// each further late slice for twice as many periods, and never for more than this many.
inline constexpr uint64_t kRestMost = 1024;
// After its rest a worker is tried with this share of the slice that the others have.
inline constexpr double kTrialShare = 1.0 / 16;

// A part of the period that is not covered yet.
struct OpenSlice {
  enum class Holder : uint8_t { kWorker, kTrainer, kNobody };
  Ranges ranges;
  Holder holder = Holder::kNobody;
  std::string worker{};         // with kWorker
  Clock::TimePoint since;       // when its holder got it
  Clock::TimePoint earliest{};  // with kNobody: it is not announced before
  uint32_t ends = 0;            // workers that were gone while they had it
  uint32_t late = 0;            // workers that had it and were late
};

// The workers that are there, and the slices that they sum. It deals a period out in proportion to
// the workers' rates and deals again what comes late: a holder is a hint that saves work, and no
// sum depends on it. A worker that never delivers costs `patience` at most seven times in a hundred
// periods. Time is an argument. Not thread-safe.
class Board {
 public:
  struct Hand {
    uint64_t offsets = 0;
    Clock::TimePoint since;
    Clock::TimePoint moved;  // when a hello last told of more offsets done, at first `since`
  };
  struct Worker {
    Hello hello;
    Clock::TimePoint heard;
    double rate = 0;           // offsets a second, measured; 0: not yet
    std::optional<Hand> hand;  // the slice it was given and has not delivered
  };

  explicit Board(Clock::Duration patience) : patience_(patience) {}

  // A hello that was said just now, by a worker that sums as this trainer does. One that `leaves`
  // gets no slice until its next hello.
  void Heard(const Hello& hello, Clock::TimePoint now);
  // No worker is there until it is heard again.
  void ForgetWorkers() { workers_.clear(); }
  // Deals a period's ranges out, a slice a worker that is there; its `own` ranges are the
  // trainer's. Forgets the slices before.
  void Deal(const Ranges& ranges, Clock::TimePoint now, const Ranges& own = {});
  // A body of this worker was counted; an empty name: of the trainer.
  void Covered(const std::string& worker, const Ranges& ranges, Clock::TimePoint now);
  // The slice that this worker has in hand is the trainer's from now on.
  void GiveBack(const std::string& worker, Clock::TimePoint now);
  // Deals slices again whose holders are gone or late. Returns true where a plan has to tell so.
  bool Look(Clock::TimePoint now);

  const std::vector<OpenSlice>& open() const { return open_; }
  // The slices for a plan: those that somebody holds.
  std::vector<Slice> Announced() const;
  // The workers that are there, by name.
  const std::map<std::string, Worker>& Workers() const { return workers_; }
  // The workers that are there and have delivered nothing since a slice came late, by name, with
  // the number of their late slices.
  std::map<std::string, uint32_t> Late() const;

 private:
  struct Rest {
    uint32_t late = 0;   // slices, since the worker's last delivery
    uint64_t until = 0;  // this period, by deals_
  };

  // Offsets a second; 0: not known.
  static double RateOf(const Worker& worker);
  bool Rests(const std::string& worker) const;
  // Rates of the workers that are to get a slice, by name; and of the trainer, with an empty name,
  // if all of these workers are on trial.
  std::map<std::string, double> Shares() const;
  bool IsLate(const OpenSlice& slice, Clock::TimePoint now) const;
  bool DropTheGone(Clock::TimePoint now);
  bool DropTheLate(Clock::TimePoint now);
  // Finds a holder for a slice that nobody holds.
  bool Place(OpenSlice* slice, Clock::TimePoint now);
  void Give(OpenSlice* slice, const std::string& worker, Clock::TimePoint now);

  const Clock::Duration patience_;
  std::map<std::string, Worker> workers_;
  std::map<std::string, Rest> rests_;  // also of workers that are gone, until their rest has ended
  uint64_t deals_ = 0;
  std::vector<OpenSlice> open_;
  std::vector<double> deliveries_;  // of this period: the seconds that each took
};

}  // namespace tacit::workers
