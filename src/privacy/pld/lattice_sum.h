#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "privacy/pld/atoms.h"
#include "privacy/pld/unit_law.h"

template <typename Scalar>
class kissfft;

namespace tacit::privacy::pld {

// Sums of equal, independent lattice laws, by powers of their Fourier transform. A value.
//
// A transform rounds by a share of the greatest mass, which would drown a tail. So the law is
// tilted by e^(theta u), transformed, raised and tilted back, at no tilt and at one towards either
// tail, and each mass is taken from the tilt that knows it best. Its error bound has: the rounding
// of the transform, to the power; that of the inverse; the frequencies left out; and the mass that
// wraps around the period (by Chernoff's bound at a tilt beyond). Upper laws add it, lower laws
// take it off.
//
// Few frequencies matter if there are many summands. The inverse is taken of these alone, at every
// r-th point, with the kernels that sum r neighbours' masses and first moments.
class LatticeSum {
 public:
  struct Range {
    int64_t least = 0, most = 0;  // numbers of summands that will be asked for
    double tail = 0;              // mass that may be beyond the window at either end
    bool towards_zero = true;     // whether the tail below is to be known as well as the one above
  };
  LatticeSum(const UnitLattice& unit, const Range& range);

  // The law of the sum of `count`, and what the upper law leaves out: of mass below the window, and
  // of value * mass above it.
  struct Sum {
    Atoms atoms;
    double below = 0, above = 0;
  };
  Sum Of(int64_t count, Bound bound) const;

 private:
  struct Tilted {
    double tilt = 0;
    int64_t centre = 0;
    double log_moment = 0;  // log of the sum of mass * e^(tilt * step * (index - centre))
    std::vector<std::complex<double>> transform;
    double rounding = 0;                          // of each value of the transform
    std::vector<std::complex<double>> logarithm;  // of each value that counts in some sum
  };
  // Masses of cells of `points` lattice points, their first moments in cells' lengths, and the
  // error bound of either.
  struct Estimate {
    std::vector<double> mass, first, error;
  };
  double LogMoment(double tilt, int64_t centre) const;
  void Prepare(double tilt);
  void Transform();
  Estimate Invert(const Tilted& tilted, int64_t count, int64_t cells,
                  const kissfft<double>& fft) const;
  static const Estimate& Best(const std::vector<Estimate>& estimates, size_t cell);
  static bool IsKnown(const std::vector<Estimate>& estimates, size_t cell);
  double LogBeyond(int64_t count, int side, double point) const;

  UnitLattice unit_;
  Range range_;
  int64_t begin_ = 0, period_ = 0;              // of the window, in steps
  double beyond_above_ = 0, beyond_below_ = 0;  // tilts for Chernoff's bounds at the window's ends
  double log_beyond_above_ = 0, log_beyond_below_ = 0;  // their log moments, centre 0
  std::vector<Tilted> tilted_;
};

}  // namespace tacit::privacy::pld
