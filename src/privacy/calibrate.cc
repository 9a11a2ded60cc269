#include "privacy/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
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

// Refuses if nothing of the target is left for the steps.
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

// Narrows [low, high] of log sigma around the root of epsilon(sigma) = target to at most `width`.
// Fails if the target is out of reach. REQUIRES a falling epsilon.
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

// The root of epsilon(sigma) = target, from above: the least log sigma known to keep the target,
// and the slope of log epsilon over log sigma there.
struct Root {
  double log_sigma = 0, slope = 0;
};

// A search for the root of a falling epsilon(sigma), probe by probe.
class RootSearch {
 public:
  RootSearch(const CalibrationTarget& target, double at) : target_(target), at_(Inside(at)) {}

  double sigma() const { return std::exp(at_); }
  // Takes the epsilon found at sigma(). Returns true when the root is known well enough.
  bool Take(double epsilon);
  // Records that the probe failed: it counts as too little noise, never as an answer.
  void TakeFailure();
  const std::optional<Root>& best() const { return best_; }

 private:
  static constexpr double kClose = 4e-4, kAim = 1e-4;  // in log sigma
  // Beside other events epsilon is flat, then steep: slopes hold only nearby.
  static constexpr double kLongest = 0.7, kLocal = 0.05;
  static constexpr int kFreeProbes = 8;

  static double Inside(double at) { return std::clamp(at, kWholeRange.low, kWholeRange.high); }
  bool IsBracketed() const {
    return bracket_.low > kWholeRange.low && bracket_.high < kWholeRange.high;
  }
  double Middle() const { return (bracket_.low + bracket_.high) / 2; }

  const CalibrationTarget& target_;
  Bracket bracket_ = kWholeRange;
  double at_, slope_ = -1.5;
  bool knows_last_ = false;
  double last_at_ = 0, last_value_ = 0;
  int probes_ = 0;
  std::optional<Root> best_;
};

// Takes secant steps of bounded length, aimed a little past the root so that the last one counts.
// Halves the bracket when a step would leave it, and every other time after many probes.
bool RootSearch::Take(double epsilon) {
  const double value = std::log(std::max(epsilon, 1e-12) / target_.epsilon);
  double step = 1;
  if (knows_last_ && at_ != last_at_) {
    step = at_ - last_at_;
    slope_ = std::clamp((value - last_value_) / step, -100.0, -1e-3);
  }
  (value <= 0 ? bracket_.high : bracket_.low) = at_;
  if (value <= 0) best_ = {at_, slope_};
  const bool close = value <= 0 && value >= kClose * slope_ && std::abs(step) < kLocal;
  if (close || bracket_.high - bracket_.low < kClose) return true;
  knows_last_ = true;
  last_at_ = at_;
  last_value_ = value;
  at_ = Inside(at_ + std::clamp(kAim - value / slope_, -kLongest, kLongest));
  const bool inside = at_ > bracket_.low && at_ < bracket_.high;
  ++probes_;
  const bool halve = probes_ > kFreeProbes && probes_ % 2 == 0 && IsBracketed();
  if (!inside || halve) at_ = Middle();
  return false;
}

void RootSearch::TakeFailure() {
  bracket_.low = at_;
  knows_last_ = false;
  at_ = std::min(Middle(), at_ + kLongest);
}

// Finds the root of a falling, certified `epsilon`. Passes its error on if no noise gives an
// answer.
template <class CertifiedEpsilon>
Result<Root> FallingRoot(const CalibrationTarget& target, double at, CertifiedEpsilon epsilon) {
  constexpr int kTries = 60;
  RootSearch search(target, at);
  std::optional<Error> failure;
  for (int i = 0; i < kTries; ++i) {
    Result<double> found = epsilon(search.sigma());
    if (!found) {
      failure = std::move(found.error());
      search.TakeFailure();
    } else if (search.Take(*found)) {
      break;
    }
  }
  if (search.best()) return *search.best();
  return Fail(failure ? *std::move(failure) : OutOfReach(target));
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
  // Near the root only orders near the best one matter; fewer orders never promise more.
  epsilon_over(all, std::exp(bracket.high));
  std::vector<double> near;
  for (double order : all)
    if (std::abs(std::log((order - 1) / (best - 1))) < 0.5) near.push_back(order);
  bracket.high += 1e-3;
  TACIT_ASSIGN(bracket, Bisect(target, bracket, 2e-7,
                               [&](double sigma) { return epsilon_over(near, sigma); }));
  return std::exp(bracket.high);
}

