#include "privacy/pld/transform.h"

#include <algorithm>
#include <cmath>
#include <kissfft/kissfft.hh>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace tacit::privacy::pld {
namespace {

using Complex = std::complex<double>;
constexpr double kTwoPi = 2 * std::numbers::pi;
// Points are handled this many at a time.
constexpr size_t kLanes = 8;
// A phase is turned on from the last one this many times before it is computed afresh.
constexpr int64_t kPhaseTurns = 64;

int64_t Wrap(int64_t value, int64_t period) {
  const int64_t rest = value % period;
  return rest < 0 ? rest + period : rest;
}

// The phases of all points at one frequency, and their turns to the next one.
struct Phases {
  std::vector<double> real, imaginary, turn_real, turn_imaginary;

  explicit Phases(size_t points)
      : real(points), imaginary(points), turn_real(points), turn_imaginary(points) {}
};

// Sums the phases and turns each to the next frequency.
Complex SumAndTurn(Phases& phases) {
  double real[kLanes] = {}, imaginary[kLanes] = {};
  double* __restrict zr = phases.real.data();
  double* __restrict zi = phases.imaginary.data();
  const double* __restrict tr = phases.turn_real.data();
  const double* __restrict ti = phases.turn_imaginary.data();
  for (size_t i = 0; i < phases.real.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double x = zr[i + lane], y = zi[i + lane];
      real[lane] += x;
      imaginary[lane] += y;
      zr[i + lane] = x * tr[i + lane] - y * ti[i + lane];
      zi[i + lane] = x * ti[i + lane] + y * tr[i + lane];
    }
  Complex sum = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) sum += Complex(real[lane], imaginary[lane]);
  return sum;
}

std::vector<Complex> Directly(const TiltedLaw& law, int64_t period, int64_t count) {
  const size_t points = law.offset.size();
  Phases phases((points + kLanes - 1) / kLanes * kLanes);
  for (size_t i = 0; i < points; ++i) {
    const Complex turn = Phase(law.offset[i], 1, period);
    phases.turn_real[i] = turn.real();
    phases.turn_imaginary[i] = turn.imag();
  }
  std::vector<Complex> result;
  result.reserve(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) {
    if (k % kPhaseTurns == 0)
      for (size_t i = 0; i < points; ++i) {
        const Complex phase = law.weight[i] * Phase(law.offset[i], k, period);
        phases.real[i] = phase.real();
        phases.imaginary[i] = phase.imag();
      }
    result.push_back(SumAndTurn(phases));
  }
  return result;
}

}  // namespace

struct RealFft::Impl {
  explicit Impl(size_t half) : fft(half, false) {}
  kissfft<double> fft;
};

RealFft::RealFft(int64_t size)
    : size_(size), impl_(std::make_unique<Impl>(static_cast<size_t>(size / 2))) {
  TACIT_CHECK(size >= 4 && (size & (size - 1)) == 0);
}
RealFft::~RealFft() = default;

std::vector<Complex> RealFft::Transform(const TiltedLaw& law) const {
  std::vector<double> wrapped(static_cast<size_t>(size_), 0);
  for (size_t i = 0; i < law.offset.size(); ++i)
    wrapped[static_cast<size_t>(Wrap(law.offset[i], size_))] += law.weight[i];
  const auto half = static_cast<size_t>(size_ / 2);
  std::vector<Complex> out(half + 1);
  impl_->fft.transform_real(wrapped.data(), out.data());
  out[half] = out[0].imag();  // where kissfft puts the highest frequency
  out[0] = out[0].real();
  for (Complex& value : out) value = std::conj(value);  // e^(+i ...)
  return out;
}

Complex Phase(int64_t index, int64_t k, int64_t period) {
  __extension__ using Wide = __int128;
  const Wide turns = static_cast<Wide>(Wrap(index, period)) * k;
  // Divisions of such long numbers are slow.
  const bool power_of_two = (period & (period - 1)) == 0 && k >= 0;
  const auto turn = static_cast<int64_t>(power_of_two ? turns & (period - 1) : turns % period);
  return std::polar(1.0, kTwoPi * static_cast<double>(turn) / static_cast<double>(period));
}

