#pragma once

#include "event/item_catalogue.h"
#include "model/transitions/public_items.h"

namespace tacit::wiring {

// The public items in the form that the count model compares: with their published descriptions if
// they have any, else only their number. An item's id is the number in its name if all names are
// numbers, else its place in the file.
model::transitions::PublicItems ItemTexts(const event::ItemCatalogue& items);

}  // namespace tacit::wiring
