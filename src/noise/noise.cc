#include "noise/noise.h"

#include <algorithm>
#include <array>

namespace tacit::noise {

void NoiseSource::FillGridGaussian(double stddev, double factor, std::span<float> out) {
  std::array<int64_t, 1024> steps;
  while (!out.empty()) {
    const size_t n = std::min(steps.size(), out.size());
    std::fill_n(steps.begin(), n, 0);
    AddGridGaussian(stddev, std::span(steps).first(n));
    for (size_t i = 0; i < n; ++i)
      out[i] = static_cast<float>(static_cast<double>(steps[i]) * factor);
    out = out.subspan(n);
  }
}

}  // namespace tacit::noise
