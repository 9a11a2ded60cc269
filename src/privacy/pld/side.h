#pragma once

#include <complex>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "privacy/pld/kind.h"
#include "privacy/pld/lattice_law.h"
#include "privacy/pld/plan.h"
#include "privacy/pld/transform.h"

namespace tacit::privacy::pld {

// One side (upper or lower laws) of a composition under a plan.
//
// With Phi the transform of the composed tilted law, the tilted answer at lattice point i is
//   D(i) = e^(c i h) delta(i h) = E * 1/N * sum over k of Phi(t_k) kappa(t_k) e^(-i t_k i),
// up to the wrapped values D(i + jN), j != 0; t_k = 2 pi k / N, E = E[e^(c L)], and kappa the
// transform of (1 - e^-l)_+ e^(-c l). Every D is positive, so wrapping only adds; Chernoff's bound
// at two more tilts limits how much. Frequencies beyond the summed ones are bounded with |Phi|'s
// own bounds, and every coefficient carries the rounding of its factors, each to the power of its
// count. The tilt makes the answer the largest term in the sum, however small delta is.
class Side {
 public:
  // The contribution of one event of a kind.
  struct Part {
    int64_t centre = 0;
    double log_moment = 0, log_moment_above = 0, log_moment_below = 0;
    double infinite_mass = 0;
    double rounding = 0;
    std::vector<std::complex<double>> log_phi;
    double count = 0, summed = 0;  // events of the kind; those in the total already
  };

  Side(const Plan& plan, bool is_upper) : plan_(plan), is_upper_(is_upper) {}

  // Returns how many frequencies `laws` (each with its count) need so that the omitted ones do not
  // matter; also fixes the bound of the omitted ones. REQUIRES every law of the plan; called once.
  struct Entry {
    const LatticeLaw* law = nullptr;
    double count = 0;
  };
  int64_t ChooseFrequencies(const std::vector<Entry>& laws);
  struct Weighed {
    TiltedLaw tilted;
    double count = 0, strength = 0;
  };
  void SetFrequencies(int64_t count) { frequencies_ = count; }

  void AddPart(const Kind* kind, const LatticeLaw& law);
  bool Has(const Kind* kind) const { return parts_.contains(kind); }
  // Updates the counts. REQUIRES a part for each.
  void SetCounts(const std::vector<Counted>& events);

  // The certified log delta at a lattice point. Without a bound, as where the arithmetic failed,
  // the lower side says -infinity and the upper side +infinity.
  double LogDelta(int64_t point) const;
  // The epsilon where the certified delta crosses; 0 if it does not cross above 0. Infinite for an
  // upper side that has no bound at this delta.
  double Epsilon(double log_delta, double guess) const;
  // Infinite for an upper side that has no bound there, and never 0 for one that has.
  double DeltaAt(double epsilon) const;

  // -d log delta / d epsilon, near this epsilon.
  double Slope(double epsilon) const;
  double rounding() const { return rounding_; }

 private:
  void BoundBy(std::span<const Weighed> laws, int64_t samples);
  void CutOff(const std::vector<double>& ends, const std::vector<double>& log_bound);
  double KernelSize(double frequency) const;
  double LeftOut() const;
  double Wrapped(int64_t point) const;
  double Series(int64_t point) const;
  int64_t PointBelow(double epsilon) const;
  void Resum();

  Plan plan_;
  bool is_upper_;
  int64_t frequencies_ = 0;
  double truncated_ = 0;  // bound of the left-out frequencies' sum
  std::map<const Kind*, Part> parts_;
  std::vector<std::complex<double>> log_total_, coefficients_;
  double coefficient_sum_ = 0, kernel_sum_ = 0;
  double log_moment_ = 0, log_moment_above_ = 0, log_moment_below_ = 0;
  double infinite_mass_ = 0, rounding_ = 0;
  int64_t centre_ = 0;
  int updates_ = 0;
};

}  // namespace tacit::privacy::pld
