#include "privacy/pld/atoms.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace tacit::privacy::pld {
namespace {

constexpr int kMantissa = 52;
// A cell keeps this many partial sums, so that one addition need not wait for the last.
constexpr size_t kSums = 4;

uint64_t Bits(double value) { return std::bit_cast<uint64_t>(value); }

}  // namespace

double Atoms::Mass() const {
  double sum = at_zero;
  for (const double one : mass) sum += one;
  return sum;
}

double Atoms::Mean() const {
  double sum = 0;
  for (size_t i = 0; i < value.size(); ++i) sum += value[i] * mass[i];
  return sum;
}

Cells::Cells(double low, double high, int bits)
    : shift_(kMantissa - bits), first_(static_cast<int64_t>(Bits(low) >> shift_)) {
  TACIT_CHECK(low > 0 && low <= high && bits >= 0 && bits <= kMantissa);
  const size_t cells = static_cast<size_t>(Bits(high) >> shift_) - static_cast<size_t>(first_) + 1;
  mass_.assign(cells, 0);
  beyond_.assign(cells, 0);
}

int Cells::BitsFor(double share) {
  return std::clamp(static_cast<int>(std::ceil(-std::log2(share))), 0, 44);
}

double Cells::Floor(double value, int bits) {
  const int shift = kMantissa - bits;
  return std::bit_cast<double>(Bits(value) >> shift << shift);
}

void Cells::Add(double value, double mass) {
  if (value == 0) {
    at_zero_ += mass;
    return;
  }
  const uint64_t cell = Bits(value) >> shift_;
  const size_t at = static_cast<size_t>(static_cast<int64_t>(cell) - first_);
  mass_[at] += mass;
  beyond_[at] += mass * (value - std::bit_cast<double>(cell << shift_));
}

void Cells::Add(const Atoms& atoms, double weight) {
  at_zero_ += weight * atoms.at_zero;
  for (size_t i = 0; i < atoms.value.size(); ++i) Add(atoms.value[i], weight * atoms.mass[i]);
}

void Cells::AddSum(const Atoms& a, const Atoms& b, double weight) {
  AddAlone(a, b, weight);
  AddPairs(a, b, weight);
}

void Cells::AddAlone(const Atoms& a, const Atoms& b, double weight) {
  at_zero_ += weight * a.at_zero * b.at_zero;
  if (a.at_zero > 0)
    for (size_t j = 0; j < b.value.size(); ++j) Add(b.value[j], weight * a.at_zero * b.mass[j]);
  if (b.at_zero > 0)
    for (size_t i = 0; i < a.value.size(); ++i) Add(a.value[i], weight * b.at_zero * a.mass[i]);
}

void Cells::AddPairs(const Atoms& a, const Atoms& b, double weight) {
  // Rows are taken in turn into sums of their own: neighbours in a row fall into one cell.
  const bool same = &a == &b;
  std::vector<double> mass(kSums * mass_.size(), 0), beyond(kSums * mass_.size(), 0);
  double* __restrict masses = mass.data();
  double* __restrict beyonds = beyond.data();
  const auto add = [&](double x, double y, double product, size_t lane) {
    const double sum = x + y;
    const uint64_t cell = Bits(sum) >> shift_;
    const size_t at = static_cast<size_t>(static_cast<int64_t>(cell) - first_) * kSums + lane;
    masses[at] += product;
    beyonds[at] += product * (sum - std::bit_cast<double>(cell << shift_));
  };
  const size_t rows = a.value.size(), columns = b.value.size();
  for (size_t i = 0; i < rows; ++i) {
    const double x = a.value[i], p = weight * a.mass[i];
    if (!(p > 0)) continue;
    size_t j = same ? i + 1 : 0;
    const double twice = same ? 2 * p : p;
    if (same) add(x, x, p * b.mass[i], 0);
    for (; j + kSums <= columns; j += kSums)
      for (size_t lane = 0; lane < kSums; ++lane)
        add(x, b.value[j + lane], twice * b.mass[j + lane], lane);
    for (; j < columns; ++j) add(x, b.value[j], twice * b.mass[j], 0);
  }
  for (size_t k = 0; k < mass_.size(); ++k)
    for (size_t lane = 0; lane < kSums; ++lane) {
      mass_[k] += mass[k * kSums + lane];
      beyond_[k] += beyond[k * kSums + lane];
    }
}

