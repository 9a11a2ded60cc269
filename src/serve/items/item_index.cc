#include "serve/items/item_index.h"

#include <algorithm>

#include "base/check.h"
#include "http/request_json.h"
#include "model/transitions/public_items.h"

namespace tacit::serve {

ItemIndex::ItemIndex(const event::ItemCatalogue& items) : described_(items.described()) {
  if (!described_) return;
  for (uint32_t item = 0; item < items.items(); ++item) {
    years_.push_back(model::transitions::YearOfTitle(std::string(items.Title(item))));
    for (const std::string_view genre : items.Genres(item)) {
      auto at = genre_number_.find(genre);
      if (at == genre_number_.end())
        at = genre_number_.emplace(genre, static_cast<uint32_t>(genre_number_.size())).first;
      genres_.push_back(at->second);
    }
    genre_end_.push_back(static_cast<uint32_t>(genres_.size()));
  }
}

Status ItemIndex::LeaveOut(const ItemFilter& filter, std::span<uint8_t> left_out) const {
  if (!filter.any()) return {};
  if (!described_)
    return http::BadRequest("\"genres\" and years look at descriptions, and no item has any");
  TACIT_CHECK(left_out.size() == years_.size(), "a mark for each item");
  std::vector<uint8_t> wanted(genre_number_.size());
  for (const std::string& genre : filter.genres) {
    const auto at = genre_number_.find(genre);
    if (at == genre_number_.end()) {
      std::vector<std::string_view> known;
      for (const auto& [name, number] : genre_number_) known.emplace_back(name);
      return http::BadRequest("\"genres\": " + http::UnknownName("genre", genre, known));
    }
    wanted[at->second] = 1;
  }
  const int64_t from = filter.year_from.value_or(INT64_MIN),
                to = filter.year_to.value_or(INT64_MAX);
  const bool by_year = filter.year_from || filter.year_to;
  for (size_t item = 0, genre = 0; item < years_.size(); ++item) {
    const bool is_wrong_year =
        by_year && (years_[item] == 0 || years_[item] < from || years_[item] > to);
    bool has = filter.genres.empty();
    for (; genre < genre_end_[item]; ++genre) has = has || wanted[genres_[genre]] != 0;
    if (is_wrong_year || !has) left_out[item] = 1;
  }
  return {};
}

}  // namespace tacit::serve
