#include <utility>

#include "base/check.h"
#include "noise/declared.h"
#include "stream/steps/held_period.h"

namespace tacit::stream {
namespace {

class PoissonParticipation final : public HeldPeriods {
 public:
  PoissonParticipation(PoissonOptions options, std::unique_ptr<noise::NoiseSource> coins)
      : HeldPeriods({.offsets_per_period = options.offsets_per_period,
                     .files_per_period = options.files_per_period,
                     .steps_per_period = options.steps_per_period,
                     .step_share = options.sampling_rate,
                     .start = std::move(options.start),
                     .full_at_once = options.full_at_once,
                     .users = std::move(options.users)}),
        sampling_rate_(options.sampling_rate),
        coins_(std::move(coins)) {
    TACIT_CHECK(sampling_rate_ > 0 && sampling_rate_ <= 1);
  }

 private:
  void BeginPeriod(const UnitBatch&) override {}
  void Draw(const UnitBatch& units, std::vector<uint32_t>* drawn) override;

  const double sampling_rate_;
  std::unique_ptr<noise::NoiseSource> coins_;
};

// Skips units by geometric gaps between successes. This is distributed like one coin per unit, and
// takes one draw per unit taken instead of one per unit held.
void PoissonParticipation::Draw(const UnitBatch& units, std::vector<uint32_t>* drawn) {
  // Each step's coins get a new key: a cloned machine must not draw the same batches, which would
  // release one sample twice and charge it as two.
  coins_->Rekey();
  const noise::Declaration declared(*coins_, {"coins"});
  const uint64_t n = units.units();
  for (uint64_t i = coins_->GeometricSkip(sampling_rate_); i < n;) {
    drawn->push_back(static_cast<uint32_t>(i));
    const uint64_t gap = coins_->GeometricSkip(sampling_rate_);
    if (gap >= n) break;
    i += gap + 1;
  }
}

}  // namespace

std::unique_ptr<Participation> MakePoissonParticipation(PoissonOptions options,
                                                        std::unique_ptr<noise::NoiseSource> coins) {
  return std::make_unique<PoissonParticipation>(std::move(options), std::move(coins));
}

}  // namespace tacit::stream
