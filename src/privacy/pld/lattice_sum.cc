#include "privacy/pld/lattice_sum.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <kissfft/kissfft.hh>
#include <numbers>
#include <span>

#include "base/check.h"
#include "privacy/infinity.h"
#include "privacy/pld/transform.h"

namespace tacit::privacy::pld {
namespace {

using Wave = std::complex<double>;
constexpr double kPlace = 0x1p-53;
// Rounding of a transform of size n, in the 2-norm and per log2(n): a few units for each layer's
// products and sums and for its twiddle factors (Higham 2002, Theorem 24.2).
constexpr double kPerLayer = 12 * kPlace;
// Beyond this exponent of its tail a law is tilted towards it.
constexpr double kUntilted = 22;
// The lower law takes a cell's error off this many times: once for its mass, and for its mean,
// which may be off by the error's share of a cell. What a wrong mean adds to E (S - a)+ is at most
// the error times a cell's length in each cell above a, and the three further errors taken off
// there come to more: they count in full from one cell's length above a on. A cell that would keep
// less than half of its mass is left out, and so are the neighbours of a gap, for want of a cell
// beyond them.
constexpr double kErrorsOff = 4;
constexpr int64_t kLeastCells = 4096;
// Frequencies below this share of the greatest are left out, if that saves anything.
constexpr double kNegligible = 1e-19;
// Frequencies below this share are not looked at one by one. All of them come to nothing beside the
// rounding of one.
constexpr double kNothing = 1e-45;
// e to less than this is 0.
constexpr double kLeastExponent = -746;

double Layers(int64_t size) { return std::log2(static_cast<double>(size)) + 2; }

// A few hundred groups of a lattice law, to choose tilts by.
class Sketch {
 public:
  explicit Sketch(const UnitLattice& unit) {
    const size_t size = unit.mass.size(), group = std::max<size_t>(1, size / 400);
    double all = 0;
    for (size_t i = 0; i < size; i += group) {
      double mass = 0, mean = 0;
      for (size_t j = i; j < std::min(size, i + group); ++j) {
        mass += unit.mass[j];
        mean += unit.mass[j] * static_cast<double>(unit.first + static_cast<int64_t>(j));
      }
      if (!(mass > 0)) continue;
      value_.push_back(mean / mass * unit.step);
      mass_.push_back(mass);
      all += mass;
    }
    for (double& mass : mass_) mass /= all;
  }

  struct At {
    double log_moment = 0, mean = 0;
  };
  At Tilt(double tilt) const {
    const double shift = tilt > 0 ? value_.back() : value_.front();
    double sum = 0, mean = 0;
    for (size_t i = 0; i < value_.size(); ++i) {
      const double weight = mass_[i] * std::exp(tilt * (value_[i] - shift));
      sum += weight;
      mean += weight * value_[i];
    }
    return {std::log(sum) + tilt * shift, mean / sum};
  }

  // The tilt, up (+1) or down (-1), whose mean is so unlikely for a sum of `count`: Cramer's
  // exponent.
  double For(double exponent, double count, int side) const {
    double low = -30, high = 16;  // log of |tilt| in units of the law's length
    const double scale = value_.back() - value_.front();
    while (high - low > 0.02) {
      const double middle = (low + high) / 2, tilt = side * std::exp(middle) / scale;
      const At at = Tilt(tilt);
      (count * (tilt * at.mean - at.log_moment) < exponent ? low : high) = middle;
    }
    return side * std::exp(low) / scale;
  }

 private:
  std::vector<double> value_, mass_;
};

int64_t PowerFrom(double value) {
  int64_t power = 16;
  while (static_cast<double>(power) < value) power *= 2;
  return power;
}

// The sums of z^i and i z^i over i < n.
struct Kernels {
  Wave ones = 0, places = 0;
};
Kernels KernelsOf(Wave z, int64_t n) {
  Kernels sum;
  Wave power = 1;
  for (int64_t i = 0; i < n; ++i) {
    sum.ones += power;
    sum.places += static_cast<double>(i) * power;
    power *= z;
  }
  return sum;
}

// e^(begin + step m) at m = 0, 1, 2, ...: to some thirty units in the last place.
class Exponentials {
 public:
  Exponentials(double begin, double step)
      : begin_(begin), step_(step), ratio_(std::abs(step) < kSteepest ? std::exp(step) : 0) {}
  double Next() {
    const bool afresh = ratio_ == 0 || next_ % kInARow == 0;
    value_ = afresh ? std::exp(begin_ + step_ * static_cast<double>(next_)) : value_ * ratio_;
    ++next_;
    return value_;
  }

