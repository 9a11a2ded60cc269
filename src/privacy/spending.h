#pragma once

#include <algorithm>
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

// One unit's participations as a composition. The Gaussian queries that surely had the unit are one
// Gaussian, whose mu^2 is the sum of theirs. Sampled queries are counted by setting. All other
// queries have a zCDP, whose rho adds up. A value.
struct Spending {
  struct Sampled {
    double noise_multiplier = 0;
    double sampling_rate = 0;
    uint64_t count = 0;        // of steps; with block_steps, of blocks
    uint64_t block_steps = 0;  // as in Charge
    bool coins_known = false;

    // One of them, as the accountants know it.
    Event event() const;
    bool SameSetting(const Sampled& other) const {
      return noise_multiplier == other.noise_multiplier && sampling_rate == other.sampling_rate &&
             block_steps == other.block_steps && coins_known == other.coins_known;
    }
    friend bool operator==(const Sampled&, const Sampled&) = default;
  };

  double mu_squared = 0;              // infinite: unbounded
  double rho = 0;                     // finite
  std::vector<Sampled> sampled = {};  // ascending by all but their counts, which are above 0

  // The spending of `steps` steps of this charge, with the unit eligible for each.
  static Spending Of(const Charge& charge, uint64_t steps);

  bool empty() const { return mu_squared == 0 && rho == 0 && sampled.empty(); }
  // A NaN bounds nothing.
  bool bounded() const { return std::isfinite(mu_squared) && std::isfinite(rho); }
  // True if epsilon has a closed form.
  bool gaussian() const { return (rho == 0 && sampled.empty()) || !bounded(); }
  void Add(const Spending& other);
  uint64_t SampledSteps() const {
    uint64_t steps = 0;
    for (const Sampled& s : sampled) steps += s.count * std::max<uint64_t>(1, s.block_steps);
    return steps;
  }
  // True if no part of this is less than in `other`. A NaN covers nothing, and nothing covers it.
  bool Covers(const Spending& other) const;
  friend bool operator==(const Spending&, const Spending&) = default;

  // True if some steps came in blocks.
  bool has_blocks() const;

  // spending.cc has the grammar.
  void EncodeTo(ByteWriter* out) const;
  // Returns false if the bytes are no spending.
  static bool Decode(ByteReader* in, Spending* spending);
};

// The difference of two compositions, part by part; no part is below zero.
Spending Difference(const Spending& more, const Spending& less);
// A part of a spending, or a multiple. Counts round up: a step that has begun counts.
Spending Scaled(const Spending& spending, double by);

// Adds a spending to `maximal`, which holds only those that no other covers.
void InsertMaximal(Spending spending, std::vector<Spending>* maximal);

// Bounds epsilon for spendings that mostly grow: exact for Gaussians, certified by the PLD
// accountant (add-or-remove, which bounds zero-out) if anything was sampled or charged by its zCDP.
// Caches its last few compositions, since the worst unit may be one of several, so that a repeated
// question is free and one more step cheap; a copy starts empty. Not thread-safe.
class EpsilonMeter {
 public:
  // `laws` may be null. A copy has its own.
  explicit EpsilonMeter(Laws laws = nullptr);
  ~EpsilonMeter();
  EpsilonMeter(const EpsilonMeter&);
  EpsilonMeter& operator=(const EpsilonMeter&);

  // The upper bound is infinite if none can be certified. REQUIRES 0 < delta < 1.
  CertifiedInterval Bounds(const Spending& spending, Delta delta);
  // The greatest advantage of anybody who wants to tell from all releases whether the unit was in
  // them (tradeoff.h): exact for Gaussians; for others read off the certified curve where that
  // takes milliseconds, and a hundredth above it. Never below the truth.
  double Advantage(const Spending& spending, Delta delta);

 private:
  struct Composition;

  Composition& Choose(const Spending& spending, double delta);

  Laws laws_;
  std::vector<std::unique_ptr<Composition>> compositions_;  // most recently used first
};

}  // namespace tacit::privacy
