#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "config/config.h"
#include "privacy/charge.h"
#include "privacy/ledger.h"
#include "store/store.h"
#include "train/quality/breaker.h"

namespace tacit::wiring {

// The breaker that source.halt_above asks for: an account in the ledger, and in the store a place
// behind those of the learners. It has no model.
struct BreakerPlan {
  LearnerIndex index;
  privacy::Promise promise;
  privacy::Charge charge;  // of a window
  double share = 0;
  uint64_t window = 0;  // offsets; 0: windows are the periods of a topic
  uint64_t least = 0;   // offsets; of fewer the noise could decide by itself
};

// Returns nothing without source.halt_above. `period`: the offsets of a full period of the topic,
// if windows are periods. kInvalidArgument: the noise that its promise needs would halt a stream in
// which nothing is wrong, or hide one that cannot be read at all.
Result<std::optional<BreakerPlan>> PlanBreaker(const config::Source& source,
                                               std::optional<uint64_t> period, size_t learners);

// The plan in words, for people.
std::string BreakerText(const BreakerPlan& plan);

store::LearnerLayout BreakerLayout(const BreakerPlan& plan);

// The breaker as of the store's last commit, with the product's noise.
Result<std::unique_ptr<train::Breaker>> MakeBreaker(const BreakerPlan& plan,
                                                    const store::Store& store,
                                                    const std::string& topic, uint64_t past);

}  // namespace tacit::wiring
