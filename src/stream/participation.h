#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "event/batch.h"
#include "event/raw_records.h"
#include "noise/noise.h"

namespace tacit::stream {

// Where a learner is in the stream: everything it needs to go on after a crash.
struct Position {
  uint64_t pass = 0;                      // times the source was read to its end before
  uint64_t period = 0;                    // `poisson`: periods done with
  std::vector<OffsetRange> period_start;  // where the period began, one (empty) range a partition
  // next.begin = next offset to read, one a partition. `poisson`: the period that is not done ends
  // at next.end, where that lies behind next.begin.
  std::vector<OffsetRange> next;
  uint64_t step = 0;         // steps taken
  uint64_t period_step = 0;  // `poisson`: steps taken of the period that is not done
};

// The examples of one private update and the public frame around them.
struct StepBatch {
  event::Batch examples;
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
};

// `once`, unit event: a step is the next `offsets_per_step` offsets of the partition, cut short at
// a file end or a tick of the clock; every event is in exactly one step per pass. Steps may be
// empty: they still count. Offsets that hold no record count as well; those that are lost are all
// in the one step that they cut short, so that they are on the ledger.
struct OnceOptions {
  uint64_t offsets_per_step = 2048;  // at most 2^62
  Position start;
  uint32_t files_per_step = 1;  // how many file ends cut a step short
  // A full step does not wait for the mark that may stand at its end: for sources without files.
  bool full_at_once = false;
};
std::unique_ptr<Participation> MakeOnceParticipation(OnceOptions options);

// `poisson`, unit event: a period is the next `offsets_per_period` offsets of a partition, cut
// short at the `files_per_period`-th file end since it began or a tick, and is held until it is
// closed. (An empty file at its very beginning is not counted: read again from there, it would not
// be seen.) Then `steps_per_period` steps are taken of it, each event in each of them with
// probability `sampling_rate`, independently; the coins are the CSPRNG's. While its steps last, a
// position points at the period's beginning: after a crash it is read again, and the steps not yet
// taken draw fresh coins. Before the first step of a period its events come as previews, so that
// progressive evaluation predicts them before any is learnt from. A period of which records were
// lost before it was read again is closed: no more steps are taken of it.
struct PoissonOptions {
  uint64_t offsets_per_period = 0;  // 0: as many as there are
  uint32_t files_per_period = 1;
  uint64_t steps_per_period = 0;
  double sampling_rate = 0;  // in (0, 1]
  Position start;
  bool full_at_once = false;  // as of `once`
};
std::unique_ptr<Participation> MakePoissonParticipation(PoissonOptions options,
                                                        std::unique_ptr<noise::NoiseSource> coins);

}  // namespace tacit::stream
