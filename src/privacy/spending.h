#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "privacy/charge.h"
#include "privacy/pld.h"

namespace tacit::privacy {

// What one unit has taken part in, as a composition of Gaussian queries: those it was surely in,
// which are one Gaussian whose mu^2 is the sum of theirs, and those it was in with a probability,
// counted by setting. A value.
struct Spending {
  struct Sampled {
    double noise_multiplier = 0;
    double sampling_rate = 0;
    uint64_t count = 0;
    friend bool operator==(const Sampled&, const Sampled&) = default;
  };

  double mu_squared = 0;         // infinite: unbounded
  std::vector<Sampled> sampled;  // ascending by (noise_multiplier, sampling_rate), counts above 0

  // So many steps of this charge, the unit eligible for each.
  static Spending Of(const Charge& charge, uint64_t steps);

  bool empty() const { return mu_squared == 0 && sampled.empty(); }
  void Add(const Spending& other);
  // Whether this is at least as much of everything.
  bool Covers(const Spending& other) const;
  friend bool operator==(const Spending&, const Spending&) = default;

  // f64 mu^2, u32 count, then for each setting f64 noise multiplier, f64 rate, u64 count.
  void EncodeTo(ByteWriter* out) const;
  // False when the bytes are no spending.
  static bool Decode(ByteReader* in, Spending* spending);
};

// Keeps in `maximal` what nothing else in it covers.
void InsertMaximal(Spending spending, std::vector<Spending>* maximal);

// Bounds of epsilon for spendings that mostly grow: exact for Gaussians, certified by the PLD
// accountant (add-or-remove, which bounds zero-out) once anything was sampled. Remembers its last
// composition, so that one more step costs little; a copy starts afresh. Not thread-safe.
class EpsilonMeter {
 public:
  EpsilonMeter();
  ~EpsilonMeter();
  EpsilonMeter(const EpsilonMeter&);
  EpsilonMeter& operator=(const EpsilonMeter&);

  // The upper bound is infinite where none can be certified. REQUIRES 0 < delta < 1.
  CertifiedInterval Bounds(const Spending& spending, Delta delta);

 private:
  bool Grow(const Spending& to);

  std::unique_ptr<PldAccountant> accountant_;
  Spending composed_;  // what the accountant holds
};

}  // namespace tacit::privacy
