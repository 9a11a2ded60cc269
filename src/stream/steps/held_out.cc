#include <limits>
#include <utility>

#include "stream/steps/participation.h"

namespace tacit::stream {
namespace {

class NoUses final : public AllowanceView {
 public:
  Result<uint64_t> Read(std::span<UserUses>) override { return uint64_t{0}; }
};

class HeldOutParticipation final : public Participation {
 public:
  explicit HeldOutParticipation(OnceOptions options) {
    if (options.users) {
      options.users->allowances = &book_;
      options.users->allowance = std::numeric_limits<uint64_t>::max();
      options.users->per_period = 0;
    }
    steps_ = MakeOnceParticipation(std::move(options));
  }

  bool Cut(const event::RawRecords& frame, const event::Batch& examples,
           const Emit& emit) override {
    return steps_->Cut(frame, examples,
                       [&](StepBatch&& step) { return HoldOut(std::move(step), emit); });
  }
  bool Finish(const Emit& emit) override {
    return steps_->Finish([&](StepBatch&& step) { return HoldOut(std::move(step), emit); });
  }
  Status status() const override { return steps_->status(); }

 private:
  static bool HoldOut(StepBatch&& step, const Emit& emit) {
    step.kind = StepBatch::Kind::kHeldOut;
    step.counts_users = false;
    step.uses.clear();
    return emit(std::move(step));
  }

  NoUses none_;
  AllowanceBook book_{none_};
  std::unique_ptr<Participation> steps_;
};

}  // namespace

std::unique_ptr<Participation> MakeHeldOutParticipation(OnceOptions options) {
  return std::make_unique<HeldOutParticipation>(std::move(options));
}

}  // namespace tacit::stream
