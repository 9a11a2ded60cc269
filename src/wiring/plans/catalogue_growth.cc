// The form that a store notes of a model of the next item. The notation is base/bytes.h's.
//     form := "tacit.items_form":string version:u32 items:u32 hash:u64*items
//     version := 1
// `hash` is XXH64 of an item's id, in the order of the catalogue. The model's fingerprint, which
// has all ids, shows whether the items that were found by it are the right ones.
#include "wiring/plans/catalogue_growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/text.h"

namespace tacit::wiring {
namespace {

constexpr std::string_view kItemsFormName = "tacit.items_form";
constexpr uint32_t kItemsFormVersion = 1;

// The item of each id's hash.
std::unordered_map<uint64_t, uint32_t> ItemsByHash(const event::ItemCatalogue& items) {
  std::unordered_map<uint64_t, uint32_t> by_hash(items.items());
  for (uint32_t item = 0; item < items.items(); ++item)
    by_hash.emplace(BucketHash(items.Name(item), 0), item);
  return by_hash;
}

// The items that there were by their hashes.
Result<CatalogueBefore> FindByIds(std::span<const uint64_t> hashes,
                                  const event::ItemCatalogue& now) {
  const auto by_hash = ItemsByHash(now);
  std::vector<uint32_t> places;
  for (const uint64_t hash : hashes)
    if (const auto found = by_hash.find(hash); found != by_hash.end())
      places.push_back(found->second);
  if (places.size() < hashes.size())
    return Fail(
        ErrorCode::kRefused,
        fmt::format("{} of the {} that the catalogue had {} not in it any more: histories and "
                    "what was learnt hold them by their numbers, so that none may be taken "
                    "out; put them back, anywhere in the file, or train it under another id, "
                    "at the whole price of what it has learnt",
                    WithThousands(hashes.size() - places.size()), Counted(hashes.size(), "item"),
                    hashes.size() - places.size() == 1 ? "is" : "are"));
  std::vector<uint8_t> taken(now.items());
  for (const uint32_t place : places)
    if (std::exchange(taken[place], 1) != 0)
      return Fail(
          ErrorCode::kRefused,
          fmt::format("two items of before have the hash of item '{}' and cannot be told apart: "
                      "train it under another id",
                      now.Name(place)));
  return CatalogueBefore{.catalogue = now.Of(places), .places = std::move(places)};
}

}  // namespace

bool CatalogueBefore::InOrder() const {
  for (uint32_t item = 0; item < places.size(); ++item)
    if (places[item] != item) return false;
  return true;
}

std::string ItemsForm(const event::ItemCatalogue& items) {
  ByteWriter writer;
  writer.PutString(kItemsFormName).Put(kItemsFormVersion).Put(items.items());
  for (uint32_t item = 0; item < items.items(); ++item) writer.Put(BucketHash(items.Name(item), 0));
  return std::move(writer).Take();
}

Result<CatalogueBefore> FindCatalogueBefore(const store::StoredModel& stored,
                                            const event::ItemCatalogue& now) {
  ByteReader reader(stored.form);
  const std::string_view name = reader.GetString();
  const auto version = reader.Get<uint32_t>(), items = reader.Get<uint32_t>();
  const auto other = [] {
    return Fail(ErrorCode::kRefused, "it was no model of the next item, or of another version");
  };
  if (!reader.ok() || name != kItemsFormName || items == 0) return other();
  if (version != kItemsFormVersion || reader.remaining() != items * sizeof(uint64_t))
    return other();
  std::vector<uint64_t> hashes(items);
  for (uint64_t& hash : hashes) hash = reader.Get<uint64_t>();
  return FindByIds(hashes, now);
}

Status CheckOnlyItemsDiffer(const store::StoredModel& stored, const Digest& fingerprint_before) {
  if (stored.fingerprint == fingerprint_before) return {};
  return Fail(ErrorCode::kRefused,
              "besides items, the model's settings are others: train it under another id, at the "
              "whole price of what it has learnt");
}

store::GrownModel WithItems(const CatalogueBefore& before, const event::ItemCatalogue& now) {
  store::GrownModel grown;
  const uint32_t more = now.items() - before.items();
  const bool in_order = before.InOrder();
  if (more > 0)
    grown.gained.push_back(fmt::format(
        "{} of the catalogue {} new, {} the {} that there were; nothing is known of them yet",
        Counted(more, "item"), more == 1 ? "is" : "are", in_order ? "after" : "among",
        WithThousands(before.items())));
  if (!in_order) {
    grown.gained.push_back(
        fmt::format("the {} that there were have other places in the catalogue, and keep all that "
                    "is known of them",
                    Counted(before.items(), "item")));
    grown.items = before.places;
  }
  return grown;
}

}  // namespace tacit::wiring
