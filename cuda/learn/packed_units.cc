#include "cuda/learn/packed_units.h"

#include <algorithm>
#include <cstring>

namespace tacit::cuda {

void PackedUnits::Clear() {
  for (std::vector<uint32_t>* part :
       {&item, &position, &crop_end, &unit_end, &counted, &target, &counted_end, &crop_counted_end,
        &id_low, &id_high, &coordinates})
    part->clear();
  weight.clear();
  longest = 0;
}

std::array<PackedUnits::Place, PackedUnits::kParts> PackedUnits::Places() const {
  std::array<Place, kParts> places;
  size_t begin = 0;
  const auto put = [&](Part part, const auto& values) {
    static_assert(sizeof(values[0]) == sizeof(uint32_t));
    places[part] = {values.data(), begin, values.size()};
    begin += (values.size() + 3) / 4 * 4;
  };
  put(kItem, item);
  put(kPosition, position);
  put(kCropEnd, crop_end);
  put(kUnitEnd, unit_end);
  put(kCounted, counted);
  put(kTarget, target);
  put(kCountedEnd, counted_end);
  put(kCropCountedEnd, crop_counted_end);
  put(kIdLow, id_low);
  put(kIdHigh, id_high);
  put(kWeight, weight);
  put(kCoordinates, coordinates);
  return places;
}

size_t PackedUnits::words() const {
  const Place last = Places().back();
  return last.begin + (last.words + 3) / 4 * 4;
}

void PackedUnits::CopyTo(std::span<uint32_t> words) const {
  for (const Place& place : Places())
    if (place.words > 0)
      std::memcpy(&words[place.begin], place.from, place.words * sizeof(uint32_t));
}

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
