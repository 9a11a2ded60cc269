#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "privacy/event.h"
#include "privacy/pld/allocated_ratio.h"

namespace tacit::privacy::pld {

// The laws of allocations, each made once: both directions of an accountant need the same. Lives as
// long as the accountant and is bounded by the kinds of its events. Not thread-safe.
class AllocationBook {
 public:
  // REQUIRES an event of an allocation. `tail` as in RatioRequest.
  std::shared_ptr<const AllocatedRatio> For(const Event& event, double tail);

 private:
  std::map<std::tuple<double, int64_t, double>, std::shared_ptr<const AllocatedRatio>> known_;
};

}  // namespace tacit::privacy::pld