namespace {

// Calibrates by the PLD accountant the events that `make` gives for a noise multiplier; they come
// `target.steps` times. `like` is a sampled Gaussian that costs about as much, and its count.
template <class MakeEvent, class MakeLike>
Result<double> CalibrateBy(const CalibrationTarget& target, Adjacency adjacency, MakeEvent make,
                           MakeLike like) {
  TACIT_RETURN_IF_ERROR(Check(target));
  const Delta delta(target.delta);
  const Laws laws = target.laws != nullptr ? target.laws : MakeLaws();
  double beside = 0;
  if (!target.beside.empty()) {
    TACIT_ASSIGN(beside, PldUpperEpsilon(target.beside, adjacency, delta, nullptr, laws));
    TACIT_RETURN_IF_ERROR(CheckBeside(target, beside));
  }
  TACIT_ASSIGN(const Bracket rough, Bisect(target, kWholeRange, 1e-3, [&](double sigma) {
                 const CountedEvent sampled = like(sigma);
                 return PldRoughEpsilon(sampled.event, sampled.count, adjacency, delta);
               }));
  // Start the search where a Gaussian of the budget left for the steps would be.
  const double mu = GaussianMu(Epsilon(target.epsilon), delta);
  const double mu_beside = GaussianMu(Epsilon(beside), delta);
  const double left = beside > 0 ? 1 - (mu_beside / mu) * (mu_beside / mu) : 1;
  std::vector<CountedEvent> events = target.beside;
  events.emplace_back();
  std::optional<PldHint> hint;
  const auto with = [&](double sigma) -> const std::vector<CountedEvent>& {
    events.back() = {make(sigma), target.steps};
    return events;
  };
  TACIT_ASSIGN(const Root root,
               FallingRoot(target, rough.high - std::log(left) / 2, [&](double at) {
                 return PldUpperEpsilon(with(at), adjacency, delta, &hint, laws);
               }));
  double sigma = std::exp(root.log_sigma);
  // Bounds from different lattices differ in their last digits: the accountant's own decides.
  for (;; sigma *= 1 + 1e-4) {
    if (sigma > kMostSigma) return Fail(OutOfReach(target));
    PldAccountant accountant(adjacency, laws);
    for (const auto& [event, count] : with(sigma))
      TACIT_RETURN_IF_ERROR(accountant.Add(event, count));
    TACIT_ASSIGN(const double found, accountant.UpperEpsilon(delta));
    if (found <= target.epsilon) return sigma;
  }
}

}  // namespace

Result<double> CalibratePld(const CalibrationTarget& target, Adjacency adjacency) {
  const auto make = [&](double sigma) {
    return Event::PoissonGaussian(sigma, target.sampling_rate);
  };
  return CalibrateBy(target, adjacency, make, [&](double sigma) {
    return CountedEvent{make(sigma), target.steps};
  });
}

Result<double> CalibrateAllocation(const CalibrationTarget& target, uint64_t block_steps) {
  TACIT_CHECK(target.sampling_rate == 1, "an allocation does not sample");
  TACIT_RETURN_IF_ERROR(Event::Allocation(1, block_steps).Validate());
  const double rate = 1 / static_cast<double>(block_steps);
  return CalibrateBy(
      target, Adjacency::kAddRemove,
      [&](double sigma) { return Event::Allocation(sigma, block_steps); },
      [&](double sigma) {
        return CountedEvent{Event::PoissonGaussian(sigma, rate), target.steps * block_steps};
      });
}

Result<double> CalibrateSteps(CalibrationTarget target) {
  constexpr double kSumRoom = 1e-9, kBoundRoom = 0.005;
  if (target.sampling_rate == 1) {
    TACIT_ASSIGN(const double noise, CalibrateOnce(target));
    return noise * (1 + kSumRoom);
  }
  target.epsilon *= 1 - kBoundRoom;
  if (target.block_steps > 0) {
    TACIT_CHECK(target.steps % target.block_steps == 0, "a block is taken whole");
    target.steps /= target.block_steps;
    target.sampling_rate = 1;
    return CalibrateAllocation(target, target.block_steps);
  }
  if (target.coins_known) {
    const auto make = [&](double sigma) { return Event::KnownCoin(sigma, target.sampling_rate); };
    return CalibrateBy(target, Adjacency::kAddRemove, make, [&](double sigma) {
      return CountedEvent{make(sigma), target.steps};
    });
  }
  return CalibratePld(target, Adjacency::kAddRemove);
}

Result<double> CalibrateOnce(const CalibrationTarget& target) {
  TACIT_RETURN_IF_ERROR(Check(target));
  TACIT_CHECK(target.sampling_rate == 1, "`once` does not sample");
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
  // Slightly less than the rest, because rounding adds a little when a ledger sums everything up.
  const double left = mu * mu * (1 - 1e-12) - beside;
  const double noise = std::sqrt(static_cast<double>(target.steps) / left);
  if (!(left > 0) || noise > kMostSigma) return Fail(OutOfReach(target));
  return noise;
}

}  // namespace tacit::privacy
