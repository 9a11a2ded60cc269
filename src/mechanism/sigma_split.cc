#include "mechanism/sigma_split.h"

#include <cmath>

#include "base/check.h"

namespace tacit::mechanism {

SigmaSplit SplitSigma(double sigma, double ratio) {
  TACIT_CHECK(sigma > 0 && ratio > 0 && std::isfinite(sigma) && std::isfinite(ratio));
  const double gradient = sigma * std::hypot(1, ratio) / ratio;
  return {.selection = ratio * gradient, .gradient = gradient};
}

double CombineSigma(const SigmaSplit& split) {
  return split.selection * split.gradient / std::hypot(split.selection, split.gradient);
}

}  // namespace tacit::mechanism
