#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "mechanism/row_sums.h"

// A release of sums as lists, and places by row.
namespace tacit::testing {

// A release as an adversary sees it, row by row.
struct FlatSums {
  std::vector<uint64_t> rows;  // ascending
  std::vector<double> sums, counts, numbers;
};

inline FlatSums Flat(const mechanism::ReleasedSums& released) {
  FlatSums flat;
  for (size_t t = 0; t < released.tables(); ++t) {
    const auto table = released.table(t);
    for (size_t i = 0; i < table.size(); ++i) {
      flat.rows.push_back(table.row(i));
      flat.sums.push_back(table.sum(i));
      flat.counts.push_back(table.count(i));
    }
  }
  flat.numbers.assign(released.numbers().begin(), released.numbers().end());
  return flat;
}

// Returns the places of these rows. Those of tables that are not released whole are touched for it.
inline std::map<uint64_t, uint32_t> Touch(std::span<const mechanism::SumTable> tables,
                                          std::span<const uint64_t> rows,
                                          mechanism::RowSums* sums) {
  std::map<uint64_t, uint32_t> places;
  for (const uint64_t row : rows) {
    size_t t = tables.size();
    while (t > 0 && row < tables[t - 1].first) --t;
    places[row] = t > 0 && tables[t - 1].every_row
                      ? sums->FirstPlace(t - 1) + static_cast<uint32_t>(row - tables[t - 1].first)
                      : sums->Touch(row);
  }
  return places;
}

}  // namespace tacit::testing
