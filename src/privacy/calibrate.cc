#include "privacy/calibrate.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "privacy/gaussian.h"
#include "privacy/pld.h"
#include "privacy/rdp.h"

namespace tacit::privacy {
namespace {

constexpr double kLeastSigma = 0.05, kMostSigma = 1e7;

Status Check(const CalibrationTarget& target) {
  if (!(target.epsilon > 0 && std::isfinite(target.epsilon)))
    return Fail(ErrorCode::kInvalidArgument, "the target epsilon must be above 0 and finite");
  if (!(target.delta > 0 && target.delta < 1))
    return Fail(ErrorCode::kInvalidArgument, "delta must lie between 0 and 1, both excluded");
  if (target.steps == 0) return Fail(ErrorCode::kInvalidArgument, "steps must be at least 1");
  return Event::PoissonGaussian(1, target.sampling_rate).Validate();
}

Error OutOfReach(const CalibrationTarget& target) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("no noise multiplier in [{}, {}] gives epsilon {} at delta {}", kLeastSigma,
                      kMostSigma, target.epsilon, target.delta)};
}

// [low, high] of log sigma, narrowed around the root of epsilon(sigma) = target, to no more than
// `width`, or nothing. REQUIRES epsilon falling.
struct Bracket {
  double low = 0, high = 0;
};
const Bracket kWholeRange{std::log(kLeastSigma), std::log(kMostSigma)};
template <class Epsilon>
Result<Bracket> Bisect(const CalibrationTarget& target, Bracket bracket, double width,
                       Epsilon epsilon) {
  if (epsilon(std::exp(bracket.high)) > target.epsilon) return Fail(OutOfReach(target));
  while (bracket.high - bracket.low > width) {
    const double middle = (bracket.low + bracket.high) / 2;
    (epsilon(std::exp(middle)) > target.epsilon ? bracket.low : bracket.high) = middle;
  }
  return bracket;
}

}  // namespace

Result<double> CalibrateRdp(const CalibrationTarget& target, std::span<const double> orders) {
  TACIT_RETURN_IF_ERROR(Check(target));
  const std::span<const double> used = orders.empty() ? DenseRdpOrders() : orders;
  double best = 0;
  const auto epsilon_over = [&](const std::vector<double>& over, double sigma) {
    auto accountant = RdpAccountant::WithOrders(over);
    if (!accountant ||
        !accountant->Add(Event::PoissonGaussian(sigma, target.sampling_rate), target.steps))
      return std::numeric_limits<double>::infinity();
    const RdpAccountant::Answer answer = accountant->Epsilon(Delta(target.delta));
    best = answer.order;
    return answer.epsilon;
  };
  const std::vector<double> all(used.begin(), used.end());
  TACIT_RETURN_IF_ERROR(RdpAccountant::WithOrders(all));
  TACIT_ASSIGN(Bracket bracket, Bisect(target, kWholeRange, 0.02,
                                       [&](double sigma) { return epsilon_over(all, sigma); }));
  // Near the root only the orders near the best one there matter; fewer orders never promise more.
  epsilon_over(all, std::exp(bracket.high));
  std::vector<double> near;
  for (double order : all)
    if (std::abs(std::log((order - 1) / (best - 1))) < 0.5) near.push_back(order);
  bracket.high += 1e-3;
  TACIT_ASSIGN(bracket, Bisect(target, bracket, 2e-7,
                               [&](double sigma) { return epsilon_over(near, sigma); }));
  return std::exp(bracket.high);
}

Result<double> CalibratePld(const CalibrationTarget& target, Adjacency adjacency) {
  TACIT_RETURN_IF_ERROR(Check(target));
  const Delta delta(target.delta);
  const auto event = [&](double sigma) {
    return Event::PoissonGaussian(sigma, target.sampling_rate);
  };
  TACIT_ASSIGN(const Bracket rough, Bisect(target, kWholeRange, 1e-3, [&](double sigma) {
                 return PldRoughEpsilon(event(sigma), target.steps, adjacency, delta);
               }));
  // Secant steps on log epsilon over log sigma with certified values, aimed a little below the
  // target so that the last one counts.
  double at = rough.high, slope = -1.5, best = 0;
  std::optional<PldHint> hint;
  double last_at = 0, last_value = 0;
  bool has_last = false;
  for (int i = 0; i < 40; ++i) {
    if (!(at > std::log(kLeastSigma) - 1e-9)) at = std::log(kLeastSigma);
    if (at > std::log(kMostSigma)) return Fail(OutOfReach(target));
    TACIT_ASSIGN(const double epsilon,
                 PldUpperEpsilon(event(std::exp(at)), target.steps, adjacency, delta, &hint));
    const double value = std::log(std::max(epsilon, 1e-12) / target.epsilon);
    if (value <= 0 && (best == 0 || at < std::log(best))) best = std::exp(at);
    if (value <= 0 && value > -2e-4) break;
    if (has_last && at != last_at) {
      const double secant = (value - last_value) / (at - last_at);
      if (secant < -0.05 && secant > -100) slope = secant;
    }
    last_at = at;
    last_value = value;
    has_last = true;
    at -= (value + 1e-4) / slope;
  }
  if (best == 0) return Fail(OutOfReach(target));
  return best;
}

}  // namespace tacit::privacy
