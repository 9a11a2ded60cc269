#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tacit {

// Sorts by key(value), an unsigned number, from the lowest digit up: stable, and linear in the
// number of values. `work` is memory that the caller keeps from call to call.
template <class T, class Key>
void RadixSort(std::vector<T>* values, std::vector<T>* work, const Key& key) {
  constexpr uint32_t kBits = 11, kDigits = 1 << kBits;
  work->resize(values->size());
  uint64_t all = 0;
  for (const T& value : *values) all |= key(value);
  for (uint32_t shift = 0; shift < 64 && all >> shift != 0; shift += kBits) {
    const auto digit = [&](const T& value) { return (uint64_t{key(value)} >> shift) % kDigits; };
    std::array<size_t, kDigits + 1> first{};
    for (const T& value : *values) ++first[digit(value) + 1];
    for (uint32_t d = 0; d < kDigits; ++d) first[d + 1] += first[d];
    for (const T& value : *values) (*work)[first[digit(value)]++] = value;
    values->swap(*work);
  }
}

}  // namespace tacit
