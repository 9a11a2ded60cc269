#include "wiring/plans/item_texts.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace tacit::wiring {
namespace {

std::optional<int64_t> NumberOf(std::string_view name) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

}  // namespace

model::transitions::PublicItems ItemTexts(const event::ItemCatalogue& items,
                                          std::optional<std::span<const uint32_t>> of) {
  if (!items.described())
    return model::transitions::PublicItems(of ? static_cast<uint32_t>(of->size()) : items.items());
  std::vector<model::transitions::ItemText> texts(items.items());
  bool all_numbers = true;
  for (uint32_t item = 0; item < items.items(); ++item) {
    const std::optional<int64_t> number = NumberOf(items.Name(item));
    all_numbers = all_numbers && number.has_value();
    texts[item] = {.id = number.value_or(0), .title = std::string(items.Title(item)), .genres = {}};
    for (const std::string_view genre : items.Genres(item)) texts[item].genres.emplace_back(genre);
  }
  if (!all_numbers)
    for (uint32_t item = 0; item < items.items(); ++item) texts[item].id = item;
  return of ? model::transitions::PublicItems(texts, *of) : model::transitions::PublicItems(texts);
}

}  // namespace tacit::wiring
