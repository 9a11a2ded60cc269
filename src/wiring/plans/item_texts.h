#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "event/item_catalogue.h"
#include "model/transitions/public_items.h"

namespace tacit::wiring {

// The public items in the form that the count model compares: with their published descriptions if
// they have any, else only their number. An item's id is the number in its name if all names are
// numbers, else its place in the file. With `of`, item i is items' item of[i]; all of them decide
// still which words and genres are rare or common.
model::transitions::PublicItems ItemTexts(
    const event::ItemCatalogue& items, std::optional<std::span<const uint32_t>> of = std::nullopt);

}  // namespace tacit::wiring
