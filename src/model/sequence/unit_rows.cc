#include "model/sequence/unit_rows.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"

namespace tacit::model {

void UnitRows::Clear() {
  item.clear();
  target.clear();
  position.clear();
  weight.clear();
  crop_end.clear();
}

void UnitRows::Append(std::span<const uint32_t> inputs, std::span<const uint32_t> targets,
                      uint32_t length) {
  TACIT_CHECK(inputs.size() == targets.size() && inputs.size() <= length, "a crop fits its window");
  const size_t first = length - inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNoItem) continue;
    item.push_back(inputs[i]);
    target.push_back(targets[i]);
    position.push_back(static_cast<uint32_t>(first + i));
  }
  const auto end = static_cast<uint32_t>(item.size());
  if (end > (crop_end.empty() ? 0 : crop_end.back())) crop_end.push_back(end);
}

void UnitRows::Weigh(const SequenceOptions& options) {
  weight.assign(size(), 0.0f);
  for (size_t crop = 0, row = 0; crop < crop_end.size(); ++crop)
    for (; row < crop_end[crop]; ++row)
      weight[row] =
          target[row] != kNoItem && (!options.last_position_only || row + 1 == crop_end[crop]);
  const auto counted = std::ranges::count(weight, 1.0f);
  if (!options.mean_loss || counted == 0) return;
  for (float& w : weight) w /= static_cast<float>(counted);
}

void CutCrops(const SequenceOptions& options, std::span<const uint32_t> history, size_t known,
              uint64_t coins, UnitRows* rows) {
  TACIT_CHECK(known <= history.size(), "what is known is of the history");
  rows->Clear();
  const size_t pairs = history.empty() ? 0 : history.size() - 1, length = options.length;
  const size_t first = known == 0 ? 0 : known - 1;  // pair whose target is new
  const auto append = [&](size_t begin, size_t end) {
    const size_t row = rows->size();
    rows->Append(history.subspan(begin, end - begin), history.subspan(begin + 1, end - begin),
                 options.length);
    const size_t context = first > begin ? first - begin : 0;
    std::ranges::fill(std::span(rows->target).subspan(row, context), kNoItem);
  };
  if (pairs > first + length && options.random_crops) {
    for (uint32_t crop = 0; crop < options.crops; ++crop) {
      const auto words = Philox({crop, 0, 0, 1},
                                {static_cast<uint32_t>(coins), static_cast<uint32_t>(coins >> 32)});
      const size_t begin = first + ((uint64_t{words[0]} * (pairs - first - length + 1)) >> 32);
      append(begin, begin + length);
    }
  } else {
    size_t end = pairs;
    for (uint32_t crop = 0; crop < options.crops && end > first; ++crop) {
      const size_t begin = end > length ? end - length : 0;
      append(begin, end);
      end = begin;
    }
  }
  rows->Weigh(options);
}

}  // namespace tacit::model