double LogMoment(const LatticeLaw& law, double step, double tilt, int64_t centre) {
  double greatest = -std::numeric_limits<double>::infinity();
  std::vector<double> exponent(law.index.size());
  for (size_t i = 0; i < exponent.size(); ++i) {
    exponent[i] = tilt * step * static_cast<double>(law.index[i] - centre);
    if (law.mass[i] > 0) greatest = std::max(greatest, exponent[i] + std::log(law.mass[i]));
  }
  double sum = 0;
  for (size_t i = 0; i < exponent.size(); ++i)
    if (law.mass[i] > 0) sum += law.mass[i] * std::exp(exponent[i] - greatest);
  return greatest + std::log(sum);
}

TiltedLaw Tilt(const LatticeLaw& law, double step, double tilt) {
  // Sums relative to the greatest exponent first, then around the resulting mean.
  TiltedLaw tilted;
  double greatest = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < law.index.size(); ++i)
    if (law.mass[i] > 0)
      greatest = std::max(greatest,
                          tilt * step * static_cast<double>(law.index[i]) + std::log(law.mass[i]));
  double sum = 0, mean = 0;
  for (size_t i = 0; i < law.index.size(); ++i) {
    const double exponent = tilt * step * static_cast<double>(law.index[i]) - greatest;
    const double weight = law.mass[i] > 0 && exponent > -745 ? law.mass[i] * std::exp(exponent) : 0;
    tilted.weight.push_back(weight);
    sum += weight;
    mean += weight * static_cast<double>(law.index[i]);
  }
  mean /= sum;
  tilted.centre = std::llround(mean);
  size_t kept = 0;
  for (size_t i = 0; i < law.index.size(); ++i) {
    const double weight = tilted.weight[i] / sum;
    if (!(weight > 0)) continue;
    tilted.weight[kept++] = weight;
    tilted.offset.push_back(law.index[i] - tilted.centre);
    const double distance = static_cast<double>(law.index[i]) - mean;
    tilted.variance += weight * distance * distance;
    tilted.fourth += weight * distance * distance * distance * distance;
  }
  tilted.weight.resize(kept);
  tilted.log_moment = LogMoment(law, step, tilt, tilted.centre);
  return tilted;
}

bool WantsFft(size_t points, int64_t period, int64_t count) {
  const double size = static_cast<double>(period);
  return static_cast<double>(points) * static_cast<double>(count) > 3 * size * std::log2(size);
}

std::vector<Complex> Frequencies(const TiltedLaw& law, int64_t period, int64_t count) {
  const bool power_of_two = (period & (period - 1)) == 0 && period >= 4;
  if (!power_of_two || !WantsFft(law.offset.size(), period, count))
    return Directly(law, period, count);
  std::vector<Complex> all = RealFft(period).Transform(law);
  TACIT_CHECK(count <= static_cast<int64_t>(all.size()));
  all.resize(static_cast<size_t>(count));
  return all;
}

std::vector<double> PieceEnds(int64_t samples) {
  std::vector<double> ends;
  const double first = kTwoPi / static_cast<double>(samples);
  for (int i = 1; i <= kFinePieces; ++i)
    ends.push_back(first * std::pow(2.0, (i - kFinePieces) / 6.0));
  for (int64_t k = 2; k <= samples / 2; ++k) ends.push_back(first * static_cast<double>(k));
  return ends;
}

std::vector<float> LogBounds(const TiltedLaw& law, const RealFft& fft) {
  const int64_t samples = fft.size();
  const std::vector<double> ends = PieceEnds(samples);
  const std::vector<Complex> at = fft.Transform(law);
  const double first = kTwoPi / static_cast<double>(samples);
  const double bend = first * first * law.variance / 4 + 1e-13;
  // cos x <= 1 - x^2/2 + x^4/24 for x = t (I - I'): E[x^2] = 2 t^2 Var, E[x^4] as below.
  const double fourth = 2 * law.fourth + 6 * law.variance * law.variance;
  std::vector<float> bounds;
  double begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    double squared = 1;
    const int64_t k = static_cast<int64_t>(i) - kFinePieces + 1;
    if (k >= 1)
      squared = std::max(std::norm(at[static_cast<size_t>(k)]),
                         std::norm(at[static_cast<size_t>(k + 1)])) +
                bend;
    // The quartic falls up to t^2 = 12 Var / fourth.
    if (ends[i] * ends[i] * fourth < 12 * law.variance) {
      const double t = begin * begin;
      squared = std::min(squared, 1 - t * law.variance + t * t * fourth / 24 + 1e-15);
    }
    bounds.push_back(static_cast<float>(std::log(std::min(squared, 1.0)) / 2 * (1 - 1e-6)));
    begin = ends[i];
  }
  return bounds;
}

}  // namespace tacit::privacy::pld
