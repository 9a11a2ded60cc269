#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace tacit::model {

// The histories of privacy units, each in its own order, one after the other in contiguous memory.
// Unit u's items are items[end[u - 1]] up to items[end[u]], and each is below `catalogue`. The
// catalogue is public; the rest is as private as the data. A value.
struct Histories {
  std::vector<uint32_t> items;
  std::vector<uint64_t> end;  // per unit; ascending, the last is items.size()
  uint32_t catalogue = 0;     // number of items
  // Per unit: its id, independent of other units. If empty, a unit's place is its id, and a
  // unit that was never there must be one without items.
  std::vector<uint64_t> id = {};

  size_t units() const { return end.size(); }
  // The id from which a unit's public coins follow.
  uint64_t IdOf(size_t unit) const { return id.empty() ? unit : id[unit]; }
  std::span<const uint32_t> Of(size_t unit) const {
    const uint64_t begin = unit == 0 ? 0 : end[unit - 1];
    return {items.data() + begin, end[unit] - begin};
  }
};

// Fails with kInvalidArgument, naming the unit, if an item is not of the catalogue or the ends or
// ids are not as described above.
Status CheckHistories(const Histories& histories);

}  // namespace tacit::model
