#include "privacy/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/check.h"
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
  for (const CountedEvent& beside : target.beside) TACIT_RETURN_IF_ERROR(beside.event.Validate());
  return Event::PoissonGaussian(1, target.sampling_rate).Validate();
}

// Nothing is left for the steps.
Status CheckBeside(const CalibrationTarget& target, double epsilon) {
  if (target.beside.empty() || epsilon < target.epsilon) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("what is released beside the steps spends epsilon {:.4g} at delta {} "
                          "alone: nothing of the target of {} is left for the steps",
                          epsilon, target.delta, target.epsilon));
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

// The least sigma, in reach, that is known to keep the target: secant steps on log epsilon over log
// sigma, aimed a little behind the root so that the last one counts, halving where they leave what
// is known. `epsilon` falls, and is certified.
template <class CertifiedEpsilon>
Result<double> FallingRoot(const CalibrationTarget& target, double at, CertifiedEpsilon epsilon) {
  constexpr double kClose = 4e-4, kAim = 1e-4;  // in log sigma
  constexpr int kTries = 40;
  Bracket bracket = kWholeRange;
  double slope = -1.5, best = 0, last_at = 0, last_value = 0;
  for (int i = 0; i < kTries; ++i) {
    at = std::clamp(at, kWholeRange.low, kWholeRange.high);
    TACIT_ASSIGN(const double found, epsilon(std::exp(at)));
    const double value = std::log(std::max(found, 1e-12) / target.epsilon);
    if (value <= 0) best = std::exp(at);
    (value <= 0 ? bracket.high : bracket.low) = at;
    if (i > 0 && at != last_at) {
      const double secant = (value - last_value) / (at - last_at);
      if (secant < -1e-3 && secant > -100) slope = secant;
    }
    const bool close = value <= 0 && value >= kClose * slope;
    if (close || bracket.high - bracket.low < kClose) break;
    last_at = at;
    last_value = value;
    at -= value / slope - kAim;
    const bool inside = at > bracket.low && at < bracket.high;
    if (!inside) at = (bracket.low + bracket.high) / 2;
  }
  if (best == 0) return Fail(OutOfReach(target));
  return best;
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
    for (const auto& [event, count] : target.beside)
      if (!accountant->Add(event, count)) return std::numeric_limits<double>::infinity();
    const RdpAccountant::Answer answer = accountant->Epsilon(Delta(target.delta));
    best = answer.order;
    return answer.epsilon;
  };
  const std::vector<double> all(used.begin(), used.end());
  TACIT_ASSIGN(RdpAccountant alone, RdpAccountant::WithOrders(all));
  for (const auto& [event, count] : target.beside) TACIT_RETURN_IF_ERROR(alone.Add(event, count));
  TACIT_RETURN_IF_ERROR(CheckBeside(target, alone.Epsilon(Delta(target.delta)).epsilon));
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
  double beside = 0;
  if (!target.beside.empty()) {
    TACIT_ASSIGN(beside, PldUpperEpsilon(target.beside, adjacency, delta));
    TACIT_RETURN_IF_ERROR(CheckBeside(target, beside));
  }
  TACIT_ASSIGN(const Bracket rough, Bisect(target, kWholeRange, 1e-3, [&](double sigma) {
                 return PldRoughEpsilon(Event::PoissonGaussian(sigma, target.sampling_rate),
                                        target.steps, adjacency, delta);
               }));
  // Of what Gaussians could spend, as much is left for the steps.
  const double mu = GaussianMu(Epsilon(target.epsilon), delta);
  const double mu_beside = GaussianMu(Epsilon(beside), delta);
  const double left = beside > 0 ? 1 - (mu_beside / mu) * (mu_beside / mu) : 1;
  std::vector<CountedEvent> events = target.beside;
  events.emplace_back();
  std::optional<PldHint> hint;
  const auto with = [&](double sigma) -> const std::vector<CountedEvent>& {
    events.back() = {Event::PoissonGaussian(sigma, target.sampling_rate), target.steps};
    return events;
  };
  TACIT_ASSIGN(double sigma, FallingRoot(target, rough.high - std::log(left) / 2, [&](double at) {
                 return PldUpperEpsilon(with(at), adjacency, delta, &hint);
               }));
  // Bounds computed on different lattices differ in their last digits: the accountant's own counts.
  for (;; sigma *= 1 + 1e-4) {
    if (sigma > kMostSigma) return Fail(OutOfReach(target));
    PldAccountant accountant(adjacency);
    for (const auto& [event, count] : with(sigma))
      TACIT_RETURN_IF_ERROR(accountant.Add(event, count));
    TACIT_ASSIGN(const CertifiedInterval found, accountant.Epsilon(delta));
    if (found.upper <= target.epsilon) return sigma;
  }
}

Result<double> CalibrateOnce(const CalibrationTarget& target) {
  TACIT_RETURN_IF_ERROR(Check(target));
  TACIT_CHECK(target.sampling_rate == 1, "`once` knows no sampling");
  double beside = 0;  // mu^2
  for (const auto& [event, count] : target.beside) {
    const bool gaussian = event.kind == EventKind::kGaussian ||
                          (event.kind == EventKind::kPoissonGaussian && event.sampling_rate == 1);
    if (!gaussian) return CalibratePld(target, Adjacency::kAddRemove);
    beside += static_cast<double>(count) / event.noise_multiplier / event.noise_multiplier;
  }
  const Epsilon epsilon(target.epsilon);
  const Delta delta(target.delta);
  if (beside == 0) return CalibrateGaussian(epsilon, delta, target.steps).value;
  TACIT_RETURN_IF_ERROR(CheckBeside(target, GaussianEpsilon(std::sqrt(beside), delta).value));
  const double mu = GaussianMu(epsilon, delta);
  // A hair less than is left: for what rounding adds when a ledger sums everything up again.
  const double left = mu * mu * (1 - 1e-12) - beside;
  const double noise = std::sqrt(static_cast<double>(target.steps) / left);
  if (!(left > 0) || noise > kMostSigma) return Fail(OutOfReach(target));
  return noise;
}

}  // namespace tacit::privacy
