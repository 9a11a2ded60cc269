#pragma once

#include <cstdint>
#include <string>

#include "metrics/registry.h"

namespace tacit::train {

// Tells the operator how many of the users who come can no longer be learnt from, because their
// allowance is used: a gauge has the share of the last users, and the log says it when the share
// rises past a tenth, a quarter, a half and nine tenths, and when it is below a tenth again. One
// learner's; a learner whose unit is an event leaves nobody out.
//
// Un-noised: operator-only. Used by one thread.
class LeftOutNews {
 public:
  LeftOutNews(std::string learner, metrics::Registry& registry);

  // Takes note of the users that a step, or a period when it opened, let in and left out.
  void See(uint64_t let_in, uint64_t left_out);

 private:
  void EndWindow();

  const std::string learner_;
  metrics::Gauge share_;
  uint64_t let_in_ = 0, left_out_ = 0;  // of this window
  size_t told_ = 0;                     // of the shares that are told
};

}  // namespace tacit::train