Atoms Cells::Take(Bound bound) const {
  Atoms atoms;
  atoms.at_zero = at_zero_;
  double carried = 0;  // to the lower end of the next cell
  const auto keep = [&](double value, double mass) {
    if (!(mass > 0)) return;
    atoms.value.push_back(value);
    atoms.mass.push_back(mass);
  };
  for (size_t k = 0; k < mass_.size(); ++k) {
    const uint64_t cell = static_cast<uint64_t>(first_) + k;
    const double low = std::bit_cast<double>(cell << shift_);
    if (bound == Bound::kLower) {
      if (mass_[k] > 0) keep(low + beyond_[k] / mass_[k], mass_[k]);
      continue;
    }
    const double length = std::bit_cast<double>((cell + 1) << shift_) - low;
    const double up = std::clamp(beyond_[k] / length, 0.0, mass_[k]);
    keep(low, carried + (mass_[k] - up));
    carried = up;
  }
  keep(std::bit_cast<double>((static_cast<uint64_t>(first_) + mass_.size()) << shift_), carried);
  return atoms;
}

// A summand alone is far below all pairs where values differ little. The cells in between would be
// without end, so that the two parts have cells of their own.
Atoms SumOf(const Atoms& a, const Atoms& b, int bits, Bound bound) {
  const double pairs_low = a.value.front() + b.value.front();
  const double pairs_high = a.value.back() + b.value.back();
  double low = pairs_low, alone_high = 0;
  for (const auto& [zero, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (!(zero->at_zero > 0)) continue;
    low = std::min(low, other->value.front());
    alone_high = std::max(alone_high, other->value.back());
  }
  const bool apart = low < pairs_low && pairs_low - alone_high > std::ldexp(pairs_low, 2 - bits);
  if (!apart) {
    Cells cells(low, pairs_high, bits);
    cells.AddSum(a, b);
    return cells.Take(bound);
  }
  Cells alone(low, alone_high, bits), pairs(pairs_low, pairs_high, bits);
  alone.AddAlone(a, b);
  pairs.AddPairs(a, b);
  Atoms sum = alone.Take(bound);
  const Atoms above = pairs.Take(bound);
  sum.value.insert(sum.value.end(), above.value.begin(), above.value.end());
  sum.mass.insert(sum.mass.end(), above.mass.begin(), above.mass.end());
  return sum;
}

double Trim(Atoms& atoms, double tail, Bound bound) {
  auto& [at_zero, value, mass] = atoms;
  const bool upper = bound == Bound::kUpper;
  size_t begin = 0, end = value.size();
  double below = upper ? 0 : at_zero, below_mean = 0;
  while (begin + 1 < end && below + mass[begin] <= tail) {
    below += mass[begin];
    below_mean += mass[begin] * value[begin];
    ++begin;
  }
  double above = 0, above_mean = 0;
  while (end > begin + 1 && above_mean + mass[end - 1] * value[end - 1] <= tail) {
    --end;
    above += mass[end];
    above_mean += mass[end] * value[end];
  }
  double paid = 0;
  if (upper) {
    at_zero += below - below_mean / value[begin];
    mass[begin] += below_mean / value[begin];
    mass[end - 1] += above;
    paid = std::max(0.0, above_mean - above * value[end - 1]);
  } else {
    // Both tails become a value of their own, in the place of the nearest that was dropped.
    if (begin > 0 && below > 0) {
      --begin;
      at_zero = 0;
      mass[begin] = below;
      value[begin] = below_mean / below;
    }
    if (end < value.size() && above > 0) {
      mass[end] = above;
      value[end] = above_mean / above;
      ++end;
    }
  }
  value.erase(value.begin() + static_cast<std::ptrdiff_t>(end), value.end());
  mass.erase(mass.begin() + static_cast<std::ptrdiff_t>(end), mass.end());
  value.erase(value.begin(), value.begin() + static_cast<std::ptrdiff_t>(begin));
  mass.erase(mass.begin(), mass.begin() + static_cast<std::ptrdiff_t>(begin));
  return paid;
}

}  // namespace tacit::privacy::pld
