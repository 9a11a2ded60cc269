#pragma once

#include <cstdint>

#include "ops/backend.h"

namespace tacit::model {

// The source of a step's public coins: a seed for each purpose.
struct StepCoins {
  uint64_t seed = 0;

  uint64_t negatives() const;
  uint64_t crops(uint64_t unit) const;
  uint64_t dropout() const;
};

// The public coins of one unit in one step. They depend on the step's seed and on the unit's id,
// never on its place in the batch or on the other units there: taking a unit out must not move the
// gradients of the others.
struct DropoutCoins {
  uint64_t seed = 0;  // StepCoins::dropout()
  uint64_t unit = 0;
  float rate = 0;  // 0: nothing is dropped

  bool on() const { return rate > 0; }
  // 16 bits below `kept` keep a number, which is multiplied by `factor`.
  uint32_t kept() const;
  float factor() const { return 65536.0f / static_cast<float>(kept()); }
  // factors[r][c] = 1 / (1 - rate) with probability 1 - rate (to 2^-16), else 0. `site`
  // distinguishes the places where numbers are dropped.
  void Draw(uint32_t site, ops::Matrix factors) const;
};

// x *= factors.
void Multiply(ops::ConstMatrix factors, ops::Matrix x);

}  // namespace tacit::model
