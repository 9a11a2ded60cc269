#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/check.h"

// Tables of kinds: an enumeration's values from 0 to its last, with one row for each. A row names
// its value in `kind`. A room keeps one such table of what it knows of each kind; functions take
// the table as a span, so that a test can extend it by a kind of its own.
namespace tacit {

// Returns true if the rows are those of the kinds 0 to `last`, in order. For a static_assert.
template <class Row, size_t n, class Kind>
constexpr bool CoversKinds(const Row (&rows)[n], Kind last) {
  for (size_t i = 0; i < n; ++i)
    if (static_cast<size_t>(rows[i].kind) != i) return false;
  return n == static_cast<size_t>(last) + 1;
}

// Returns the row of a kind; `rows` is a table or a span of one. REQUIRES that it has one.
template <class Rows, class Kind>
const auto& RowOf(const Rows& rows, Kind kind) {
  const auto found =
      std::ranges::find_if(rows, [kind](const auto& row) { return row.kind == kind; });
  TACIT_CHECK(found != std::end(rows), "the table has no row of this kind");
  return *found;
}

}  // namespace tacit
