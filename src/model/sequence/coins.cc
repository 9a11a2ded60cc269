#include "model/sequence/coins.h"

#include <array>
#include <cmath>

#include "base/hash.h"
#include "ops/shapes.h"

namespace tacit::model {
namespace {

// splitmix64: it makes coins for different purposes unrelated.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t StepCoins::negatives() const { return Mix(seed); }
uint64_t StepCoins::crops(uint64_t unit) const { return Mix(Mix(seed ^ 1) ^ unit); }
uint64_t StepCoins::dropout() const { return Mix(Mix(seed ^ 2)); }

uint32_t DropoutCoins::kept() const {
  return static_cast<uint32_t>(std::lround((1 - rate) * 65536.0f));
}

void DropoutCoins::Draw(uint32_t site, ops::Matrix factors) const {
  constexpr size_t kPerCall = 8;  // 16 bits each
  const uint32_t kept_below = kept();
  const float each = factor();
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed),
                                       static_cast<uint32_t>(seed >> 32)};
  uint32_t call = 0;
  for (size_t r = 0; r < factors.rows; ++r) {
    float* row = factors.Row(r);
    for (size_t c = 0; c < factors.cols; c += kPerCall) {
      const auto words = Philox(
          {call++, site, static_cast<uint32_t>(unit), static_cast<uint32_t>(unit >> 32)}, key);
      for (size_t i = 0; i < kPerCall && c + i < factors.cols; ++i)
        row[c + i] = ((words[i / 2] >> (16 * (i % 2))) & 0xffff) < kept_below ? each : 0.0f;
    }
  }
}

void Multiply(ops::ConstMatrix factors, ops::Matrix x) {
  ops::CheckSameShape(factors, x);
  for (size_t r = 0; r < x.rows; ++r) {
    const float* f = factors.Row(r);
    float* row = x.Row(r);
#pragma GCC ivdep
    for (size_t c = 0; c < x.cols; ++c) row[c] *= f[c];
  }
}

}  // namespace tacit::model
