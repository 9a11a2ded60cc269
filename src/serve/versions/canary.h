#pragma once

#include <cstdint>
#include <string_view>

namespace tacit::serve {

// A version that answers a share of the requests, so that it can be watched beside the other one.
struct Canary {
  uint64_t version = 0;
  double share = 0;  // above 0, at most 1

  friend bool operator==(const Canary&, const Canary&) = default;
};

// Returns true if requests of this key are the canary's. A key stays on its side: at every server
// of the lineage, after a restart, and while the share grows. Which keys they are is drawn anew for
// each canary.
bool IsOfCanary(const Canary& canary, std::string_view lineage, std::string_view key);

}  // namespace tacit::serve
