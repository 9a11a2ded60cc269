#include "privacy/rdp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "base/check.h"
#include "privacy/infinity.h"

namespace tacit::privacy {
namespace {

// Less noise makes cells of the integral so short that they take hours.
constexpr double kLeastIntegratedSigma = 0.01;
// The cells of much higher orders are beyond the integers that count them.
constexpr double kMostIntegratedOrder = 1e9;

// A_alpha - 1 of the Poisson-sampled Gaussian. With u = q (e^y - 1), E[u] = 0, so
//   A_alpha - 1 = E[(1 + u)^alpha - 1 - alpha u],
// whose integrand is nowhere negative. The trapezoidal rule of step h has the relative error
// exp(d^2 / (2 s^2) - 2 pi d / h), d up to pi s^2, where 1 + u has its first zero off the real
// line. Beyond that distance only the density matters and h grows with s.
class SampledMoment {
 public:
  SampledMoment(double sigma, double rate, double order)
      : sigma_(sigma), rate_(rate), order_(order) {
    constexpr double kDigits = 45;  // e^-45 of error
    const double pi_squared = std::numbers::pi * std::numbers::pi;
    const double by_zero = 1 / (kDigits / (2 * pi_squared * sigma * sigma) + 0.25);
    const double by_density = sigma * std::sqrt(2 * pi_squared / kDigits);
    step_ = by_density < 2 ? std::min(by_zero, 2.0) : by_density;
  }

  // log(A_alpha).
  double Log() {
    const int64_t low = Cell(FixedPoint(0));
    const int64_t high = std::max(Cell(FixedPoint(order_)), low);
    // Set first: a walk from a lower mode could otherwise climb to a distant higher one step by
    // step.
    greatest_ = std::max(LogTerm(static_cast<double>(low) * step_),
                         LogTerm(static_cast<double>(high) * step_));
    Walk(low, -1, std::numeric_limits<int64_t>::min());
    const int64_t reached = Walk(low + 1, +1, high);
    Walk(high + 1, +1, std::numeric_limits<int64_t>::max());
    Walk(high, -1, reached);
    const double log_excess = LogSum();
    return log_excess > 30 ? log_excess : std::log1p(std::exp(log_excess));
  }

 private:
  int64_t Cell(double x) const { return static_cast<int64_t>(std::floor(x / step_)); }

  // The modes of the integrand solve x = alpha * share(x), share = q e^y / (1 - q + q e^y). There
  // are one or two; the iteration finds the outermost from either end.
  double FixedPoint(double x) const {
    for (int i = 0; i < 200; ++i) {
      const double odds = std::log(rate_ / (1 - rate_)) + (2 * x - 1) / (2 * sigma_ * sigma_);
      const double next = order_ / (1 + std::exp(-odds));
      if (std::abs(next - x) < 0.1 * sigma_) return next;
      x = next;
    }
    return x;
  }

  // log of density times integrand at a grid point.
  double LogTerm(double x) const {
    const double y = (2 * x - 1) / (2 * sigma_ * sigma_);
    const double log_density =
        -x * x / (2 * sigma_ * sigma_) - std::log(sigma_ * std::sqrt(2 * std::numbers::pi));
    if (y > 600) return log_density + order_ * (std::log(rate_) + y);
    const double u = rate_ * std::expm1(y);
    const double power = order_ * std::log1p(u);
    if (power > 1) return log_density + power + std::log1p(-(1 + order_ * u) * std::exp(-power));
    const double a = order_;
    const double excess =
        a * std::abs(u) < 1e-3
            ? a * (a - 1) / 2 * u * u *
                  (1 + (a - 2) / 3 * u * (1 + (a - 3) / 4 * u * (1 + (a - 4) / 5 * u)))
            : std::expm1(power) - a * u;
    return log_density + std::log(excess);
  }

