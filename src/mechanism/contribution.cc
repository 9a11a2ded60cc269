#include "mechanism/contribution.h"

#include <algorithm>
#include <cmath>

namespace tacit::mechanism {

// In integers: active * steps^2 <= (clip / step)^2, where clip / step is below 2^31.
int64_t ContributionSteps(double clip, const Grid& grid, size_t active) {
  const auto whole = static_cast<uint64_t>(clip / grid.step);
  auto steps =
      static_cast<uint64_t>(static_cast<double>(whole) / std::sqrt(static_cast<double>(active)));
  while (active * steps * steps > whole * whole) --steps;
  return static_cast<int64_t>(std::min(static_cast<double>(steps), std::floor(1 / grid.step)));
}

}  // namespace tacit::mechanism
