#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "privacy/charge.h"
#include "privacy/pld.h"

namespace tacit::privacy {

// What one unit has taken part in, as a composition: the Gaussian queries it was surely in, which
// are one Gaussian whose mu^2 is the sum of theirs; those it was in with a probability, counted by
// setting; and the zCDP of all others, whose rho adds up. A value.
struct Spending {
  struct Sampled {
    double noise_multiplier = 0;
    double sampling_rate = 0;
    uint64_t count = 0;
    friend bool operator==(const Sampled&, const Sampled&) = default;
  };

  double mu_squared = 0;  // infinite: unbounded
  double rho = 0;         // finite
  std::vector<Sampled> sampled =
      {};  // ascending by (noise_multiplier, sampling_rate), counts above 0

  // So many steps of this charge, the unit eligible for each.
  static Spending Of(const Charge& charge, uint64_t steps);

  bool empty() const { return mu_squared == 0 && rho == 0 && sampled.empty(); }
  bool bounded() const { return !std::isinf(mu_squared); }
  // Whether the epsilon of it is in closed form.
  bool gaussian() const { return (rho == 0 && sampled.empty()) || !bounded(); }
  void Add(const Spending& other);
  uint64_t SampledSteps() const {
    uint64_t steps = 0;
    for (const Sampled& s : sampled) steps += s.count;
    return steps;
  }
  // Whether this is at least as much of everything.
  bool Covers(const Spending& other) const;
  friend bool operator==(const Spending&, const Spending&) = default;

  // f64 mu^2, f64 rho, u32 count, then for each setting f64 noise multiplier, f64 rate, u64 count.
  void EncodeTo(ByteWriter* out) const;
  // False when the bytes are no spending.
  static bool Decode(ByteReader* in, Spending* spending);
};

// Keeps in `maximal` what nothing else in it covers.
void InsertMaximal(Spending spending, std::vector<Spending>* maximal);

// Bounds of epsilon for spendings that mostly grow: exact for Gaussians, certified by the PLD
// accountant (add-or-remove, which bounds zero-out) once anything was sampled or is charged by its
// zCDP. Remembers its last compositions, a few of them since the worst unit may be one of several,
// so that the same question costs nothing and one more step little; a copy starts afresh. Not
// thread-safe.
class EpsilonMeter {
 public:
  EpsilonMeter();
  ~EpsilonMeter();
  EpsilonMeter(const EpsilonMeter&);
  EpsilonMeter& operator=(const EpsilonMeter&);

  // The upper bound is infinite where none can be certified. REQUIRES 0 < delta < 1.
  CertifiedInterval Bounds(const Spending& spending, Delta delta);

 private:
  struct Composition;

  Composition& Choose(const Spending& spending, double delta);

  std::vector<std::unique_ptr<Composition>> compositions_;  // the last used first
};

}  // namespace tacit::privacy
