#include "soak/flatness.h"

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
  const auto count = static_cast<double>(half.size());
  double mean_x = 0, mean_y = 0;
  for (const Sample& one : half) {
    mean_x += one.seconds / count;
    mean_y += one.value / count;
  }
  double above = 0, below = 0;
  for (const Sample& one : half) {
    above += (one.seconds - mean_x) * (one.value - mean_y);
    below += (one.seconds - mean_x) * (one.seconds - mean_x);
  }
  const double slope = below > 0 ? above / below : 0;
  return {mean_y, slope * (half.back().seconds - half.front().seconds)};
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
