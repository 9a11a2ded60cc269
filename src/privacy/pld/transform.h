#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "privacy/pld/lattice_law.h"

// Fourier transforms of tilted lattice laws: masses p_j e^(c l_j) / M(c).
namespace tacit::privacy::pld {

struct TiltedLaw {
  int64_t centre = 0;           // lattice index next to the tilted mean
  double log_moment = 0;        // log E[e^(c (L - centre))], missing mass included
  double variance = 0;          // variance of the index, tilted
  double fourth = 0;            // upper bound of the index's fourth central moment
  std::vector<int64_t> offset;  // index - centre
  std::vector<double> weight;   // sums to 1
};

TiltedLaw Tilt(const LatticeLaw& law, double step, double tilt);

// log E[e^(c (L - centre))] alone.
double LogMoment(const LatticeLaw& law, double step, double tilt, int64_t centre);

// e^(2 pi i index k / period). The angle is reduced in whole numbers, so nothing is lost.
// REQUIRES 0 <= k.
std::complex<double> Phase(int64_t index, int64_t k, int64_t period);

// A transform of one size, a power of two of at least 4. It keeps its tables, which cost as much as
// a transform.
class RealFft {
 public:
  explicit RealFft(int64_t size);
  ~RealFft();

  int64_t size() const { return size_; }
  // All frequencies 0 .. size / 2 of a law wrapped around the size.
  std::vector<std::complex<double>> Transform(const TiltedLaw& law) const;

 private:
  struct Impl;
  int64_t size_;
  std::unique_ptr<Impl> impl_;
};

// phi(k) = sum of weight * e^(2 pi i k offset / period), for k < count. Each is within
// 2^-53 * (2 * points + 400) of the truth. Summed directly, or by FFT if that is faster (and
// `period` is a power of two).
std::vector<std::complex<double>> Frequencies(const TiltedLaw& law, int64_t period, int64_t count);
// Checks that Frequencies() would be faster with a power of two as its period.
bool WantsFft(size_t points, int64_t period, int64_t count);

// Upper bounds of log |phi| over pieces of the half period of frequencies [0, pi]: first
// kFinePieces pieces whose ends grow geometrically up to pi / samples * 2, then one piece between
// each two samples. Between samples |phi|^2 = E[cos(t (I - I'))] bends by at most 2 Var(I).
inline constexpr int kFinePieces = 96;
std::vector<double> PieceEnds(int64_t samples);
std::vector<float> LogBounds(const TiltedLaw& law, const RealFft& fft);

}  // namespace tacit::privacy::pld
