#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "event/batch.h"

namespace tacit::event {

// The items that everybody may know: what may be recommended, and what a record's item is looked up
// in. Ids that were learnt from the stream would tell that somebody has met them, so the list comes
// from its publisher, as a file. Items are numbered in the file's order. A value, as large as the
// file and at most 44 bytes an item; thread-safe.
class ItemCatalogue {
 public:
  static constexpr uint32_t kItemsMost = 1u << 27;

  // A line `id` or `id::title::genre|genre` for each item; empty lines are passed over, and so is a
  // byte order mark. Ids are UTF-8 without control characters, no blanks at either end; titles may
  // be of any encoding. Fails, naming file and line, for a line of another form and for an id that
  // was there before; for a file without an item.
  static Result<ItemCatalogue> Read(const std::string& path);
  // The same of a file's bytes; `name` stands for it in messages.
  static Result<ItemCatalogue> Parse(std::string bytes, std::string_view name);

  uint32_t items() const { return static_cast<uint32_t>(lines_.size()); }
  std::string_view Name(uint32_t item) const { return Piece(item, 0, lines_[item].id); }
  // The item of this id, or kNoItem. Allocates nothing.
  uint32_t Find(std::string_view name) const;

  // Whether any item has more than an id.
  bool described() const { return described_; }
  // "" and none where the item is not described.
  std::string_view Title(uint32_t item) const;
  std::vector<std::string_view> Genres(uint32_t item) const;

  // SHA-256 of the ids in order; README.md has the encoding.
  const Digest& fingerprint() const { return fingerprint_; }
  size_t memory_bytes() const;

 private:
  // Where an item's line lies in the file, and its parts in the line, `::` between them.
  struct Line {
    uint32_t begin = 0;
    uint16_t id = 0, title = 0, genres = 0;  // bytes
  };
  // The table is open: an item stands where its hash says, or in the first free slot behind.
  struct Slot {
    uint32_t tag = 0;  // bits of the hash that say nothing of the place
    uint32_t item = kNoItem;
  };

  Status Append(std::string_view line);
  std::string_view Piece(uint32_t item, size_t from, size_t size) const {
    return std::string_view(bytes_).substr(lines_[item].begin + from, size);
  }
  // The slot of this id, or the free one where it would stand.
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
