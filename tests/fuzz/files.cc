// Fuzzes files that somebody else writes or may change: callers, items and their descriptions, the
// witness, anchors.
#include <vector>

#include "event/item_catalogue.h"
#include "fuzz.h"
#include "http/caller_table.h"
#include "privacy/anchor.h"
#include "store/disk/seal.h"
#include "store/witness/witness_record.h"
#include "wiring/plans/item_texts.h"

namespace tacit {
namespace {

void ReadCallers(std::string_view text) {
  const auto table = http::CallerTable::Parse(text, "callers", {1, 2, 3});
  fuzz::DemandGoodError(table);
  if (!table) return;
  fuzz::Demand(table->size() <= http::CallerTable::kCallersMost, "callers are bounded");
  const auto again = http::CallerTable::Parse(text, "callers", {1, 2, 3}, &*table);
  fuzz::Demand(again && again->size() == table->size(), "callers can be read again");
}

void ReadItems(std::string_view text) {
  const auto items = event::ItemCatalogue::Parse(std::string(text), "items");
  fuzz::DemandGoodError(items);
  if (!items) return;
  for (uint32_t item = 0; item < items->items(); ++item)
    fuzz::Demand(items->Find(items->Name(item)) == item, "an item is found by its name");
  const auto texts = wiring::ItemTexts(*items);
  fuzz::Demand(texts.items() == items->items(), "each item has its features");
  for (uint32_t item = 0; texts.described() && item < texts.items(); ++item)
    for (const uint32_t word : texts.rare_words(item)) (void)texts.word_name(word);
}

// The checksum is set right, so that what lies behind it is reached.
void ReadWitness(std::string_view bytes) {
  const std::string sealed = store::Seal(bytes);
  const auto length = static_cast<uint32_t>(sealed.size());
  std::string copy(reinterpret_cast<const char*>(&length), sizeof(length));
  copy += sealed;
  const auto read = store::DecodeCopy(copy);
  if (!read) return;
  const auto again = store::DecodeCopy(store::EncodeCopy(*read));
  fuzz::Demand(again && again->write == read->write && again->record.seq == read->record.seq &&
                   again->record.learners.size() == read->record.learners.size(),
               "what was read can be written and read again");
}

void ReadAnchors(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    lines.push_back(text.substr(begin, text.find('\n', begin) - begin));
    begin += lines.back().size() + 1;
  }
  for (const std::string_view line : lines) {
    const auto anchor = privacy::Anchor::Decode(line);
    fuzz::DemandGoodError(anchor);
    if (!anchor) continue;
    fuzz::Demand(anchor->Line() == line, "an anchor has one form");
    (void)privacy::HasGoodSignature(*anchor);
  }
  const auto anchors = privacy::DecodeAnchors(lines);
  fuzz::DemandGoodError(anchors);
  if (anchors) fuzz::DemandGoodError(privacy::CheckAnchors(*anchors, {}));
}

}  // namespace
}  // namespace tacit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr void (*kReaders[])(std::string_view) = {tacit::ReadCallers, tacit::ReadItems,
                                                           tacit::ReadWitness, tacit::ReadAnchors};
  std::string_view bytes = tacit::fuzz::TextOf(data, size);
  const uint8_t choice = tacit::fuzz::TakeChoice(&bytes);
  kReaders[choice % std::size(kReaders)](bytes);
  return 0;
}
