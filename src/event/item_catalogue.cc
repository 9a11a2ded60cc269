#include "event/item_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/files/byte_order_mark.h"
#include "base/files/regular_file.h"
#include "base/text.h"
#include "event/run_codec.h"

namespace tacit::event {
namespace {

constexpr size_t kBytesMost = std::numeric_limits<uint32_t>::max();
constexpr size_t kLineBytesMost = std::numeric_limits<uint16_t>::max();
constexpr std::string_view kSeparator = "::";
constexpr uint32_t kFingerprintFormat = 1;

uint64_t HashOf(std::string_view name) { return BucketHash(name, 0); }
uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

Status Bad(std::string what) { return Fail(ErrorCode::kInvalidArgument, std::move(what)); }

bool IsControl(char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7f; }

// Refuses ids that no record would contain: they are mistakes in the file.
Status CheckId(std::string_view id) {
  if (id.empty()) return Bad("an item without an id");
  if (std::ranges::any_of(id, IsControl))
    return Bad(fmt::format("id {}: has control characters", Quoted(id)));
  if (id.front() == ' ' || id.back() == ' ')
    return Bad(fmt::format("id {}: begins or ends with a blank", Quoted(id)));
  if (!IsUtf8(id)) return Bad(fmt::format("id {}: is not UTF-8", Quoted(id)));
  return {};
}

}  // namespace

Result<ItemCatalogue> ItemCatalogue::Read(const std::string& path) {
  TACIT_ASSIGN(std::string bytes, ReadRegularFile(path, kBytesMost));
  return Parse(std::move(bytes), path);
}

Result<ItemCatalogue> ItemCatalogue::Parse(std::string bytes, std::string_view name) {
  if (bytes.size() > kBytesMost)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: is longer than {} bytes", name, kBytesMost));
  ItemCatalogue catalogue;
  catalogue.bytes_ = std::move(bytes);
  catalogue.bytes_.shrink_to_fit();
  std::string_view rest = catalogue.bytes_;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  for (uint64_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    Status appended = catalogue.Append(line);
    if (!appended)
      return Fail(std::move(appended.error()).Context(fmt::format("{}:{}", name, number)));
  }
  if (catalogue.items() == 0)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{}: no item is in it", name));
  catalogue.Seal();
  return catalogue;
}

ItemCatalogue ItemCatalogue::First(uint32_t count) const {
  TACIT_CHECK(count > 0 && count <= items());
  if (count == items()) return *this;
  auto first = Parse(bytes_.substr(0, lines_[count].begin), "the first items");
  TACIT_CHECK(first && first->items() == count, "lines that were read once");
  return *std::move(first);
}

ItemCatalogue ItemCatalogue::Of(std::span<const uint32_t> chosen) const {
  std::string lines;
  for (const uint32_t item : chosen) {
    TACIT_CHECK(item < items());
    const std::string_view rest = std::string_view(bytes_).substr(lines_[item].begin);
    lines += rest.substr(0, rest.find_first_of("\r\n"));
    lines += '\n';
  }
  auto catalogue = Parse(std::move(lines), "the chosen items");
  TACIT_CHECK(catalogue && catalogue->items() == chosen.size(), "lines that were read once");
  return *std::move(catalogue);
}

// REQUIRES that `text` is a view of bytes_.
Status ItemCatalogue::Append(std::string_view text) {
  if (text.size() > kLineBytesMost)
    return Bad(fmt::format("a line of more than {} bytes", kLineBytesMost));
  if (items() == kItemsMost) return Bad(fmt::format("more than {} items", kItemsMost));
  const auto begin = static_cast<uint32_t>(text.data() - bytes_.data());
  const size_t first = text.find(kSeparator), last = text.rfind(kSeparator);
  Line line{.begin = begin, .id = static_cast<uint16_t>(std::min(first, text.size()))};
  if (first != text.npos) {
    if (last < first + kSeparator.size())
      return Bad("neither `id` nor `id::title::genre|genre`: fewer than three fields");
    line.title = static_cast<uint16_t>(last - first - kSeparator.size());
    line.genres = static_cast<uint16_t>(text.size() - last - kSeparator.size());
    described_ = true;
  }
  const std::string_view id = text.substr(0, line.id);
  TACIT_RETURN_IF_ERROR(CheckId(id));
  const uint64_t hash = HashOf(id);
  Slot& slot = slots_[SlotOf(id, hash)];
  if (slot.item != kNoItem)
    return Bad(fmt::format("id {}: is there twice, first as item {}", Quoted(id), slot.item + 1));
  slot = {.tag = TagOf(hash), .item = items()};
  lines_.push_back(line);
  if (slots_.size() < 2 * lines_.size()) Grow();
  return {};
}

size_t ItemCatalogue::SlotOf(std::string_view name, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].item != kNoItem &&
         (slots_[at].tag != TagOf(hash) || Name(slots_[at].item) != name))
    at = (at + 1) & mask;
  return at;
}

uint32_t ItemCatalogue::Find(std::string_view name) const {
  return slots_[SlotOf(name, HashOf(name))].item;
}

void ItemCatalogue::Grow() {
  slots_.assign(2 * slots_.size(), Slot{});
  for (uint32_t item = 0; item < items(); ++item) {
    const uint64_t hash = HashOf(Name(item));
    slots_[SlotOf(Name(item), hash)] = {.tag = TagOf(hash), .item = item};
  }
}

// Forms the fingerprint, the SHA-256 of, in the notation of base/bytes.h:
//     catalogue := "tacit.items":string version:u32 items:u32 id:string*items
//     version   := 1
void ItemCatalogue::Seal() {
  lines_.shrink_to_fit();
  Sha256 digest;
  const auto number = [&](uint32_t value) {
    digest.Update({reinterpret_cast<const uint8_t*>(&value), sizeof(value)});
  };
  const auto text = [&](std::string_view value) {
    number(static_cast<uint32_t>(value.size()));
    digest.Update(value);
  };
  text("tacit.items");
  number(kFingerprintFormat);
  number(items());
  for (uint32_t item = 0; item < items(); ++item) text(Name(item));
  fingerprint_ = digest.Finish();
}

std::string_view ItemCatalogue::Title(uint32_t item) const {
  const Line& line = lines_[item];
  if (line.title == 0) return {};
  return Piece(item, line.id + kSeparator.size(), line.title);
}

std::vector<std::string_view> ItemCatalogue::Genres(uint32_t item) const {
  const Line& line = lines_[item];
  std::vector<std::string_view> genres;
  if (line.genres == 0) return genres;
  std::string_view rest = Piece(item, line.id + line.title + 2 * kSeparator.size(), line.genres);
  while (!rest.empty()) {
    const std::string_view genre = rest.substr(0, rest.find('|'));
    if (!genre.empty()) genres.push_back(genre);
    rest.remove_prefix(std::min(rest.size(), genre.size() + 1));
  }
  return genres;
}

size_t ItemCatalogue::memory_bytes() const {
  return bytes_.capacity() + lines_.capacity() * sizeof(Line) + slots_.capacity() * sizeof(Slot);
}

}  // namespace tacit::event
