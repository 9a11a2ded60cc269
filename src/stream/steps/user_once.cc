#include <algorithm>
#include <utility>

#include "stream/steps/sum_blocks.h"
#include "stream/steps/user_units.h"

namespace tacit::stream {
namespace {

// Cuts steps like those of unit event, and keeps in each the users whom Admit lets in.
class UserOnceParticipation final : public Participation {
 public:
  explicit UserOnceParticipation(OnceOptions options)
      : users_(*options.users),
        offsets_per_step_(options.offsets_per_step),
        period_(options.start.period),
        period_offsets_(options.start.period_step),
        period_cuts_(options.start.period_cuts) {
    options.users.reset();
    steps_ = MakeOnceParticipation(std::move(options));
  }

  bool Cut(const event::RawRecords& frame, const event::Batch& examples,
           const Emit& emit) override {
    return steps_->Cut(frame, examples,
                       [&](StepBatch&& step) { return Take(std::move(step), emit); });
  }
  bool Finish(const Emit& emit) override {
    return steps_->Finish([&](StepBatch&& step) { return Take(std::move(step), emit); });
  }
  Status status() const override { return status_; }

 private:
  bool Take(StepBatch&& step, const Emit& emit);
  bool Admit(UserUses* user) const;
  void EndStep(const StepBatch& step);

  const UserOptions users_;
  const uint64_t offsets_per_step_;
  std::unique_ptr<Participation> steps_;
  UserGroups groups_;
  uint64_t period_, period_offsets_, period_cuts_;
  Status status_;
};

bool UserOnceParticipation::Admit(UserUses* user) const {
  if (user->used >= users_.allowance) return false;
  const bool same = user->in_period > 0 && user->period == period_;
  const uint32_t in_period = same ? user->in_period : 0;
  if (users_.per_period > 0 && in_period >= users_.per_period) return false;
  ++user->used;
  user->in_period = in_period + 1;
  user->period = period_;
  return true;
}

// Ends a period after the step that fills it. Only offsets and cuts decide, not the users in them.
void UserOnceParticipation::EndStep(const StepBatch& step) {
  for (const OffsetRange& range : step.ranges) period_offsets_ += range.size();
  period_cuts_ += step.cuts_passed;
  const bool full = users_.period_offsets > 0 && period_offsets_ >= users_.period_offsets;
  if (!full && (users_.period_cuts == 0 || period_cuts_ < users_.period_cuts)) return;
  ++period_;
  period_offsets_ = period_cuts_ = 0;
}

bool UserOnceParticipation::Take(StepBatch&& step, const Emit& emit) {
  UnitBatch taken;
  status_ = TakeUsers(
      users_, step.examples, &groups_, users_.allowances,
      [this](UserUses* user) { return Admit(user); }, &taken);
  if (!status_) return false;
  users_.allowances->Count(step.after.step, taken.uses);
  EndStep(step);
  step.after.period = period_;
  step.after.period_step = period_offsets_;
  step.after.period_cuts = period_cuts_;
  step.units = static_cast<uint32_t>(taken.units());
  step.unit_of.clear();
  for (uint32_t u = 0; u < step.units; ++u) step.unit_of.resize(taken.unit_end[u], u);
  const uint64_t offsets = std::min(offsets_per_step_, step.ranges.front().size());
  step.sum_block_end =
      BlocksByUser(taken.block_hashes, taken.unit_end, static_cast<double>(offsets));
  step.examples = std::move(taken.examples);
  step.uses = std::move(taken.uses);
  step.counts_users = true;
  step.came = taken.came;
  return emit(std::move(step));
}

}  // namespace

std::unique_ptr<Participation> MakeUserOnce(OnceOptions options) {
  return std::make_unique<UserOnceParticipation>(std::move(options));
}

}  // namespace tacit::stream
