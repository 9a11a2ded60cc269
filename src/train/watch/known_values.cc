#include "train/watch/known_values.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tacit::train {
namespace {

constexpr uint32_t kWords = 1024;  // of 64 bits
constexpr uint32_t kWindowsKnown = 64;
constexpr size_t kKnownMost = 64 * kWords / 4;  // bits

// Mixes all bits of a value (the finaliser of SplitMix64).
uint64_t Mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

KnownValues::KnownValues() : known_(kWords), before_(kWords), fresh_(kWords) {}

void KnownValues::See(uint64_t value) {
  const uint64_t hash = Mixed(value);
  const uint64_t word = hash >> 54, bit = uint64_t{1} << (hash & 63);
  ++values_;
  fresh_[word] |= bit;
  if (((known_[word] | before_[word]) & bit) != 0) return;
  ++news_;
  ++new_by_cell_[(hash >> 6) & 63];
}

double KnownValues::new_share() const {
  const uint32_t most = *std::ranges::max_element(new_by_cell_);
  return values_ == 0 ? 0 : static_cast<double>(news_ - most) / values_;
}

void KnownValues::EndWindow(bool keep) {
  if (keep) {
    size_t known = 0;
    for (uint32_t word = 0; word < kWords; ++word) {
      known_[word] |= fresh_[word];
      known += static_cast<size_t>(std::popcount(known_[word]));
    }
    // The oldest bits go before most are set, when every value would look known.
    if (++windows_ >= kWindowsKnown || known > kKnownMost) {
      windows_ = 0;
      std::swap(before_, known_);
      std::ranges::fill(known_, 0);
    }
  }
  std::ranges::fill(fresh_, 0);
  new_by_cell_.fill(0);
  values_ = news_ = 0;
}

}  // namespace tacit::train
