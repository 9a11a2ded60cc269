#include "system/soak/flatness.h"

#include <fmt/format.h>

#include <algorithm>

namespace tacit::test {
namespace {

constexpr size_t kSamplesMin = 10;

std::span<const Sample> SecondHalf(std::span<const Sample> samples) {
  if (samples.empty()) return samples;
  const double middle = (samples.front().seconds + samples.back().seconds) / 2;
  const auto first =
      std::ranges::find_if(samples, [&](const Sample& one) { return one.seconds >= middle; });
  return samples.subspan(static_cast<size_t>(first - samples.begin()));
}

}  // namespace

Trend TrendOf(std::span<const Sample> samples) {
  const std::span<const Sample> half = SecondHalf(samples);
  if (half.empty()) return {};
  double sum = 0;
  std::vector<double> slopes{0};
  for (size_t i = 0; i < half.size(); ++i) {
    sum += half[i].value;
    for (size_t k = 0; k < i; ++k)
      if (half[i].seconds > half[k].seconds)
        slopes.push_back((half[i].value - half[k].value) / (half[i].seconds - half[k].seconds));
  }
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::ranges::nth_element(slopes, middle);
  return {sum / static_cast<double>(half.size()),
          *middle * (half.back().seconds - half.front().seconds)};
}

std::string WhyNotFlat(const std::string& figure, std::span<const Sample> samples,
                       const Bound& bound) {
  if (SecondHalf(samples).size() < kSamplesMin)
    return fmt::format("{}: {} samples are too few to tell", figure, samples.size());
  const Trend trend = TrendOf(samples);
  const double allowed = bound.share * trend.mean + bound.amount;
  if (trend.growth <= allowed) return "";
  return fmt::format(
      "{}: grows by {:.1f} over the second half, whose mean is {:.1f}; {:.1f} is allowed", figure,
      trend.growth, trend.mean, allowed);
}

}  // namespace tacit::test
