#pragma once

namespace tacit::privacy::pld {

// U = e^(s Z - s^2/2), Z standard normal: what one step multiplies a likelihood by under Q. Its
// mean is 1, and weighting by U moves Z by s. A value.
class Lognormal {
 public:
  explicit Lognormal(double s) : s_(s) {}

  // Part of the law over (a, b]: P(a < U <= b), E[U - a; a < U <= b] and E[b - U; a < U <= b], the
  // latter two without their cancellation. `a` may be 0, and `b` infinite, where `short_of` is 0.
  struct Part {
    double mass = 0, beyond = 0, short_of = 0;
  };
  Part Over(double a, double b) const;

  double Below(double u) const;          // P(U <= u)
  double Above(double u) const;          // P(U > u)
  double WeightedAbove(double u) const;  // E[U; U > u]
  // u with this many standard deviations of Z below it.
  double At(double z) const;

  double s() const { return s_; }
  double deviation() const;  // the standard deviation of U

 private:
  double Z(double u) const;

  double s_;
};

}  // namespace tacit::privacy::pld
