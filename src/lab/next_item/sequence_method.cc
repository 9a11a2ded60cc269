#include "lab/next_item/sequence_method.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "privacy/gaussian.h"
#include "privacy/mu.h"

namespace tacit::lab {

double MuOf(const EpsilonDelta& privacy) {
  return std::isinf(privacy.epsilon)
             ? privacy.epsilon
             : privacy::GaussianMu(Epsilon(privacy.epsilon), Delta(privacy.delta));
}

double EpsilonOf(double mu_squared, const EpsilonDelta& privacy) {
  return privacy::GaussianEpsilon(std::sqrt(mu_squared), Delta(privacy.delta)).value;
}

Status CheckEpsilonDelta(const EpsilonDelta& privacy) {
  Status mu = privacy::CheckMu(MuOf(privacy));
  if (mu) return {};
  return Fail(
      std::move(mu.error())
          .Context(fmt::format("--epsilon {:g} at delta {:g}", privacy.epsilon, privacy.delta)));
}

}  // namespace tacit::lab
