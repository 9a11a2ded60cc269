#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/item_catalogue.h"

namespace tacit::serve {

// A condition on public descriptions: an item that does not meet it is not recommended.
struct ItemFilter {
  std::vector<std::string> genres;  // any of them; if empty, any genre
  std::optional<int64_t> year_from, year_to;

  bool any() const { return !genres.empty() || year_from || year_to; }
};

// The public descriptions of a catalogue's items in the form that filters look at: some 8 bytes an
// item. Immutable; thread-safe.
class ItemIndex {
 public:
  explicit ItemIndex(const event::ItemCatalogue& items);

  // Marks the items that the filter leaves out, in addition to those that are marked; an item
  // without a year is left out where years are asked for. kInvalidArgument: no item is described,
  // or none has a genre of this name. REQUIRES a mark for each item.
  Status LeaveOut(const ItemFilter& filter, std::span<uint8_t> left_out) const;

 private:
  bool described_ = false;
  std::vector<int16_t> years_;  // 0: unknown
  std::vector<uint32_t> genre_end_;
  std::vector<uint32_t> genres_;  // of each item
  std::map<std::string, uint32_t, std::less<>> genre_number_;
};

}  // namespace tacit::serve