 private:
  static constexpr double kSteepest = 8;
  static constexpr int64_t kInARow = 16;

  const double begin_, step_, ratio_;
  double value_ = 0;
  int64_t next_ = 0;
};

// A value below this has, with its rounding, a power (of one less than `times`) of at most
// kNothing. It rises with `times`.
double Nothing(double times, double rounding) {
  if (times <= 1) return 0;
  return std::max(0.0, std::exp(std::log(kNothing) / (times - 1)) - rounding) * (1 - 1e-12);
}

Wave PowerOf(Wave logarithm, double exponent) {
  const double log_size = exponent * logarithm.real();
  return log_size < -650 ? Wave(0) : std::polar(std::exp(log_size), exponent * logarithm.imag());
}

}  // namespace

LatticeSum::LatticeSum(const UnitLattice& unit, const Range& range) : unit_(unit), range_(range) {
  TACIT_CHECK(range.least > 0 && range.least <= range.most && range.tail > 0);
  while (!(unit_.mass.back() > 0)) unit_.mass.pop_back();
  const auto begin =
      std::find_if(unit_.mass.begin(), unit_.mass.end(), [](double mass) { return mass > 0; });
  unit_.first += begin - unit_.mass.begin();
  unit_.mass.erase(unit_.mass.begin(), begin);
  const Sketch sketch(unit_);
  const double exponent = std::log(1 / range_.tail);
  const auto most = static_cast<double>(range_.most), least = static_cast<double>(range_.least);
  beyond_above_ = sketch.For(exponent + 6, most, +1);
  beyond_below_ = sketch.For(exponent + 6, least, -1);
  log_beyond_above_ = LogMoment(beyond_above_, 0);
  log_beyond_below_ = LogMoment(beyond_below_, 0);
  const double top =
      most * static_cast<double>(unit_.first + static_cast<int64_t>(unit_.mass.size()));
  const double bottom = least * static_cast<double>(unit_.first);
  const double high =
      std::min(top, (most * log_beyond_above_ + exponent) / beyond_above_ / unit_.step);
  const double low =
      std::max(bottom, (least * log_beyond_below_ + exponent) / beyond_below_ / unit_.step);
  begin_ = static_cast<int64_t>(std::floor(low)) - 1;
  begin_ = std::max<int64_t>(begin_, 0);
  period_ = PowerFrom(high - static_cast<double>(begin_) + 2);
  Prepare(0);
  if (exponent > kUntilted) Prepare(sketch.For(0.62 * exponent, most, +1));
  if (range_.towards_zero && exponent > kUntilted) Prepare(sketch.For(0.62 * exponent, least, -1));
  Transform();
}

double LatticeSum::LogMoment(double tilt, int64_t centre) const {
  const double last =
      static_cast<double>(unit_.first + static_cast<int64_t>(unit_.mass.size()) - 1);
  const double shift = tilt > 0 ? last : static_cast<double>(unit_.first);
  double sum = 0;
  for (size_t i = 0; i < unit_.mass.size(); ++i) {
    const double exponent =
        tilt * unit_.step * (static_cast<double>(unit_.first + static_cast<int64_t>(i)) - shift);
    // Beyond, the exponential is 0, and takes long to say so.
    if (exponent > kLeastExponent) sum += unit_.mass[i] * std::exp(exponent);
  }
  return std::log(sum) + tilt * unit_.step * (shift - static_cast<double>(centre));
}

void LatticeSum::Prepare(double tilt) {
  Tilted tilted;
  tilted.tilt = tilt;
  const double rough = LogMoment(tilt, 0);
  double mean = 0;
  for (size_t i = 0; i < unit_.mass.size(); ++i) {
    const auto index = static_cast<double>(unit_.first + static_cast<int64_t>(i));
    mean += index * unit_.mass[i] * std::exp(tilt * unit_.step * index - rough);
  }
  tilted.centre = std::llround(mean);
  tilted.log_moment = LogMoment(tilt, tilted.centre);
  tilted_.push_back(std::move(tilted));
}

void LatticeSum::Transform() {
  const RealFft fft(period_);
  for (Tilted& tilted : tilted_) {
    TiltedLaw law;
    double squares = 0;
    for (size_t i = 0; i < unit_.mass.size(); ++i) {
      const int64_t offset = unit_.first + static_cast<int64_t>(i) - tilted.centre;
      const double weight =
          unit_.mass[i] *
          std::exp(tilted.tilt * unit_.step * static_cast<double>(offset) - tilted.log_moment);
      if (!(weight > 0)) continue;
      law.offset.push_back(offset);
      law.weight.push_back(weight);
      squares += weight * weight;
    }
    tilted.transform = fft.Transform(law);
    // Wrapped masses that meet add up; with more points than places the bound allows for it.
    const double meet =
        std::ceil(static_cast<double>(unit_.mass.size()) / static_cast<double>(period_));
    tilted.rounding =
        kPerLayer * Layers(period_) * std::sqrt(static_cast<double>(period_) * squares * meet) +
        64 * kPlace;
    // A value that no inversion looks at needs no logarithm. Inversions leave out at least as much
    // as this, for powers of more summands are smaller.
    const double nothing = Nothing(static_cast<double>(range_.least), tilted.rounding);
    for (const Wave& value : tilted.transform)
      tilted.logarithm.push_back(std::norm(value) < nothing * nothing ? Wave(0) : std::log(value));
  }
}

// log of a bound of the mass of a sum beyond a point, in steps, above (+1) or below (-1).
double LatticeSum::LogBeyond(int64_t count, int side, double point) const {
  const double tilt = side > 0 ? beyond_above_ : beyond_below_;
  const double log_moment = side > 0 ? log_beyond_above_ : log_beyond_below_;
  return static_cast<double>(count) * log_moment - tilt * unit_.step * point;
}

LatticeSum::Estimate LatticeSum::Invert(const Tilted& tilted, int64_t count, int64_t cells,
                                        const kissfft<double>& fft) const {
  const int64_t points = period_ / cells;
  const auto size = static_cast<double>(period_), times = static_cast<double>(count);
  const double per_step = tilted.tilt * unit_.step;
  // Begins at the window's first point, from the centre of the sum.
  const int64_t start = begin_ - count * tilted.centre;
  std::vector<Wave> wave(static_cast<size_t>(cells), 0);
  const double of_power =
      times * tilted.rounding + (8 * times + 4 * static_cast<double>(points) + 64) * kPlace;
  const double nothing = Nothing(times, tilted.rounding);
  double noise = 2 * size * kNothing * (1 + of_power), squares = 0;
  for (int64_t k = 0; k <= period_ / 2; ++k) {
    const Wave& value = tilted.transform[static_cast<size_t>(k)];
    if (std::norm(value) < nothing * nothing) continue;
    const double twice = k == 0 || 2 * k == period_ ? 1 : 2;
    // log (|value| + rounding) is at most that of |value|, and rounding over |value|.
    const Wave& logarithm = tilted.logarithm[static_cast<size_t>(k)];
    const double least = std::sqrt(std::norm(value));
    const double most = std::min(1.0, least + tilted.rounding);
    const double log_most = least > tilted.rounding
                                ? std::min(0.0, logarithm.real() + tilted.rounding / least)
                                : std::log(most);
    const double power = times > 1 ? std::exp((times - 1) * log_most) : 1;
    noise += twice * power * of_power;
    // The highest frequency of a shorter period stands for two, and is left out.
    if (2 * k >= cells && cells < period_) {
      noise += twice * power * most;
      continue;
    }
    // A cell of one point needs no kernel.
    const double angle = 2 * std::numbers::pi * static_cast<double>(k) / size;
    const Kernels kernels =
        points == 1 ? Kernels{1, 0} : KernelsOf(std::polar(std::exp(-per_step), -angle), points);
    const Wave turned = PowerOf(logarithm, times) * std::conj(Phase(start, k, period_));
    const Wave mass = turned * kernels.ones,
               first = turned * kernels.places / static_cast<double>(points);
    const auto at = static_cast<size_t>(k);
    const auto mirrored = static_cast<size_t>((cells - k) % cells);
    wave[at] = mass + Wave(0, 1) * first;
    if (mirrored != at) wave[mirrored] = std::conj(mass) + Wave(0, 1) * std::conj(first);
    squares += twice * (std::norm(mass) + std::norm(first));
  }
  std::vector<Wave> out(static_cast<size_t>(cells));
  fft.transform(wave.data(), out.data());
  const double inverse =
      kPerLayer * Layers(cells) * std::sqrt(static_cast<double>(cells) * squares) / size;
  Estimate estimate;
  const double reach = std::abs(per_step) * static_cast<double>(points);
  const double rough = noise / size * std::exp(tilted.tilt < 0 ? reach : 0);
  Exponentials untilts(times * tilted.log_moment - per_step * static_cast<double>(start),
                       -per_step * static_cast<double>(points));
  // A point's copies one period on and before, under this tilt; then further ones.
  const auto copies = [&](int side) {
    const double place = static_cast<double>(begin_);
    const double from = side > 0 ? place + size : place + static_cast<double>(points) - size;
    const double tilt = side > 0 ? beyond_above_ : beyond_below_;
    return Exponentials(LogBeyond(count, side, from) + side * per_step * size,
                        -tilt * unit_.step * static_cast<double>(points));
  };
  const auto further = [&](int side) {
    const double tilt = side > 0 ? beyond_above_ : beyond_below_;
    const double fall = (tilt - tilted.tilt) * side * unit_.step * size;
    return fall > 0 ? (1 + 1e-12) / -std::expm1(-fall) : kInfinity;
  };
  Exponentials above = copies(+1), below = copies(-1);
  const double further_above = further(+1), further_below = further(-1);
  for (int64_t m = 0; m < cells; ++m) {
    const double untilt = untilts.Next();
    const double wrapped = above.Next() * further_above + below.Next() * further_below;
    const auto at = static_cast<size_t>(m);
    const double error = untilt * (static_cast<double>(points) * rough + inverse) +
                         static_cast<double>(points) * wrapped;
    // Far from its own region a tilt knows nothing, but that no mass exceeds 1.
    const bool knows = error < 1;
    estimate.error.push_back(knows ? error : 1);
    estimate.mass.push_back(knows ? untilt * out[at].real() / size : 0);
    estimate.first.push_back(knows ? untilt * out[at].imag() / size : 0);
  }
  return estimate;
}

const LatticeSum::Estimate& LatticeSum::Best(const std::vector<Estimate>& estimates, size_t cell) {
  const Estimate* best = &estimates.front();
  for (const Estimate& estimate : estimates)
    if (estimate.error[cell] < best->error[cell]) best = &estimate;
  return *best;
}

bool LatticeSum::IsKnown(const std::vector<Estimate>& estimates, size_t cell) {
  const auto alone = [&](size_t at) {
    const Estimate& best = Best(estimates, at);
    return 2 * kErrorsOff * best.error[at] <= best.mass[at];
  };
  if (!alone(cell)) return false;
  const bool first = cell == 0, last = cell + 1 == estimates.front().mass.size();
  return (first || alone(cell - 1)) && (last || alone(cell + 1));
}

LatticeSum::Sum LatticeSum::Of(int64_t count, Bound bound) const {
  TACIT_CHECK(range_.least <= count && count <= range_.most);
  // The frequencies that matter, by the untilted law.
  int64_t needed = kLeastCells;
  const double counts = std::exp(2 * std::log(kNegligible) / static_cast<double>(count));
  for (const Tilted& tilted : tilted_)
    for (int64_t k = period_ / 2; 2 * k >= needed; --k)
      if (std::norm(tilted.transform[static_cast<size_t>(k)]) > counts) {
        needed = 2 * k + 2;
        break;
      }
  const int64_t cells = std::min(period_, PowerFrom(static_cast<double>(needed)));
  std::vector<Estimate> estimates;
  const kissfft<double> fft(static_cast<size_t>(cells), false);
  for (const Tilted& tilted : tilted_) estimates.push_back(Invert(tilted, count, cells, fft));
  const int64_t points = period_ / cells;
  const double length = unit_.step * static_cast<double>(points);
  Sum sum;
  Atoms& atoms = sum.atoms;
  double carried = 0;
  const auto keep = [&](double value, double mass) {
    if (!(mass > 0)) return;
    if (value > 0) {
      atoms.value.push_back(value);
      atoms.mass.push_back(mass);
    } else {
      atoms.at_zero += mass;
    }
  };
  for (int64_t m = 0; m < cells; ++m) {
    const auto at = static_cast<size_t>(m);
    const Estimate& best = Best(estimates, at);
    const double error = best.error[at];
    const double mass = std::max(0.0, best.mass[at]);
    const double first = std::clamp(best.first[at], 0.0, mass);
    const double low = static_cast<double>(begin_ + m * points) * unit_.step;
    if (bound == Bound::kUpper) {
      keep(low, carried + (mass - first) + error);
      carried = points > 1 ? first + error : 0;
    } else if (IsKnown(estimates, at)) {
      keep(low + length * first / mass, mass - kErrorsOff * error);
    }
  }
  if (bound == Bound::kUpper) keep(static_cast<double>(begin_ + period_) * unit_.step, carried);
  sum.below = std::exp(LogBeyond(count, -1, static_cast<double>(begin_)));
  if (begin_ == 0) sum.below = 0;
  // E[S; S > a] <= a E[e^(theta (S - a))] for theta a >= 1.
  const auto end = static_cast<double>(begin_ + period_);
  sum.above = end * unit_.step * std::exp(LogBeyond(count, +1, end));
  return sum;
}

}  // namespace tacit::privacy::pld
