#include "mechanism/sigma_split.h"

#include <cmath>

#include "base/check.h"

namespace tacit::mechanism {

SigmaSplit SplitSigma(double sigma, double ratio) {
  TACIT_CHECK(sigma > 0 && ratio > 0 && std::isfinite(sigma) && std::isfinite(ratio));
  const double gradient = sigma * std::hypot(1, ratio) / ratio;
  return {.selection = ratio * gradient, .gradient = gradient};
}

double CombineSigma(std::initializer_list<double> sigmas) {
  double inverse = 0;
  for (double sigma : sigmas) {
    TACIT_CHECK(sigma >= 0 && std::isfinite(sigma));
    if (sigma > 0) inverse = std::hypot(inverse, 1 / sigma);
  }
  return 1 / inverse;
}

}  // namespace tacit::mechanism
