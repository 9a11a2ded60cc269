#include "store/delta.h"

#include <algorithm>

namespace tacit::store {

size_t RowDelta::Find(uint64_t row) const {
  const auto place = std::lower_bound(rows.begin(), rows.end(), row);
  return place != rows.end() && *place == row ? static_cast<size_t>(place - rows.begin()) : size();
}

}  // namespace tacit::store
