#include "privacy/mu.h"

#include <fmt/format.h>

#include <limits>

namespace tacit::privacy {

Status CheckMu(double mu) {
  if (mu == std::numeric_limits<double>::infinity() || (mu >= kMuLeast && mu <= kMuMost)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("mu {:.4g}: the noise is on a grid that is made for {} to {}", mu,
                          kMuLeast, kMuMost));
}

}  // namespace tacit::privacy
