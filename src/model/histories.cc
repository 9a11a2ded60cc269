#include "model/histories.h"

#include <fmt/format.h>

namespace tacit::model {

Status CheckHistories(const Histories& histories) {
  const auto refuse = [](std::string why) {
    return Fail(ErrorCode::kInvalidArgument, "histories: " + std::move(why));
  };
  if (!histories.id.empty() && histories.id.size() != histories.units())
    return refuse(fmt::format("{} ids for {} units", histories.id.size(), histories.units()));
  uint64_t begin = 0;
  for (size_t unit = 0; unit < histories.units(); ++unit) {
    const uint64_t end = histories.end[unit];
    if (end < begin || end > histories.items.size())
      return refuse(fmt::format("unit {} ends at {} of {}", unit, end, histories.items.size()));
    for (; begin < end; ++begin)
      if (histories.items[begin] >= histories.catalogue)
        return refuse(fmt::format("unit {}: item {} of a catalogue of {}", unit,
                                  histories.items[begin], histories.catalogue));
  }
  if (begin == histories.items.size()) return {};
  return refuse(fmt::format("{} items belong to no unit", histories.items.size() - begin));
}

}  // namespace tacit::model
