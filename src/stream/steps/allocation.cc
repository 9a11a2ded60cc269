#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "noise/declared.h"
#include "stream/steps/held_period.h"

namespace tacit::stream {
namespace {

class AllocationParticipation final : public HeldPeriods {
 public:
  AllocationParticipation(AllocationOptions options, std::unique_ptr<noise::NoiseSource> keys)
      : HeldPeriods({.offsets_per_period = options.offsets_per_period,
                     .files_per_period = options.files_per_period,
                     .steps_per_period = options.block_steps * options.blocks,
                     .step_share = 1 / static_cast<double>(options.block_steps),
                     .start = std::move(options.start),
                     .full_at_once = options.full_at_once,
                     .users = std::move(options.users)}),
        block_steps_(options.block_steps),
        keys_(std::move(keys)) {
    const bool unfinished = position().period_step > 0;
    if (!unfinished || KnowsAllocation(position(), options.block_steps, options.blocks)) return;
    options.begins_anew ? BeginAnew() : CloseUnfinished();
  }

 private:
  void BeginPeriod(const UnitBatch& units) override;
  void Draw(const UnitBatch& units, std::vector<uint32_t>* drawn) override;

  void DrawKey();
  // Sorts the units by their steps of a block.
  void Allocate(const UnitBatch& units, uint64_t block);
  uint64_t StepOf(const SipHash& hash, const UnitBatch& units, size_t unit, uint64_t block) const;

  const uint64_t block_steps_;
  std::unique_ptr<noise::NoiseSource> keys_;
  // The block under way: its units by step, ascending in each; and the ends of the steps' units.
  std::vector<uint32_t> order_, step_of_;
  std::vector<size_t> end_;
};

// The key is one of the system's randomness: a cloned machine draws another for the next period.
void AllocationParticipation::DrawKey() {
  keys_->Rekey();
  const noise::Declaration declared(*keys_, {"coins"});
  std::array<uint8_t, 32> drawn;
  keys_->FillKey(drawn);
  PeriodAllocation allocation{.block_steps = block_steps_,
                              .period_steps = options().steps_per_period};
  std::memcpy(allocation.key.data(), drawn.data(), allocation.key.size());
  SetAllocation(allocation);
}

void AllocationParticipation::BeginPeriod(const UnitBatch& units) {
  const uint64_t taken = position().period_step;
  if (taken == 0) DrawKey();
  TACIT_CHECK(position().allocation.has_value(), "a period goes on without its key");
  if (taken % block_steps_ != 0) Allocate(units, taken / block_steps_);
}

void AllocationParticipation::Draw(const UnitBatch& units, std::vector<uint32_t>* drawn) {
  const uint64_t taken = position().period_step, of_block = taken % block_steps_;
  if (of_block == 0) Allocate(units, taken / block_steps_);
  const size_t begin = of_block == 0 ? 0 : end_[of_block - 1];
  drawn->assign(order_.begin() + static_cast<ptrdiff_t>(begin),
                order_.begin() + static_cast<ptrdiff_t>(end_[of_block]));
}

// A counting sort. One hash per unit and block.
void AllocationParticipation::Allocate(const UnitBatch& units, uint64_t block) {
  const SipHash hash(position().allocation->key);
  const size_t n = units.units();
  step_of_.resize(n);
  end_.assign(block_steps_, 0);
  for (size_t unit = 0; unit < n; ++unit) {
    step_of_[unit] = static_cast<uint32_t>(StepOf(hash, units, unit, block));
    ++end_[step_of_[unit]];
  }
  size_t begin = 0;
  for (size_t& count : end_) begin += std::exchange(count, begin);
  order_.resize(n);
  for (size_t unit = 0; unit < n; ++unit)
    order_[end_[step_of_[unit]]++] = static_cast<uint32_t>(unit);
}

// The unit's name and the block, hashed and scaled down from 128 bits: each step comes up with a
// probability that is off by 2^-128 at most. Unit event: the name is partition and offset; unit
// user: the user's hash.
uint64_t AllocationParticipation::StepOf(const SipHash& hash, const UnitBatch& units, size_t unit,
                                         uint64_t block) const {
  std::array<uint64_t, 3> name{};
  if (options().users) {
    name = {units.uses[unit].user.low, units.uses[unit].user.high, block};
  } else {
    const event::Batch& examples = units.examples;
    name = {static_cast<uint64_t>(static_cast<uint32_t>(examples.partition)), examples.offset[unit],
            block};
  }
  const Hash128 drawn = hash({reinterpret_cast<const char*>(name.data()), sizeof(name)});
  __extension__ using Wide = unsigned __int128;
  const Wide low = Wide{drawn.low} * block_steps_ >> 64;
  return static_cast<uint64_t>((Wide{drawn.high} * block_steps_ + low) >> 64);
}

}  // namespace

bool KnowsAllocation(const Position& position, uint64_t block_steps, uint64_t blocks) {
  return position.allocation && position.allocation->block_steps == block_steps &&
         position.allocation->period_steps == block_steps * blocks;
}

std::unique_ptr<Participation> MakeAllocationParticipation(
    AllocationOptions options, std::unique_ptr<noise::NoiseSource> keys) {
  return std::make_unique<AllocationParticipation>(std::move(options), std::move(keys));
}

}  // namespace tacit::stream
