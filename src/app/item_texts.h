#pragma once

#include "event/item_catalogue.h"
#include "model/transitions/catalogue.h"

namespace tacit::app {

// The public items as the count model compares them: what their publisher says of them, where he
// says anything, or how many they are. An item's id is the number it is called by where all are
// called by numbers, and else its place in the file.
model::transitions::Catalogue ItemTexts(const event::ItemCatalogue& items);

}  // namespace tacit::app
