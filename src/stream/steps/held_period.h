#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "stream/steps/participation.h"
#include "stream/steps/user_units.h"

// Code shared by the participations that hold periods. Private to the room.
namespace tacit::stream {

struct HeldPeriodOptions {
  uint64_t offsets_per_period = 0;  // 0: no limit
  uint32_t files_per_period = 1;
  uint64_t steps_per_period = 0;
  double step_share = 0;  // of a period's units that a step has on average
  Position start;
  bool full_at_once = false;
  std::optional<UserOptions> users = {};
};

// Cuts periods exactly like steps of `once`, and takes steps of each. How a step takes its units
// out of a period's is left to the kind of participation.
class HeldPeriods : public Participation {
 public:
  explicit HeldPeriods(HeldPeriodOptions options);

  bool Cut(const event::RawRecords& frame, const event::Batch& examples,
           const Emit& emit) override {
    return periods_->Cut(frame, examples,
                         [&](StepBatch&& period) { return Take(std::move(period), emit); });
  }
  bool Finish(const Emit& emit) override {
    return periods_->Finish([&](StepBatch&& period) { return Take(std::move(period), emit); });
  }
  Status status() const override { return status_; }

 protected:
  // Called once for each period, before its first step or the first one after a crash.
  virtual void BeginPeriod(const UnitBatch& units) = 0;
  // Draws the units of the step after position().period_step steps of the period, ascending.
  virtual void Draw(const UnitBatch& units, std::vector<uint32_t>* drawn) = 0;

  const HeldPeriodOptions& options() const { return options_; }
  const Position& position() const { return position_; }
  void SetAllocation(const PeriodAllocation& allocation) { position_.allocation = allocation; }
  // For a constructor: the period that steps were taken of is begun anew, or closed.
  void BeginAnew();
  void CloseUnfinished() { closes_unfinished_ = true; }

 private:
  // Appends a unit of `from` to the step.
  static void AppendUnit(const UnitBatch& from, size_t unit, StepBatch* step);
  StepBatch MakeStep(const UnitBatch& units, const OffsetRange& period);
  bool Take(StepBatch&& period, const Emit& emit);
  bool LearnOrClose(StepBatch&& period, const Emit& emit);
  void Close(const OffsetRange& range);
  bool Learn(StepBatch&& period, const Emit& emit);
  bool TakeSteps(const StepBatch& period, UnitBatch* units, const Emit& emit);
  Status TakeUnits(event::Batch&& examples, UnitBatch* units);
  bool Admit(UserUses* user) const;
  bool Preview(const UnitBatch& units, bool again, const Emit& emit) const;
  // Sets the position of a period's partition to `range`: the offsets to read again, maybe none.
  void MoveTo(const OffsetRange& range);

  const HeldPeriodOptions options_;
  std::unique_ptr<Participation> periods_;
  Position position_;  // after the last emitted step
  // A period that steps were taken of before a crash. It is finished before another one begins,
  // even if that one's partition is read first.
  std::optional<OffsetRange> under_way_;
  bool closes_unfinished_ = false;  // no more steps are taken of it
  // Periods that came before it. A source of several partitions reads its offsets first
  // (PartitionOffset::first_until), so that there are few, as where two learners have begun one
  // each.
  std::vector<StepBatch> behind_it_;
  std::vector<OffsetRange> lost_;  // on the ledger with the next period
  UserGroups groups_;
  std::vector<uint32_t> drawn_;
  Status status_;
};

}  // namespace tacit::stream
