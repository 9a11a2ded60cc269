#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "event/batch.h"

namespace tacit::event {

// The public list of items: only they may be recommended, and records' items are looked up in it.
// Ids learnt from the stream would reveal that some user has met them, so the list comes from its
// publisher, as a file. Items are numbered in the file's order. A value, as large as the file plus
// at most 44 bytes an item; thread-safe.
class ItemCatalogue {
 public:
  static constexpr uint32_t kItemsMost = 1u << 27;

  // Reads a file with a line `id` or `id::title::genre|genre` for each item; skips empty lines and
  // a byte order mark. Ids are UTF-8 without control characters and without blanks at either end;
  // titles may be of any encoding. Fails for a line of another form and for a repeated id, naming
  // file and line, and for a file without items.
  static Result<ItemCatalogue> Read(const std::string& path);
  // The same from a file's bytes; messages use `name` as the file's name.
  static Result<ItemCatalogue> Parse(std::string bytes, std::string_view name);

  // The catalogue of the first `count` items alone. REQUIRES at least one, and not more than there
  // are.
  ItemCatalogue First(uint32_t count) const;
  // The catalogue of these items, in this order. REQUIRES at least one, each at most once.
  ItemCatalogue Of(std::span<const uint32_t> items) const;

  uint32_t items() const { return static_cast<uint32_t>(lines_.size()); }
  std::string_view Name(uint32_t item) const { return Piece(item, 0, lines_[item].id); }
  // Returns the item with this id, or kNoItem. Allocates nothing.
  uint32_t Find(std::string_view name) const;

  // Returns true if any item has more than an id.
  bool described() const { return described_; }
  // Title and genres are empty for an item without a description.
  std::string_view Title(uint32_t item) const;
  std::vector<std::string_view> Genres(uint32_t item) const;

  // SHA-256 of the ids in order; item_catalogue.cc has the byte grammar.
  const Digest& fingerprint() const { return fingerprint_; }
  size_t memory_bytes() const;

 private:
  // The position of an item's line in the file, and the lengths of its parts, `::` between them.
  struct Line {
    uint32_t begin = 0;
    uint16_t id = 0, title = 0, genres = 0;  // bytes
  };
  // A slot of the open-addressing table: an item is at its hash's slot or at the first free slot
  // after it.
  struct Slot {
    uint32_t tag = 0;  // bits of the hash that its slot does not depend on
    uint32_t item = kNoItem;
  };

  Status Append(std::string_view line);
  std::string_view Piece(uint32_t item, size_t from, size_t size) const {
    return std::string_view(bytes_).substr(lines_[item].begin + from, size);
  }
  // Returns the slot of this id, or the free slot where it belongs.
  size_t SlotOf(std::string_view name, uint64_t hash) const;
  void Grow();
  void Seal();

  std::string bytes_;
  std::vector<Line> lines_;
  std::vector<Slot> slots_ = std::vector<Slot>(16);  // a power of two, at most half of them taken
  bool described_ = false;
  Digest fingerprint_{};
};

}  // namespace tacit::event
