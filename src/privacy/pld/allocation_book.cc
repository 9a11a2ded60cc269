#include "privacy/pld/allocation_book.h"

#include "base/check.h"

namespace tacit::privacy::pld {

std::shared_ptr<const AllocatedRatio> AllocationBook::For(const Event& event, double tail) {
  TACIT_CHECK(event.kind == EventKind::kAllocation);
  const auto steps = static_cast<int64_t>(event.steps);
  auto& known = known_[{event.noise_multiplier, steps, tail}];
  if (!known)
    known = std::make_shared<const AllocatedRatio>(
        MakeAllocatedRatio({event.noise_multiplier, steps, tail}));
  return known;
}

}  // namespace tacit::privacy::pld
