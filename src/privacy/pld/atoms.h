#pragma once

#include <cstdint>
#include <vector>

// Laws of finitely many values, and sums of independent ones, bounded in convex order.
//
// X is below Y in convex order if E f(X) <= E f(Y) for every convex f. Then so are X + W and Y + W
// for an independent W: it holds at each value of W. Means agree.
namespace tacit::privacy::pld {

// The side of the truth on which a bound of a law lies, in convex order.
enum class Bound { kUpper, kLower };

// Masses at 0 and at ascending values above it.
struct Atoms {
  double at_zero = 0;
  std::vector<double> value, mass;

  double Mass() const;
  double Mean() const;  // the sum of value * mass
};

// Cells that collect mass: from each power of two to the next, 2^bits of equal length. A value's
// cell is in the first bits of its representation, so finding it costs nothing.
//
// The upper law moves a cell's mass to the cell's two ends so that the mean is kept (a spread); the
// lower law moves it to its mean (a contraction). What that adds to, or takes from, the variance is
// a sixth, or a twelfth, of a cell's length squared.
class Cells {
 public:
  // REQUIRES 0 < low <= high, and that all that is added lies between them, or is 0.
  Cells(double low, double high, int bits);

  void Add(double value, double mass);
  void Add(const Atoms& atoms, double weight = 1);
  // Adds the law of the sum of two independent ones. Every mass is positive and sums are exact to
  // their last places, so all masses are relatively exact, however small.
  void AddSum(const Atoms& a, const Atoms& b, double weight = 1);
  // The part of it where one of the two is 0, or both are.
  void AddAlone(const Atoms& a, const Atoms& b, double weight = 1);
  // The other part.
  void AddPairs(const Atoms& a, const Atoms& b, double weight = 1);

  Atoms Take(Bound bound) const;

  // The bits with which no cell is longer than `share` of its values.
  static int BitsFor(double share);
  static double Floor(double value, int bits);  // the lower end of a value's cell

 private:
  template <class Row>
  void AddShifted(double at, double weight, const Row& row);

  int shift_;
  int64_t first_;
  double at_zero_ = 0;
  std::vector<double> mass_, beyond_;  // per cell; beyond its lower end
};

// The law of X + Y for independent X and Y, in cells of `bits` bits.
Atoms SumOf(const Atoms& a, const Atoms& b, int bits, Bound bound);

// Shortens a law by tails that hold at most `tail`: of the mass below, of value * mass above. The
// lower law takes each to its mean. The upper law spreads the one below over 0 and the least value
// kept, and caps the one above at the greatest value kept; returns E of what was capped, to be
// paid.
double Trim(Atoms& atoms, double tail, Bound bound);

}  // namespace tacit::privacy::pld
