#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stream/generator_parts.h"

namespace tacit::stream {

inline constexpr uint32_t kTaken = 16;  // items that an item leads on to

// The items of a generated stream, which are public, and how popular they are from day to day. They
// lie in clusters of about 25, each with genres and years of its own; an item leads on to kTaken
// others, half of them its cluster's, half of them the next cluster's, the first far more often
// than the last. One in five is not there on the first day. Everything follows from the seed.
// Immutable; thread-safe.
class InteractionWorld {
 public:
  struct Options {
    uint32_t days = 14;
    uint32_t items = 1000;
    uint64_t seed = 1;
  };
  // How popular items are on a day, a share of all; 0 for one that is not there. `shown` is the
  // same for what is shown and not taken: what appeals less than it is popular.
  struct Day {
    Day(const InteractionWorld& world, uint32_t day);

    std::vector<double> popular, shown;
    std::vector<double> of_cluster;  // sums of `popular`
    std::unique_ptr<AliasTable> popular_table, shown_table;
    std::vector<AliasTable> cluster_tables;  // place in the cluster
    // Per item, the share of each item it leads on to, 0 where that is not there; nothing where
    // none is.
    std::array<double, kTaken> Leading(const InteractionWorld& world, uint32_t item) const;
  };

  // REQUIRES days > 0 and items > 0.
  explicit InteractionWorld(const Options& options);

  uint32_t items() const { return options_.items; }
  uint32_t clusters() const { return static_cast<uint32_t>(members_.size()); }
  uint32_t cluster_of(uint32_t item) const { return items_[item].cluster; }
  uint32_t first_day(uint32_t item) const { return items_[item].first_day; }
  std::span<const uint32_t> members(uint32_t cluster) const { return members_[cluster]; }
  // The items that an item leads on to, the likeliest first; one may be there twice.
  std::array<uint32_t, kTaken> LeadsTo(uint32_t item) const;

  // What an item is called: 1, 2, ...
  static std::string Name(uint32_t item) { return std::to_string(item + 1); }
  std::string_view Genre(uint32_t item) const;  // the main one
  // A line `id::title (year)::genre|genre` for each item, as event::ItemCatalogue reads them.
  std::string Catalogue() const;

 private:
  struct Item {
    uint32_t cluster = 0, place = 0;  // in members_
    uint32_t first_day = 0;
    float popularity = 0;          // logarithm, on an average day
    float appeal = 0;              // how much rather it is taken than left, where it is shown
    float phase = 0, period = 10;  // of its ups and downs, in days
  };
  std::string Title(uint32_t item) const;

  const Options options_;
  std::vector<Item> items_;
  std::vector<std::vector<uint32_t>> members_;
};

}  // namespace tacit::stream