  // Collects terms from a cell onwards until they are negligible or `last` is reached (upwards it
  // is included, downwards not). Returns the last cell collected.
  int64_t Walk(int64_t cell, int direction, int64_t last) {
    const auto width = static_cast<int64_t>(3 * sigma_ / step_) + 2;
    for (int64_t done = 0;; cell += direction, ++done) {
      if (direction > 0 ? cell > last : cell <= last) return cell - direction;
      const double term = LogTerm(static_cast<double>(cell) * step_);
      greatest_ = std::max(greatest_, term);
      terms_.push_back(term);
      // The term is zero where y is, so a small term near the start proves nothing.
      // If all terms vanish among doubles, or are no numbers, none is less than the greatest.
      if (done > width && !(term > greatest_ - 45)) return cell;
    }
  }

  double LogSum() const {
    if (!(greatest_ > -kInfinity)) return -kInfinity;
    double sum = 0;
    for (double term : terms_) sum += std::exp(term - greatest_);
    return greatest_ + std::log(sum * step_);
  }

  double sigma_, rate_, order_, step_ = 0;
  double greatest_ = -kInfinity;
  std::vector<double> terms_;
};

// (0, epsilon): log((sinh(a e) - sinh((a - 1) e)) / sinh(e)) / (a - 1), with e^(a e) factored out.
double PureDpDivergence(double epsilon, double order) {
  const double more = order - 1;
  // E[e^((a-1) L)] of randomized response, minus 1: cosh x - 1 + tanh(e / 2) sinh x, where nothing
  // cancels.
  const double x = more * epsilon;
  if (x > 30) return (x - std::log1p(std::exp(-epsilon))) / more;
  const double half = std::sinh(x / 2);
  return std::log1p(2 * half * half + std::tanh(epsilon / 2) * std::sinh(x)) / more;
}

// e^x - 1 - x, never below 0.
double SecondOrder(double x) {
  if (std::abs(x) > 0.01) return std::expm1(x) - x;
  return x * x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6))));
}

double LaplaceDivergence(double epsilon, double order) {
  const double more = order - 1, twice = 2 * order - 1;
  if (more * epsilon > 30) return epsilon + std::log(order / twice) / more;
  // The two terms' first orders are opposite.
  const double excess =
      (order * SecondOrder(more * epsilon) + more * SecondOrder(-order * epsilon)) / twice;
  return std::log1p(excess) / more;
}

// The worst case has losses t and t - e, t in [0, e]. With A = (1 - e^(-a e)) / (1 - e^-e) and
// B = A e^-e - e^(-a e), the moment is A z^(a-1) - B z^a at z = e^t = A (a - 1) / (B a).
double BoundedRangeDivergence(double epsilon, double order) {
  const double more = order - 1;
  // B = (e^-e - e^(-a e)) / (1 - e^-e).
  const double log_a = std::log(-std::expm1(-order * epsilon)) - std::log(-std::expm1(-epsilon));
  const double log_b =
      -epsilon + std::log(-std::expm1(-more * epsilon)) - std::log(-std::expm1(-epsilon));
  const double t = std::clamp(log_a - log_b + std::log(more / order), 0.0, epsilon);
  const double bound = epsilon * epsilon / 8 * order;  // bounded range implies e^2/8-zCDP
  const double log_moment = log_a + more * t + std::log(-std::expm1(log_b - log_a + t));
  // For tiny epsilons the closed form cancels, and the bound is its limit.
  return epsilon * order < 1e-3 ? bound : std::min(bound, log_moment / more);
}

std::vector<double> MakeDenseOrders() {
  std::vector<double> orders;
  for (double more = 0.01; more < 1e6; more *= 1.1) orders.push_back(1 + more);
  for (int tenths = 11; tenths < 110; ++tenths) orders.push_back(tenths / 10.0);
  for (int order = 11; order < 64; ++order) orders.push_back(order);
  std::sort(orders.begin(), orders.end());
  return orders;
}

// A divergence is above 0. One of 0 has vanished among doubles; less, or no number, bounds nothing.
double Certain(double divergence) {
  return divergence >= 0 ? std::max(divergence, std::numeric_limits<double>::min()) : kInfinity;
}

// Epsilon at one order, or infinity if the conversion gives no bound.
double Convert(double divergence, double order, double log_delta) {
  if (!(divergence < kInfinity)) return kInfinity;
  if (2 * log_delta >= std::log(-std::expm1(-divergence))) return 0;
  return std::max(
      0.0, divergence + std::log1p(-1 / order) - (log_delta + std::log(order)) / (order - 1));
}

}  // namespace

