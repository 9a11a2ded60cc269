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
#include "stream/step_sizes.h"
#include "stream/steps/allowance_book.h"

namespace tacit::stream {

// The allocation of a period (`allocate`): a unit's step of each block is a function of this key.
// The key tells which records a step held, so it is as secret as they are. It is drawn when the
// period begins, and ends with its last step.
struct PeriodAllocation {
  SipHash::Key key{};
  uint64_t block_steps = 0, period_steps = 0;  // those that the period began with, and paid for
  friend bool operator==(const PeriodAllocation&, const PeriodAllocation&) = default;
};

// A learner's position in the stream: everything it needs to resume after a crash.
struct Position {
  uint64_t pass = 0;                      // number of times the source was read to its end
  uint64_t period = 0;                    // number of finished periods, if the stream has periods
  std::vector<OffsetRange> period_start;  // begin of the period, one (empty) range a partition
  // next.begin = next offset to read, one range a partition. Held periods: the unfinished one ends
  // at next.end, if that is above next.begin.
  std::vector<OffsetRange> next;
  uint64_t step = 0;  // steps taken
  // Progress in the unfinished period. Held periods: steps taken (period_step); `once`: offsets
  // covered (period_step), and public cuts passed (period_cuts).
  uint64_t period_step = 0;
  uint64_t period_cuts = 0;
  // Held periods: the most steps that any of them can have had. 0: none was held.
  uint64_t longest_period = 0;
  // A digest of how records are read, and the step since which all were read so. Where records were
  // read in another way, a restore cannot count their users again. 0: not known.
  uint64_t reading = 0, reading_since = 0;
  // The number of periods that shared records with the one before: `allocate` begins one anew whose
  // allocation is unknown, and the rest of a period that was cut short is another one's.
  uint64_t begun_anew = 0;
  // `allocate`: the unfinished period's allocation, which is kept apart from the rest.
  std::optional<PeriodAllocation> allocation = {};
};

// Options of unit user: all examples of a user in a step are one unit. Each user is in, or eligible
// for, at most `allowance` steps over the life of the learner, and is then left out. Only the
// user's own records and public facts decide whether a user is in a step, so a user's presence
// changes nothing for the others. Users are counted when a step is cut. Their UserUses go with the
// step and are committed with it, so that after a crash the lost steps are counted again, and no
// others.
struct UserOptions {
  SipHash::Key key{};                   // users are counted under this key
  AllowanceBook* allowances = nullptr;  // the learner's, through all passes; must outlive them
  uint64_t allowance = 0;               // steps
  uint64_t records_max = 0;             // examples of a user in a step: the first ones. 0: all
  // `once`: steps of a period that a user may be in (0: all). A period closes after a step once it
  // has `period_offsets` offsets or `period_cuts` file ends, ticks and losses, the earlier of both;
  // 0: never.
  uint64_t per_period = 0;
  uint64_t period_offsets = 0, period_cuts = 0;
};

// The examples of one private update and the public frame around them.
struct StepBatch {
  enum class Kind {
    // `once`: the ranges are what this step alone covers. Parts of it may have come as previews.
    kOnce,
    kPreview,       // predicted, not learnt from: nothing is released and nothing charged
    kPreviewAgain,  // the same, of a period that opened before a crash and was predicted then
    // Held periods: the ranges are those of the whole period, the same in each of its steps; every
    // offset in them was eligible for this step.
    kPeriodFirst,  // all examples of the period came as previews just before
    kPeriodNext,
    kHeldOut,  // predicted and never learnt from, to measure what was learnt before
    kSums,     // a part of the period that another process has summed up; nothing is released yet
  };

  Kind kind = Kind::kOnce;
  // Different for different steps of this process, so that one can be recognised; 0: it has none.
  // A step that has a number does not change any more.
  uint64_t number = 0;
  event::Batch examples;          // examples of one unit side by side; unit event: in offset order
  std::vector<uint32_t> unit_of;  // per example, ascending from 0
  uint32_t units = 0;
  std::string sums, sums_from;  // kSums: bytes of the learner's, and the process that sent them
  // kPreview: another process has summed up these examples too. kSums: they are those of the
  // previews before, and are compared with them; if there are no bytes, nothing can be compared.
  bool recount = false;
  // Ends of the sum blocks, in examples: runs of whole units that a model may add up in floats.
  // Which block a unit is in follows from its own offset or id and from public facts. Other units,
  // there or not, do not move it. If empty, all examples are one block, which takes longer to add.
  std::vector<uint32_t> sum_block_end;
  std::vector<OffsetRange> ranges;     // offsets this step covers, dead letters included
  uint64_t lost = 0;                   // of them, those at the end that were lost unread
  uint64_t period_steps = 0;           // held periods: the number of steps taken of each
  Position after;                      // the position once this step is applied
  std::vector<event::PublicCut> cuts;  // file ends, ticks or losses at this step's end
  uint32_t cuts_passed = 0;            // `once`: these, and the file ends that did not end it
  // Unit user: the step counts users, and `uses` are their counts once it is taken. (Held periods:
  // the first step of one, and the first one after a crash, has the counts for all of its steps.)
  bool counts_users = false;
  std::vector<UserUses> uses;
  UsersCame came;  // with these counts

