#include "privacy/pld/side.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "privacy/infinity.h"
#include "privacy/pld/transform.h"

namespace tacit::privacy::pld {
namespace {

using Complex = std::complex<double>;
constexpr double kUnit = 0x1p-53;
// Left-out frequencies may be this share of the answer.
constexpr double kTruncation = 3e-7;
// Kinds are sampled until high frequencies are this small together, in log.
constexpr double kDamped = 30;
constexpr int64_t kQuickSamples = 1 << 14;
constexpr int64_t kMostSamples = 1 << 19;
constexpr int kUpdatesPerResum = 64;
constexpr int64_t kTurns = 64;
// No lattice point is farther from 0. Under a plan for another question the left-out part may never
// fall below delta.
constexpr int64_t kFarthest = int64_t{1} << 50;

// NaN if either is.
double LogAdd(double a, double b) {
  const double greater = std::max(a, b);
  return greater == -kInfinity ? a + b : greater + std::log1p(std::exp(-std::abs(a - b)));
}

// The damping of high frequencies by a kind: the least of -log |Phi| at a few of them.
double Strength(const Side::Weighed& one) {
  constexpr int64_t kPeriod = 1 << 20;
  double least = kInfinity;
  for (int64_t k : {17011, 60013, 155003, 301007, 440009, 520021}) {
    Complex sum = 0;
    for (size_t i = 0; i < one.tilted.offset.size(); ++i)
      sum += one.tilted.weight[i] * Phase(one.tilted.offset[i], k, kPeriod);
    least = std::min(least, -std::log(std::max(std::abs(sum), 1e-30)));
  }
  return one.count * least;
}

int64_t SamplesFor(std::span<const Side::Weighed> laws, double resolution) {
  double all = 0, widest = 0;
  for (const Side::Weighed& one : laws) all += one.count * one.tilted.variance;
  for (const Side::Weighed& one : laws)
    if (one.count * one.tilted.variance * static_cast<double>(laws.size()) >= 0.1 * all)
      widest = std::max(widest, one.tilted.variance);
  int64_t samples = 1 << 10;
  while (samples < kMostSamples && static_cast<double>(samples) < resolution * std::sqrt(widest))
    samples *= 2;
  return samples;
}

}  // namespace

// |kappa| at a frequency in [0, pi]; it falls with the frequency.
double Side::KernelSize(double frequency) const {
  const auto distance = [&](double radius) {
    const double sine = std::sin(frequency / 2);
    return std::sqrt((1 - radius) * (1 - radius) + 4 * radius * sine * sine);
  };
  const double radius = std::exp(-plan_.tilt * plan_.step);
  const double shrink = -std::expm1(-plan_.tilt * plan_.step);
  const double next = radius * std::exp(-plan_.step);
  const double sine = std::sin(frequency / 2);
  const double first = std::sqrt(shrink * shrink + 4 * radius * sine * sine);
  return radius * -std::expm1(-plan_.step) / (first * distance(next));
}

// Bounds |Phi| by these kinds (others are at most 1), from `samples` sampled frequencies.
void Side::BoundBy(std::span<const Weighed> laws, int64_t samples) {
  const RealFft fft(samples);
  const std::vector<double> ends = PieceEnds(samples);
  std::vector<double> log_bound(ends.size(), 0);
  for (const Weighed& one : laws) {
    // Skips a law too wide for its transform to be bounded between these samples.
    if (one.tilted.variance * 20 > static_cast<double>(samples) * static_cast<double>(samples))
      continue;
    const std::vector<float> bounds = LogBounds(one.tilted, fft);
    for (size_t k = 0; k < ends.size(); ++k) log_bound[k] += one.count * bounds[k];
  }
  CutOff(ends, log_bound);
}

// Leaves out as many of the highest frequencies as are negligible.
void Side::CutOff(const std::vector<double>& ends, const std::vector<double>& log_bound) {
  const Saddle& saddle = plan_.saddle;
  const double tolerance = kTruncation * std::exp(saddle.log_delta - saddle.cumulants.log_moment +
                                                  saddle.tilt * saddle.epsilon);
  const double per_radian = static_cast<double>(plan_.period) / (2 * std::numbers::pi);
  frequencies_ = plan_.period / 2 + 1;
  truncated_ = 0;
  for (size_t k = ends.size(); k-- > 0;) {
    const double begin = k == 0 ? 0 : ends[k - 1];
    const auto kept = static_cast<int64_t>(begin * per_radian) + 1;
    const auto number = static_cast<double>(frequencies_ - kept);
    const double sum = number == 0 ? truncated_
                                   : truncated_ + 2 * number / static_cast<double>(plan_.period) *
                                                      std::exp(log_bound[k]) * KernelSize(begin);
    if (!(sum <= tolerance)) break;
    truncated_ = sum;
    frequencies_ = kept;
  }
}

int64_t Side::ChooseFrequencies(const std::vector<Entry>& laws) {
  std::vector<Weighed> weighed;
  double points = 0;
  for (const Entry& entry : laws) {
    weighed.push_back({Tilt(*entry.law, plan_.step, plan_.tilt), entry.count, 0});
    weighed.back().strength = Strength(weighed.back());
    points += static_cast<double>(entry.law->index.size());
  }
  // Takes a quick look first, by a few kinds that are cheap to sample and damp high frequencies
  // well; then a thorough one if it would save more than it costs.
  std::sort(weighed.begin(), weighed.end(), [](const Weighed& a, const Weighed& b) {
    return a.strength / (50 + std::sqrt(a.tilted.variance)) >
           b.strength / (50 + std::sqrt(b.tilted.variance));
  });
  size_t used = 0;
  for (double strength = 0; used < weighed.size() && strength < kDamped; ++used)
    strength += weighed[used].strength;
  const std::span<const Weighed> all(weighed), few = all.first(used);
  BoundBy(few, std::min(SamplesFor(few, 200), kQuickSamples));
  const int64_t samples = SamplesFor(all, 400);
  const double thorough = 60 * static_cast<double>(samples) * static_cast<double>(laws.size());
  if (static_cast<double>(frequencies_) * points > thorough) BoundBy(all, samples);
  return frequencies_;
}

void Side::AddPart(const Kind* kind, const LatticeLaw& law) {
  const TiltedLaw tilted = Tilt(law, plan_.step, plan_.tilt);
  Part part;
  part.centre = tilted.centre;
  part.log_moment = tilted.log_moment;
  part.log_moment_above = LogMoment(law, plan_.step, plan_.tilt_above, part.centre);
  part.log_moment_below = LogMoment(law, plan_.step, plan_.tilt_below, part.centre);
  part.infinite_mass = law.infinite_mass;
  // Rounding of a factor: its masses, its sum or transform, its logarithm and that logarithm's
  // multiples. Losses are exact to their last place, which the tilt magnifies.
  const double size = std::abs(static_cast<double>(part.centre)) + 4 * std::sqrt(tilted.variance);
  part.rounding = kUnit * (2 * static_cast<double>(law.index.size()) + 1000 +
                           4 * plan_.tilt * plan_.step * size);
  part.log_phi = Frequencies(tilted, plan_.period, frequencies_);
  for (Complex& value : part.log_phi)
    value = std::norm(value) > 1e-280 ? std::log(value) : Complex(-320, 0);
  parts_.emplace(kind, std::move(part));
}

void Side::SetCounts(const std::vector<Counted>& events) {
  for (const Counted& counted : events) parts_.at(counted.kind).count = counted.count;
  if (updates_++ % kUpdatesPerResum == 0) {
    log_total_.assign(static_cast<size_t>(frequencies_), 0);
    for (auto& [kind, part] : parts_) part.summed = 0;
  }
  log_moment_ = log_moment_above_ = log_moment_below_ = infinite_mass_ = rounding_ = 0;
  centre_ = 0;
  for (auto& [kind, part] : parts_) {
    if (const double more = part.count - part.summed; more != 0)
      for (size_t k = 0; k < log_total_.size(); ++k) log_total_[k] += more * part.log_phi[k];
    part.summed = part.count;
    log_moment_ += part.count * part.log_moment;
    log_moment_above_ += part.count * part.log_moment_above;
    log_moment_below_ += part.count * part.log_moment_below;
    infinite_mass_ += part.count * part.infinite_mass;
    rounding_ += part.count * part.rounding + kUnit * std::abs(part.count * part.log_moment);
    centre_ += static_cast<int64_t>(part.count) * part.centre;
  }
  Resum();
}

// Computes the coefficients of the series, kernel and 1/N included.
void Side::Resum() {
  const double step = plan_.step, size = static_cast<double>(plan_.period);
  // 1 - radius cancels where the radius is near 1, and is 1 where the radius is small: each of the
  // two is computed by itself.
  const double radius = std::exp(-plan_.tilt * step), shrink = -std::expm1(-plan_.tilt * step);
  const double radius_next = radius * std::exp(-step);
  const double shrink_next = -std::expm1(-(plan_.tilt + 1) * step);
  coefficients_.resize(log_total_.size());
  coefficient_sum_ = kernel_sum_ = 0;
  for (size_t k = 0; k < log_total_.size(); ++k) {
    const double t = 2 * std::numbers::pi * static_cast<double>(k) / size;
    // 1 - z for z = radius e^(-it) is (1 - radius) + radius (1 - e^(-it)).
    const double sine = std::sin(t / 2);
    const Complex turned(2 * sine * sine, std::sin(t));
    const Complex first = shrink + radius * turned;
    const Complex next = shrink_next + radius_next * turned;
    const Complex kernel = std::polar(radius, -t) * (-std::expm1(-step) / size) / (first * next);
    const bool alone = k == 0 || 2 * static_cast<int64_t>(k) == plan_.period;
    coefficients_[k] = std::exp(log_total_[k]) * kernel * (alone ? 1.0 : 2.0);
    coefficient_sum_ += std::abs(coefficients_[k]);
    kernel_sum_ += std::abs(kernel) * (alone ? 1.0 : 2.0);
  }
}

// The real part of the sum of coefficient * e^(-i t_k (point - centre)).
double Side::Series(int64_t point) const {
  const int64_t turns = centre_ - point;
  const Complex turn = Phase(turns, 1, plan_.period);
  double sum = 0;
  Complex phase = 1;
  for (size_t k = 0; k < coefficients_.size(); ++k) {
    if (k % kTurns == 0) phase = Phase(turns, static_cast<int64_t>(k), plan_.period);
    sum += coefficients_[k].real() * phase.real() - coefficients_[k].imag() * phase.imag();
    phase = Complex(phase.real() * turn.real() - phase.imag() * turn.imag(),
                    phase.real() * turn.imag() + phase.imag() * turn.real());
  }
  return sum;
}

// A bound of the series' error, apart from wrapping.
double Side::LeftOut() const {
  return truncated_ + kernel_sum_ * std::expm1(rounding_) + coefficient_sum_ * kUnit * 256;
}

// A bound of the tilted answers at point + jN, j != 0.
double Side::Wrapped(int64_t point) const {
  const double away = static_cast<double>(point - centre_) * plan_.step;
  const double window = static_cast<double>(plan_.period) * plan_.step;
  const double above = plan_.tilt_above - plan_.tilt, below = plan_.tilt - plan_.tilt_below;
  return std::exp(log_moment_above_ - log_moment_ - above * (away + window) + rounding_) /
             -std::expm1(-above * window) +
         std::exp(log_moment_below_ - log_moment_ + below * (away - window) + rounding_) /
             -std::expm1(-below * window);
}

double Side::LogDelta(int64_t point) const {
  const double away = static_cast<double>(point - centre_) * plan_.step;
  const double scale = log_moment_ - plan_.tilt * away;
  const double slack = rounding_ + kUnit * 4 * (std::abs(log_moment_) + std::abs(scale));
  if (is_upper_) {
    // An answer is at least its error. One of 0, or no number, has lost it.
    const double answer = std::max(Series(point), 0.0) + LeftOut();
    const double log_delta = LogAdd(scale + slack + std::log(answer), std::log(infinite_mass_));
    return log_delta > -kInfinity ? std::min(0.0, log_delta) : kInfinity;
  }
  const double answer = Series(point) - LeftOut() - Wrapped(point);
  const double log_delta = answer > 0 ? scale - slack + std::log(answer) : -kInfinity;
  return log_delta >= 0 ? 0 : log_delta < 0 ? log_delta : -kInfinity;
}

int64_t Side::PointBelow(double epsilon) const {
  return static_cast<int64_t>(
      std::floor(std::min(epsilon / plan_.step, static_cast<double>(kFarthest))));
}

double Side::DeltaAt(double epsilon) const {
  const int64_t point = PointBelow(epsilon);
  const double at = std::exp(LogDelta(point)), next = std::exp(LogDelta(point + 1));
  if (!(at < kInfinity && next < kInfinity)) return kInfinity;
  // delta is linear in e^epsilon between lattice points.
  const double share =
      std::expm1(std::max(0.0, epsilon - static_cast<double>(point) * plan_.step)) /
      std::expm1(plan_.step);
  // e^x is 0 for numbers that are above 0.
  const double least = is_upper_ ? std::numeric_limits<double>::min() : 0;
  return std::clamp(at + std::min(share, 1.0) * (next - at), least, 1.0);
}

double Side::Slope(double epsilon) const {
  const int64_t point = PointBelow(epsilon);
  const auto apart = std::max<int64_t>(1, point / 200);
  const double drop = LogDelta(point) - LogDelta(point + apart);
  return std::max(0.0, drop / (static_cast<double>(apart) * plan_.step));
}

double Side::Epsilon(double log_delta, double guess) const {
  const auto above = [&](int64_t point) { return LogDelta(point) - log_delta; };
  const auto steps = [&](double log_ratio) {
    return static_cast<int64_t>(
        std::clamp(log_ratio / (plan_.tilt * plan_.step), 0.0, static_cast<double>(kFarthest)));
  };
  if (is_upper_ && above(0) <= 0) return 0;
  if (is_upper_ && !(std::log(infinite_mass_) < log_delta)) return kInfinity;
  // Brackets the crossing from the guess outwards. A lower side may have no bound far from its
  // plan.
  int64_t low = static_cast<int64_t>(
      std::clamp(std::round(guess / plan_.step), 0.0, static_cast<double>(kFarthest)));
  int64_t high = low + 1;
  double at_low = above(low), at_high = at_low;
  for (int64_t stride = 1; !(at_low > 0); stride *= 4) {
    if (low == 0) return 0;
    high = low;
    at_high = at_low;
    low = std::max<int64_t>(0, low - stride - (at_low > -kInfinity ? steps(-at_low) : 0));
    at_low = above(low);
  }
  if (!(at_high < 0)) at_high = above(high);
  for (int64_t stride = 1; at_high > 0; stride *= 4) {
    low = high;
    at_low = at_high;
    if (high > kFarthest) return is_upper_ ? kInfinity : 0;
    high += stride + steps(at_high);
    at_high = above(high);
  }
  while (high - low > 1) {
    double next = static_cast<double>(low) + static_cast<double>(high - low) / 2;
    if (at_low < kInfinity && at_high > -kInfinity)
      next =
          static_cast<double>(low) + static_cast<double>(high - low) * at_low / (at_low - at_high);
    else if (at_high > -kInfinity)
      next = static_cast<double>(high) + at_high / (plan_.tilt * plan_.step) - 1;
    const int64_t point = std::clamp(static_cast<int64_t>(next), low + 1, high - 1);
    const double value = above(point);
    (value > 0 ? low : high) = point;
    (value > 0 ? at_low : at_high) = value;
    // Regula falsi may creep, so a nearby point is tried too.
    if (high - low > 1 && static_cast<double>(high - low) > 8) {
      const int64_t nudge = value > 0 ? point + 2 : point - 2;
      const double there = above(nudge);
      (there > 0 ? low : high) = nudge;
      (there > 0 ? at_low : at_high) = there;
    }
  }
  const double over = std::expm1(above(low)), under = -std::expm1(above(high));
  const double share = std::isinf(over) ? 1 : over / (over + under);
  const double epsilon =
      static_cast<double>(low) * plan_.step + std::log1p(share * std::expm1(plan_.step));
  return epsilon * (is_upper_ ? 1 + 4 * kUnit : 1 - 4 * kUnit);
}

}  // namespace tacit::privacy::pld
