#include "store/types/delta.h"

#include <algorithm>

namespace tacit::store {

std::optional<uint32_t> RowLayout::TableOfNumber(uint16_t number) const {
  const auto tables = static_cast<uint32_t>(space.tables().size());
  if (places.empty()) return number < tables ? std::optional<uint32_t>(number) : std::nullopt;
  for (uint32_t t = 0; t < tables; ++t)
    if (places[t].number == number) return t;
  return std::nullopt;
}

uint64_t RowLayout::InitialOf(uint32_t table, uint64_t row) const {
  if (places.empty()) return row;
  const uint64_t bucket = row - space.tables()[table].first;
  const TablePlace& place = places[table];
  return place.initial + (bucket == 0 ? 0 : 1 + (bucket - 1) / place.spread);
}

size_t RowDelta::Find(uint64_t row) const {
  const auto place = std::lower_bound(rows.begin(), rows.end(), row);
  return place != rows.end() && *place == row ? static_cast<size_t>(place - rows.begin()) : size();
}

}  // namespace tacit::store
