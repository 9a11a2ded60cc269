#pragma once

#include <cstdint>
#include <string>

#include "base/user_uses.h"
#include "metrics/registry.h"

namespace tacit::train {

// Tells the operator how many of the users who come can no longer be learnt from, because their
// allowance is used, and how many of the records are theirs: gauges have both shares of the last
// users, and the log says them when the larger one rises past a tenth, a quarter, a half and nine
// tenths, and when both are below a tenth again. One learner's; a learner whose unit is an event
// leaves nobody out.
//
// Un-noised: operator-only. Used by one thread.
class LeftOutNews {
 public:
  LeftOutNews(std::string learner, metrics::Registry& registry);

  // Takes note of the users who came for a step, or for a period when it opened.
  void See(const UsersCame& came);

 private:
  void EndWindow();

  const std::string learner_;
  metrics::Gauge users_share_, records_share_;
  UsersCame window_;
  size_t told_ = 0;  // of the shares that are told
};

}  // namespace tacit::train
