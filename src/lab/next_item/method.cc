#include "lab/next_item/method.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "privacy/gaussian.h"
#include "privacy/mu.h"

namespace tacit::lab {

double MuOf(const EpsilonDelta& privacy) {
  return std::isinf(privacy.epsilon)
             ? privacy.epsilon
             : privacy::GaussianMu(Epsilon(privacy.epsilon), Delta(privacy.delta));
}

double EpsilonOf(const privacy::Spending& spending, const EpsilonDelta& privacy) {
  if (!spending.bounded()) return std::numeric_limits<double>::infinity();
  return privacy::EpsilonMeter().Bounds(spending, Delta(privacy.delta)).upper;
}

Status CheckEpsilonDelta(const EpsilonDelta& privacy) {
  Status mu = privacy::CheckMu(MuOf(privacy));
  if (mu) return {};
  return Fail(
      std::move(mu.error())
          .Context(fmt::format("--epsilon {:g} at delta {:g}", privacy.epsilon, privacy.delta)));
}

}  // namespace tacit::lab
