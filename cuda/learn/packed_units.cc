#include "cuda/learn/packed_units.h"

#include <algorithm>

namespace tacit::cuda {

void PackedUnits::Append(const model::UnitRows& rows, uint64_t id, uint32_t coordinates_of) {
  const auto before = static_cast<uint32_t>(item.size());
  const size_t counted_before = counted.size();
  for (uint32_t r = 0; r < rows.size(); ++r) {
    if (rows.weight[r] == 0 || rows.target[r] == model::kNoItem) continue;
    counted.push_back(before + r);
    target.push_back(rows.target[r]);
    weight.push_back(rows.weight[r]);
  }
  if (counted.size() > counted_before) {
    item.insert(item.end(), rows.item.begin(), rows.item.end());
    position.insert(position.end(), rows.position.begin(), rows.position.end());
    uint32_t first = 0;
    size_t next = counted_before;
    for (const uint32_t end : rows.crop_end) {
      crop_end.push_back(before + end);
      while (next < counted.size() && counted[next] < before + end) ++next;
      crop_counted_end.push_back(static_cast<uint32_t>(next));
      longest = std::max(longest, end - first);
      first = end;
    }
  }
  unit_end.push_back(static_cast<uint32_t>(item.size()));
  counted_end.push_back(static_cast<uint32_t>(counted.size()));
  coordinates.push_back(coordinates_of);
  id_low.push_back(static_cast<uint32_t>(id));
  id_high.push_back(static_cast<uint32_t>(id >> 32));
}

}  // namespace tacit::cuda
