#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/item_catalogue.h"
#include "store/model_growth.h"

// Models of the next item whose catalogue grows (store/model_growth.h): items may be added anywhere
// in the file, and change places, because they are known by their ids. None may go: what was
// counted and learnt holds them by their numbers.
namespace tacit::wiring {

// Encodes the note that a store keeps of such a model (catalogue_growth.cc).
std::string ItemsForm(const event::ItemCatalogue& items);

// The catalogue of a stored model, found in the one of now.
struct CatalogueBefore {
  event::ItemCatalogue catalogue;
  std::vector<uint32_t> places = {};  // of each of its items in the one of now

  uint32_t items() const { return catalogue.items(); }
  // The new ones come last, and nothing has moved.
  bool InOrder() const;
};
// kRefused: an item has gone, or the stored model was none of the next item.
Result<CatalogueBefore> FindCatalogueBefore(const store::StoredModel& stored,
                                            const event::ItemCatalogue& now);

// kRefused unless the configured model, for that catalogue, is the stored one.
Status CheckOnlyItemsDiffer(const store::StoredModel& stored, const Digest& fingerprint_before);

// A model without tables, with the sentences for what it gained, and the items' new numbers where
// they have others.
store::GrownModel WithItems(const CatalogueBefore& before, const event::ItemCatalogue& now);

}  // namespace tacit::wiring