  bool preview() const {
    return kind == Kind::kPreview || kind == Kind::kPreviewAgain || kind == Kind::kHeldOut ||
           kind == Kind::kSums;
  }
  bool whole_period() const { return kind == Kind::kPeriodFirst || kind == Kind::kPeriodNext; }
};

// A held period's previews have this many examples, except for the records of the last user.
inline constexpr uint64_t kPreviewExamples = 4096;

// A number that no step of this process has yet.
uint64_t NewStepNumber();

// Cuts the decoded stream into steps. Only public facts decide where: offsets and public
// cuts, never how many records survived decoding. One thread calls it.
class Participation {
 public:
  using Emit = std::function<bool(StepBatch&&)>;  // false: stop

  virtual ~Participation() = default;
  // Takes the examples decoded from `frame` (uses its offsets and public cuts, not its payload) and
  // emits every step they complete. Returns false if Emit did, or after a failure (status()).
  virtual bool Cut(const event::RawRecords& frame, const event::Batch& examples,
                   const Emit& emit) = 0;
  // Emits the pending examples as a last step when the stream has ended for good.
  virtual bool Finish(const Emit& emit) = 0;
  // Returns the failure if Cut or Finish returned false although Emit did not.
  virtual Status status() const { return {}; }
};

// Options of `once`: a step is the next offsets of the partition, as many as its size, cut short at
// a file end or a tick of the clock. Every event is in exactly one step per pass (unit user: in at
// most one). Empty steps count too, and so do offsets without a record. All lost offsets are in the
// one step that they cut short, so that they are on the ledger.
struct OnceOptions {
  uint64_t offsets_per_step = 2048;  // at most 2^62
  Position start;
  uint64_t opening_offsets = 0, growing_from = 0;  // as StepSizes has them
  uint32_t files_per_step = 1;                     // number of file ends that cut a step short
  // A full step does not wait for a public cut at its end: for sources without files.
  bool full_at_once = false;
  // A step's examples come as they are read, as previews of this many offsets or more, and the rest
  // with the step; none of them is held. For learners that sum a step up, streams of one partition
  // and unit event. 0: all come with the step.
  uint64_t offsets_per_part = 0;
  std::optional<UserOptions> users = {};  // unit user; else unit event
};
std::unique_ptr<Participation> MakeOnceParticipation(OnceOptions options);

// Hands on the periods that the source cuts (RawRecords::period): each is a step, and every event
// is in exactly one; offsets before `start` are in none. Its examples come as they are read, as
// previews of `offsets_per_part` offsets or more, or of one partition's last; nothing more is held.
// Frames hold sums of other processes for this learner alone. For learners that sum a step up, and
// unit event.
std::unique_ptr<Participation> MakeTopicPeriodParticipation(uint64_t offsets_per_part,
                                                            Position start);

// Cuts steps as `once` does, and holds them all out. With users, `allowances` and what
// bounds their use are not looked at: nobody takes part in anything.
std::unique_ptr<Participation> MakeHeldOutParticipation(OnceOptions options);

// Options of `poisson`: a period is the next `offsets_per_period` offsets of a partition, cut short
// at a tick or at the `files_per_period`-th file end since it began, and is held until it is
// closed. (An empty file at its very beginning is not counted: a second reading from there would
// not see it.) Then `steps_per_period` steps are taken of it. Each event (unit user: each user,
// with all records of the period) is in each step with probability `sampling_rate`, independently;
// the CSPRNG draws the coins. A user is let into a whole period or left out of it, histograms
// included, and is counted for all of its steps when it opens.
//
// While the steps of a period last, the position is the period's beginning: after a crash it is
// read again, and the steps not yet taken draw fresh coins. Before the first step of a period its
// events come as previews, so that progressive evaluation predicts them before any is learnt from.
// With unit user the previews come again when the period is read again, for learners that keep user
// histories. A period that lost records before it was read again is closed: no more steps are taken
// of it.
struct PoissonOptions {
  uint64_t offsets_per_period = 0;  // 0: no limit
  uint32_t files_per_period = 1;
  uint64_t steps_per_period = 0;
  double sampling_rate = 0;  // in (0, 1]
  Position start;
  bool full_at_once = false;              // as for `once`
  std::optional<UserOptions> users = {};  // unit user; else unit event
};
std::unique_ptr<Participation> MakePoissonParticipation(PoissonOptions options,
                                                        std::unique_ptr<noise::NoiseSource> coins);

// Options of `allocate`: periods are cut and held as by `poisson`. The steps taken of a period come
// in blocks, and each event (unit user: each user) is in exactly one step of each block, which it
// draws independently of all others, uniformly. The steps are therefore not of equal size: making
// them so is another mechanism, which the accountant does not cover. Nor does what a record holds
// decide: only its partition and offset (unit user: the user), under the period's key.
//
// The key is in the position, so that an interrupted period goes on with the same steps: drawn
// anew, a record could take part twice. Where a position lacks the key of the period that it is in,
// or has it for other blocks than these, the rest of the period cannot be taken. Then the period is
// begun anew, as one that is charged once more, if `begins_anew`; else it is closed, as one that
// was lost.
struct AllocationOptions {
  uint64_t offsets_per_period = 0;  // 0: no limit
  uint32_t files_per_period = 1;
  uint64_t block_steps = 0;  // steps in each block
  uint64_t blocks = 1;       // taken of each period
  Position start;
  bool full_at_once = false;              // as for `once`
  std::optional<UserOptions> users = {};  // unit user; else unit event
  bool begins_anew = false;
};
// `keys`: where keys come from; nothing else is drawn.
std::unique_ptr<Participation> MakeAllocationParticipation(
    AllocationOptions options, std::unique_ptr<noise::NoiseSource> keys);

// True if a learner at this position goes on with the period that it is in.
bool KnowsAllocation(const Position& position, uint64_t block_steps, uint64_t blocks);

}  // namespace tacit::stream
