#include "privacy/pld/loss_law.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "privacy/infinity.h"
#include "privacy/pld/normal.h"
#include "privacy/pld/ratio_law.h"
#include "privacy/pld/sampled_gaussian.h"

namespace tacit::privacy::pld {
namespace {

// Randomized response, the worst of all (epsilon, 0)-DP pairs. Losses +epsilon and -epsilon.
class TwoPointLaw final : public LossLaw {
 public:
  explicit TwoPointLaw(double epsilon) : epsilon_(epsilon) {}

  IntervalMass Over(double low, double high, double reference) const override {
    IntervalMass sum;
    for (double loss : {-epsilon_, epsilon_}) {
      if (!(low < loss && loss <= high)) continue;
      const double mass = 1 / (1 + std::exp(-loss));
      sum.mass += mass;
      sum.gain -= mass * std::expm1(reference - loss);
    }
    return sum;
  }
  double Lowest(double) const override { return -epsilon_; }
  double Highest(double) const override { return epsilon_; }
  double Atom() const override { return epsilon_; }
  std::vector<PilotPoint> Pilot() const override {
    return {{-epsilon_, 1 / (1 + std::exp(epsilon_))}, {epsilon_, 1 / (1 + std::exp(-epsilon_))}};
  }

 private:
  double epsilon_;
};

// Laplace noise of parameter 1/epsilon at 0 against the same at 1: atoms of 1/2 at epsilon and
// e^-epsilon / 2 at -epsilon, and between them the density e^(-(epsilon - l) / 2) / 4.
class LaplaceLaw final : public LossLaw {
 public:
  explicit LaplaceLaw(double epsilon) : epsilon_(epsilon) {}

  IntervalMass Over(double low, double high, double reference) const override {
    IntervalMass sum;
    const auto atom = [&](double loss, double mass) {
      if (!(low < loss && loss <= high)) return;
      sum.mass += mass;
      sum.gain -= mass * std::expm1(reference - loss);
    };
    atom(-epsilon_, std::exp(-epsilon_) / 2);
    atom(epsilon_, 0.5);
    const double a = std::clamp(low, -epsilon_, epsilon_);
    const double b = std::clamp(high, -epsilon_, epsilon_);
    if (a < b) {
      sum.mass += std::exp((b - epsilon_) / 2) / 2 * -std::expm1((a - b) / 2);
      sum.gain += Integrate(a, b, 1.0, [&](double loss) {
        return std::exp((loss - epsilon_) / 2) / 4 * -std::expm1(reference - loss);
      });
    }
    return sum;
  }
  double Lowest(double) const override { return -epsilon_; }
  double Highest(double) const override { return epsilon_; }
  double Atom() const override { return epsilon_; }
  std::vector<PilotPoint> Pilot() const override {
    constexpr int kCells = 32;
    std::vector<PilotPoint> points = {{-epsilon_, std::exp(-epsilon_) / 2}, {epsilon_, 0.5}};
    for (int i = 0; i < kCells; ++i) {
      const double low = epsilon_ * (2.0 * i / kCells - 1);
      const double high = epsilon_ * (2.0 * (i + 1) / kCells - 1);
      const double mass = std::exp((high - epsilon_) / 2) / 2 * -std::expm1((low - high) / 2);
      points.push_back({(low + high) / 2, mass});
    }
    return points;
  }

 private:
  double epsilon_;
};

// A Gaussian with the unit or, with the other probability and seen by all, nothing: an atom at 0.
class KnownCoinLaw final : public LossLaw {
 public:
  KnownCoinLaw(double sigma, double rate) : gaussian_(1 / sigma), rate_(rate) {}

  IntervalMass Over(double low, double high, double reference) const override {
    IntervalMass sum = gaussian_.Over(low, high, reference);
    sum.mass *= rate_;
    sum.gain *= rate_;
    if (low < 0 && 0 <= high) {
      sum.mass += 1 - rate_;
      sum.gain -= (1 - rate_) * std::expm1(reference);
    }
    return sum;
  }
  double Lowest(double tail) const override { return std::min(0.0, Of(tail, false)); }
  double Highest(double tail) const override { return std::max(0.0, Of(tail, true)); }
  std::vector<PilotPoint> Pilot() const override {
    std::vector<PilotPoint> points = gaussian_.Pilot();
    for (PilotPoint& point : points) point.mass *= rate_;
    points.push_back({0, 1 - rate_});
    return points;
  }

 private:
  double Of(double tail, bool highest) const {
    const double share = tail / rate_;
    if (share >= 0.5) return 0;
    return highest ? gaussian_.Highest(share) : gaussian_.Lowest(share);
  }

  const GaussianLaw gaussian_;
  const double rate_;
};

}  // namespace

std::unique_ptr<LossLaw> MakeLossLaw(const Event& event, Direction direction,
                                     const LawSource& source) {
  switch (event.kind) {
    case EventKind::kPoissonGaussian:
      if (event.sampling_rate == 1)
        return std::make_unique<GaussianLaw>((direction == Direction::kReplace ? 2 : 1) /
                                             event.noise_multiplier);
      if (direction == Direction::kReplace)
        return std::make_unique<ReplacedGaussianLaw>(event.noise_multiplier, event.sampling_rate);
      return std::make_unique<SampledGaussianLaw>(event.noise_multiplier, event.sampling_rate,
                                                  direction);
    case EventKind::kAllocation: {
      if (event.steps == 1) return std::make_unique<GaussianLaw>(1 / event.noise_multiplier);
      AllocationBook own;
      AllocationBook& book = source.book != nullptr ? *source.book : own;
      return std::make_unique<AllocationLaw>(*book.For(event, source.tail), direction);
    }
    case EventKind::kKnownCoin:
      if (event.sampling_rate < 1)
        return std::make_unique<KnownCoinLaw>(event.noise_multiplier, event.sampling_rate);
      [[fallthrough]];
    case EventKind::kGaussian:
      return std::make_unique<GaussianLaw>(1 / event.noise_multiplier);
    case EventKind::kLaplace:
      return std::make_unique<LaplaceLaw>(event.epsilon);
    case EventKind::kPureDp:
    case EventKind::kExponential:
      return std::make_unique<TwoPointLaw>(event.epsilon);
    case EventKind::kZcdp:
      return std::make_unique<GaussianLaw>(std::sqrt(2 * event.rho));
  }
  return nullptr;
}

double OneEventDelta(const LossLaw& law, double epsilon) {
  return std::clamp(law.Over(epsilon, kInfinity, epsilon).gain, 0.0, 1.0);
}

}  // namespace tacit::privacy::pld
