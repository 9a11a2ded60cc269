#include "model/ranking/place.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tacit::model {

size_t PlaceOf(uint32_t answer, std::span<const uint32_t> history, std::span<const float> scores) {
  const float own = scores[answer];
  // True if the answer's score is NaN; the other score may be anything.
  const auto before = [&](float score) { return score >= own || std::isnan(own); };
  auto place = static_cast<size_t>(std::ranges::count_if(scores, before));
  if (!before(own)) ++place;
  std::vector<uint32_t> seen(history.begin(), history.end());
  std::ranges::sort(seen);
  const auto repeated = std::ranges::unique(seen);
  seen.erase(repeated.begin(), repeated.end());
  for (const uint32_t item : seen)
    if (item != answer && before(scores[item])) --place;
  return place;
}

}  // namespace tacit::model