double RenyiDivergence(const Event& event, double order) {
  TACIT_CHECK(order > 1);
  const double sigma = event.noise_multiplier;
  switch (event.kind) {
    case EventKind::kAllocation:
    case EventKind::kGaussian:
      return order / (2 * sigma * sigma);
    case EventKind::kPoissonGaussian:
      if (event.sampling_rate == 1) return order / (2 * sigma * sigma);
      if (sigma >= kLeastIntegratedSigma && order <= kMostIntegratedOrder)
        return SampledMoment(sigma, event.sampling_rate, order).Log() / (order - 1);
      // Coins that are known cost more, by convexity.
      [[fallthrough]];
    case EventKind::kKnownCoin: {
      // log(1 - q + q e^a) / (order - 1), without overflow.
      const double a = (order - 1) * order / (2 * sigma * sigma), q = event.sampling_rate;
      return (a < 1 ? std::log1p(q * std::expm1(a)) : a + std::log(q + (1 - q) * std::exp(-a))) /
             (order - 1);
    }
    case EventKind::kLaplace:
      return LaplaceDivergence(event.epsilon, order);
    case EventKind::kPureDp:
      return PureDpDivergence(event.epsilon, order);
    case EventKind::kZcdp:
      return event.rho * order;
    case EventKind::kExponential:
      return BoundedRangeDivergence(event.epsilon, order);
  }
  return kInfinity;
}

std::span<const double> DenseRdpOrders() {
  static const std::vector<double> orders = MakeDenseOrders();
  return orders;
}

RdpAccountant::RdpAccountant()
    : RdpAccountant(std::vector<double>(DenseRdpOrders().begin(), DenseRdpOrders().end())) {}

RdpAccountant::RdpAccountant(std::vector<double> orders)
    : orders_(std::move(orders)), sums_(orders_.size(), 0) {}

Result<RdpAccountant> RdpAccountant::WithOrders(std::vector<double> orders) {
  if (orders.empty()) return Fail(ErrorCode::kInvalidArgument, "no orders given");
  for (double order : orders)
    if (!(order > 1 && std::isfinite(order)))
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("an order must be above 1 and finite (got {})", order));
  return RdpAccountant(std::move(orders));
}

Status RdpAccountant::Add(const Event& event, uint64_t count) {
  TACIT_RETURN_IF_ERROR(event.Validate());
  if (count == 0) return {};
  auto [place, is_new] = known_.try_emplace(event);
  if (is_new)
    for (double order : orders_) place->second.push_back(Certain(RenyiDivergence(event, order)));
  for (size_t i = 0; i < orders_.size(); ++i)
    sums_[i] += static_cast<double>(count) * place->second[i];
  return {};
}

RdpAccountant::Answer RdpAccountant::Epsilon(Delta delta) const {
  TACIT_CHECK(delta.value > 0 && delta.value < 1, "delta must be in (0, 1)");
  Answer best{kInfinity, orders_.front()};
  for (size_t i = 0; i < orders_.size(); ++i) {
    const double epsilon = Convert(sums_[i], orders_[i], std::log(delta.value));
    if (epsilon < best.epsilon) best = {epsilon, orders_[i]};
  }
  return best;
}

double RdpAccountant::DeltaAt(double epsilon) const {
  TACIT_CHECK(epsilon >= 0);
  double log_delta = 0;
  for (size_t i = 0; i < orders_.size(); ++i) {
    if (!(sums_[i] < kInfinity)) continue;
    const double more = orders_[i] - 1;
    const double improved =
        more * (sums_[i] - epsilon + std::log1p(-1 / orders_[i])) - std::log(orders_[i]);
    const double variation = std::log(-std::expm1(-sums_[i])) / 2;
    log_delta = std::min({log_delta, improved, variation});
  }
  // It is 0 of nothing alone: e^x is 0 for numbers that are above 0.
  const bool nothing = std::ranges::all_of(sums_, [](double sum) { return sum == 0; });
  return nothing ? 0 : std::max(std::exp(log_delta), std::numeric_limits<double>::min());
}

}  // namespace tacit::privacy
