#include "privacy/event.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace tacit::privacy {
namespace {

constexpr std::array<std::pair<EventKind, std::string_view>, 8> kNames = {{
    {EventKind::kGaussian, "gaussian"},
    {EventKind::kPoissonGaussian, "poisson_gaussian"},
    {EventKind::kLaplace, "laplace"},
    {EventKind::kPureDp, "pure_dp"},
    {EventKind::kZcdp, "zcdp"},
    {EventKind::kExponential, "exponential"},
    {EventKind::kAllocation, "allocation"},
    {EventKind::kKnownCoin, "known_coin_gaussian"},
}};

// More than a period can hold, and as many as the accountant takes in seconds.
constexpr uint64_t kMostSteps = 1'000'000;

Status Positive(std::string_view field, double value) {
  if (value > 0 && std::isfinite(value)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{} must be above 0 and finite (got {})", field, value));
}

}  // namespace

std::string_view Name(EventKind kind) {
  for (const auto& [known, name] : kNames)
    if (known == kind) return name;
  return "unknown";
}

Result<EventKind> ParseEventKind(std::string_view name) {
  for (const auto& [kind, known] : kNames)
    if (known == name) return EventKind{kind};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is no type of event (gaussian, poisson_gaussian, laplace, pure_dp, "
                          "zcdp, exponential, allocation)",
                          name));
}

Event Event::Gaussian(double noise_multiplier) {
  return {.kind = EventKind::kGaussian, .noise_multiplier = noise_multiplier};
}
Event Event::PoissonGaussian(double noise_multiplier, double sampling_rate) {
  return {.kind = EventKind::kPoissonGaussian,
          .noise_multiplier = noise_multiplier,
          .sampling_rate = sampling_rate};
}
Event Event::Laplace(double epsilon) { return {.kind = EventKind::kLaplace, .epsilon = epsilon}; }
Event Event::PureDp(double epsilon) { return {.kind = EventKind::kPureDp, .epsilon = epsilon}; }
Event Event::Zcdp(double rho) { return {.kind = EventKind::kZcdp, .rho = rho}; }
Event Event::Exponential(double epsilon) {
  return {.kind = EventKind::kExponential, .epsilon = epsilon};
}
Event Event::Allocation(double noise_multiplier, uint64_t steps) {
  return {.kind = EventKind::kAllocation, .noise_multiplier = noise_multiplier, .steps = steps};
}

Event Event::KnownCoin(double noise_multiplier, double sampling_rate) {
  return {.kind = EventKind::kKnownCoin,
          .noise_multiplier = noise_multiplier,
          .sampling_rate = sampling_rate};
}

Status Event::Validate() const {
  switch (kind) {
    case EventKind::kAllocation:
      if (steps < 1 || steps > kMostSteps)
        return Fail(
            ErrorCode::kInvalidArgument,
            fmt::format("steps must be at least 1 and at most {} (got {})", kMostSteps, steps));
      return Positive("noise_multiplier", noise_multiplier);
    case EventKind::kPoissonGaussian:
    case EventKind::kKnownCoin:
      if (!(sampling_rate > 0 && sampling_rate <= 1))
        return Fail(
            ErrorCode::kInvalidArgument,
            fmt::format("sampling_rate must be above 0 and at most 1 (got {})", sampling_rate));
      [[fallthrough]];
    case EventKind::kGaussian:
      return Positive("noise_multiplier", noise_multiplier);
    case EventKind::kZcdp:
      return Positive("rho", rho);
    case EventKind::kLaplace:
    case EventKind::kPureDp:
    case EventKind::kExponential:
      return Positive("epsilon", epsilon);
  }
  return Fail(ErrorCode::kInvalidArgument, "unknown kind of event");
}

}  // namespace tacit::privacy
