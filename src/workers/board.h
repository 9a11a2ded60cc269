#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "workers/records.h"
#include "workers/slices.h"

namespace tacit::workers {

struct BoardOptions {
  Digest build{};
  Clock::Duration patience = std::chrono::seconds(5);
};

// A worker says hello each second; it is gone when this long nothing was heard of it.
inline constexpr Clock::Duration kSilenceMost = std::chrono::seconds(3);
// A slice that ended this many workers is announced with pauses, and the trainer does not try it.
inline constexpr uint32_t kEndsMost = 3;
inline constexpr Clock::Duration kPauseMost = std::chrono::minutes(1);

// A part of the period that is not covered yet.
struct OpenSlice {
  enum class Holder : uint8_t { kWorker, kTrainer, kNobody };
  Ranges ranges;
  Holder holder = Holder::kNobody;
  std::string worker{};         // with kWorker
  uint64_t offsets = 0;         // as it was announced
  Clock::TimePoint since;       // when its holder got it
  Clock::TimePoint earliest{};  // with kNobody: it is not announced before
  uint32_t ends = 0;            // workers that were gone while they had it
};

// The workers that are there, and the slices that they sum. It deals a period out in proportion to
// the workers' rates and deals again what comes late: a holder is a hint that saves work, and no
// sum depends on it. Time is an argument. Not thread-safe.
class Board {
 public:
  explicit Board(const BoardOptions& options) : options_(options) {}

  // A worker's hello, as it comes. After a start, hellos from before it are not for the board.
  void Heard(const Hello& hello, Clock::TimePoint now);
  // Deals ranges out, a slice a worker that is there. Forgets the slices before.
  void Deal(const Ranges& ranges, Clock::TimePoint now);
  // A body of this worker was counted; an empty name: of the trainer.
  void Covered(const std::string& worker, const Ranges& ranges, Clock::TimePoint now);
  // Deals slices again whose holders are gone or late. Returns true where a plan has to tell so.
  bool Look(Clock::TimePoint now);

  const std::vector<OpenSlice>& open() const { return open_; }
  // The slices for a plan: those that somebody holds.
  std::vector<Slice> Announced() const;
  // The last hello of each worker that is there, by name.
  std::map<std::string, Hello> Workers() const;

 private:
  struct Hand {
    uint64_t offsets = 0;
    Clock::TimePoint since;
  };
  struct Worker {
    Hello hello;
    Clock::TimePoint heard;
    double rate = 0;           // offsets a second, measured; 0: not yet
    std::optional<Hand> hand;  // the slice it was given and has not delivered
  };

  // Offsets a second; 0: not known.
  static double RateOf(const Worker& worker);
  bool Late(const OpenSlice& slice, Clock::TimePoint now) const;
  bool DropTheGone(Clock::TimePoint now);
  bool DropTheLate(Clock::TimePoint now);
  // Finds a holder for a slice that nobody holds.
  bool Place(OpenSlice* slice, Clock::TimePoint now);
  void Give(OpenSlice* slice, const std::string& worker, Clock::TimePoint now);

  const BoardOptions options_;
  std::map<std::string, Worker> workers_;
  std::vector<OpenSlice> open_;
  std::vector<double> deliveries_;  // of this period: the seconds that each took
};

}  // namespace tacit::workers
