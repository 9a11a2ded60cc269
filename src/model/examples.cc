#include "model/examples.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/check.h"

namespace tacit::model {
namespace {

constexpr unsigned kDigitBits = 11;
constexpr size_t kDigits = size_t{1} << kDigitBits;

// Sorts keys, and the places beside them, by radix from the lowest digit. Stable. Linear in the
// keys times the digits of the largest.
void RadixSort(std::vector<uint64_t>& keys, std::vector<uint32_t>& places,
               std::vector<uint64_t>& keys_swap, std::vector<uint32_t>& places_swap) {
  const size_t n = keys.size();
  keys_swap.resize(n);
  places_swap.resize(n);
  uint64_t used = 0;
  for (uint64_t key : keys) used |= key;
  std::array<uint32_t, kDigits> next;
  for (unsigned shift = 0; shift < static_cast<unsigned>(std::bit_width(used));
       shift += kDigitBits) {
    next.fill(0);
    for (uint64_t key : keys) ++next[key >> shift & (kDigits - 1)];
    uint32_t begin = 0;
    for (uint32_t& count : next) begin += std::exchange(count, begin);
    for (size_t i = 0; i < n; ++i) {
      const uint32_t to = next[keys[i] >> shift & (kDigits - 1)]++;
      keys_swap[to] = keys[i];
      places_swap[to] = places[i];
    }
    keys.swap(keys_swap);
    places.swap(places_swap);
  }
}

}  // namespace

void ActivationIndexer::Index(std::span<const uint64_t> row, std::span<const uint32_t> slot_end,
                              size_t slots, std::span<const uint32_t> unit_of, size_t units,
                              Activations* out) {
  TACIT_CHECK(slot_end.size() == unit_of.size() * slots, "one end per example and slot");
  TACIT_CHECK(row.size() == (slot_end.empty() ? 0 : slot_end.back()), "slots must cover all rows");
  keys_.assign(row.begin(), row.end());
  places_.resize(row.size());
  for (size_t i = 0; i < places_.size(); ++i) places_[i] = static_cast<uint32_t>(i);
  RadixSort(keys_, places_, keys_swap_, places_swap_);

  out->rows.clear();
  out->slot_row.resize(row.size());
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (i == 0 || keys_[i] != keys_[i - 1]) out->rows.push_back(keys_[i]);
    out->slot_row[places_[i]] = static_cast<uint32_t>(out->rows.size() - 1);
  }

  // A row is new to a unit when the last unit that met it was another one.
  last_unit_.assign(out->rows.size(), 0xffffffff);
  out->unit_row.clear();
  out->unit_end.assign(units, 0);
  uint32_t entry = 0, unit = 0;
  for (size_t i = 0; i < unit_of.size(); ++i) {
    TACIT_CHECK(unit_of[i] >= unit && unit_of[i] < units, "units ascend");
    while (unit < unit_of[i]) out->unit_end[unit++] = static_cast<uint32_t>(out->unit_row.size());
    const uint32_t end = slots == 0 ? 0 : slot_end[(i + 1) * slots - 1];
    for (; entry < end; ++entry) {
      const uint32_t place = out->slot_row[entry];
      if (std::exchange(last_unit_[place], unit) != unit) out->unit_row.push_back(place);
    }
  }
  while (unit < units) out->unit_end[unit++] = static_cast<uint32_t>(out->unit_row.size());
}

}  // namespace tacit::model
