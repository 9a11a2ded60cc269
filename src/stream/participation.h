#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/siphash.h"
#include "base/user_uses.h"
#include "event/batch.h"
#include "event/raw_records.h"
#include "noise/noise.h"
#include "stream/allowance_book.h"

namespace tacit::stream {

// Where a learner is in the stream: everything it needs to go on after a crash.
struct Position {
  uint64_t pass = 0;                      // times the source was read to its end before
  uint64_t period = 0;                    // periods done with, where there are any
  std::vector<OffsetRange> period_start;  // where the period began, one (empty) range a partition
  // next.begin = next offset to read, one a partition. `poisson`: the period that is not done ends
  // at next.end, where that lies behind next.begin.
  std::vector<OffsetRange> next;
  uint64_t step = 0;  // steps taken
  // Of the period that is not done. `poisson`: steps taken; `once`: offsets covered, and marks
  // that cut a step.
  uint64_t period_step = 0;
  uint64_t period_marks = 0;
};

// Unit user: all examples of a user in a step are one unit. Each user is in so many steps, or
// eligible for them, over the life of the learner; then left out. Who is in is a question to the
// user's own records and public things alone, so that a user's being there changes nobody else's.
// Users are counted when a step is cut; UserUses go with the step and are committed with it, so
// that after a crash the steps that were lost are counted anew, and no others.
struct UserOptions {
  SipHash::Key key{};                   // that users are counted under
  AllowanceBook* allowances = nullptr;  // the learner's, through all passes; must outlive them
  uint64_t allowance = 0;               // steps
  uint64_t records_max = 0;             // examples of a user in a step: the first ones. 0: all
  // `once`: steps of a period that a user may be in (0: all), and what closes one behind a step: so
  // many offsets covered, so many marks that cut a step, whichever comes first; 0: never.
  uint64_t per_period = 0;
  uint64_t period_offsets = 0, period_marks = 0;
};

// The examples of one private update and the public frame around them.
struct StepBatch {
  event::Batch examples;          // of one unit side by side; unit event: in offset order
  std::vector<uint32_t> unit_of;  // per example, ascending from 0
  uint32_t units = 0;
  std::vector<OffsetRange> ranges;       // offsets this step covers, dead letters included
  Position after;                        // the position once this step is applied
  std::vector<event::PublicMark> marks;  // file ends at this step's end
  // `poisson`: the ranges are those of the whole period, each step's alike; every offset of them
  // was eligible for this step.
  bool whole_period = false;
  // The first step of its period: everything of the period has come as previews just before.
  bool opens_period = false;
  // To be predicted, not learnt from: nothing is released and nothing charged.
  bool preview = false;
  // A preview of a period that opened before a crash: it was predicted, and looked at, then.
  bool again = false;
  // Unit user: users are counted, these as follows once the step is taken (`poisson`: in the
  // first step of a period, and the first after a crash, for all of its steps).
  bool counts_users = false;
  std::vector<UserUses> uses;
  uint32_t units_refused = 0;  // users left out, for their allowance is used. Un-noised
};

// Cuts the decoded stream into steps in a way that depends on public things only: offsets and
// marks, never on how many records survived decoding. Fed by one thread.
class Participation {
 public:
  using Emit = std::function<bool(StepBatch&&)>;  // false: stop feeding

  virtual ~Participation() = default;
  // Takes the examples decoded from `frame` (its offsets and marks; payload not looked at) and
  // emits every step they complete. False when Emit said so.
  virtual bool Feed(const event::RawRecords& frame, const event::Batch& examples,
                    const Emit& emit) = 0;
  // The stream has ended for good: emits what is pending as a last step.
  virtual bool Finish(const Emit& emit) = 0;
  // What went wrong, where Feed or Finish was false and Emit had not said so.
  virtual Status status() const { return {}; }
};

// `once`: a step is the next `offsets_per_step` offsets of the partition, cut short at
// a file end or a tick of the clock; every event is in exactly one step per pass (unit
// user: at most). Steps may be empty: they still count. Offsets that hold no record count as well;
// those that are lost are all in the one step that they cut short, so that they are on the ledger.
struct OnceOptions {
  uint64_t offsets_per_step = 2048;  // at most 2^62
  Position start;
  uint32_t files_per_step = 1;  // how many file ends cut a step short
  // A full step does not wait for the mark that may stand at its end: for sources without files.
  bool full_at_once = false;
  std::optional<UserOptions> users = {};  // unit user; else unit event
};
std::unique_ptr<Participation> MakeOnceParticipation(OnceOptions options);

// `poisson`: a period is the next `offsets_per_period` offsets of a partition, cut
// short at the `files_per_period`-th file end since it began or a tick, and is held until it is
// closed. (An empty file at its very beginning is not counted: read again from there, it would not
// be seen.) Then `steps_per_period` steps are taken of it, each event (unit user: each user, with
// all records of the period) in each of them with probability `sampling_rate`, independently; the
// coins are the CSPRNG's. A user is let into a whole period or left out of it, histograms included,
// and counted for all of its steps when it opens. While its steps last, a
// position points at the period's beginning: after a crash it is read again, and the steps not yet
// taken draw fresh coins. Before the first step of a period its events come as previews, so that
// progressive evaluation predicts them before any is learnt from; unit user: when it is read again,
// too, for who remembers what users did. A period of which records were
// lost before it was read again is closed: no more steps are taken of it.
struct PoissonOptions {
  uint64_t offsets_per_period = 0;  // 0: as many as there are
  uint32_t files_per_period = 1;
  uint64_t steps_per_period = 0;
  double sampling_rate = 0;  // in (0, 1]
  Position start;
  bool full_at_once = false;              // as of `once`
  std::optional<UserOptions> users = {};  // unit user; else unit event
};
std::unique_ptr<Participation> MakePoissonParticipation(PoissonOptions options,
                                                        std::unique_ptr<noise::NoiseSource> coins);

}  // namespace tacit::stream
