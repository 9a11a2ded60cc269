#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stream/generator/generator_parts.h"

namespace tacit::cli {

inline constexpr uint32_t kTaken = 16;  // number of items that an item leads to

// The items of a generated stream, which are public, and their popularity from day to day. They lie
// in clusters of about 25, each with genres and years of its own. An item leads to kTaken others,
// half of them in its cluster, half in the next cluster, the first far more often than the last.
// One in five does not exist on the first day. The seed determines everything. Immutable;
// thread-safe.
class InteractionWorld {
 public:
  struct Options {
    uint32_t days = 14;
    uint32_t items = 1000;
    uint64_t seed = 1;
  };
  // The popularity of items on a day, as a share of all; 0 for an item that does not exist yet.
  // `shown` is the same for items shown and not taken, which are items with less appeal than
  // popularity.
  struct Day {
    Day(const InteractionWorld& world, uint32_t day);

    std::vector<double> popular, shown;
    std::vector<double> of_cluster;  // sums of `popular`
    std::unique_ptr<stream::AliasTable> popular_table, shown_table;
    std::vector<stream::AliasTable> cluster_tables;  // draws a place in the cluster
    // Returns, for each item that `item` leads to, its share, 0 if it does not exist that day; all
    // shares are 0 if none exists.
    std::array<double, kTaken> Leading(const InteractionWorld& world, uint32_t item) const;
  };

  // REQUIRES days > 0 and items > 0.
  explicit InteractionWorld(const Options& options);

  uint32_t items() const { return options_.items; }
  uint32_t clusters() const { return static_cast<uint32_t>(members_.size()); }
  uint32_t cluster_of(uint32_t item) const { return items_[item].cluster; }
  uint32_t first_day(uint32_t item) const { return items_[item].first_day; }
  std::span<const uint32_t> members(uint32_t cluster) const { return members_[cluster]; }
  // Returns the items that an item leads to, the likeliest first; one may occur twice.
  std::array<uint32_t, kTaken> LeadsTo(uint32_t item) const;

  // The name of an item: 1, 2, ...
  static std::string Name(uint32_t item) { return std::to_string(item + 1); }
  std::string_view Genre(uint32_t item) const;  // the main one
  // Returns a line `id::title (year)::genre|genre` for each item, as event::ItemCatalogue reads
  // them.
  std::string CatalogueText() const;

 private:
  struct Item {
    uint32_t cluster = 0, place = 0;  // in members_
    uint32_t first_day = 0;
    float popularity = 0;          // logarithm, on an average day
    float appeal = 0;              // how much more likely it is taken than left, if shown
    float phase = 0, period = 10;  // of its ups and downs, in days
  };
  std::string Title(uint32_t item) const;

  const Options options_;
  std::vector<Item> items_;
  std::vector<std::vector<uint32_t>> members_;
};

}  // namespace tacit::cli
