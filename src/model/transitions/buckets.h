#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/transitions/public_items.h"

namespace tacit::model::transitions {

// The tables that ordered pairs (a, b) are counted in, and the bucket of each that a pair falls
// into.
//   kRanks    popularity of a x popularity of b, by bins of equal released popularity
//   kYears    year of a x year of b, by bins of equally many items
//   kGenres   main genre of a x main genre of b
//   kKinship  years between x distance of ids and its sign x overlap of genres (Jaccard) x same
//             main genre x a rare title word in common
// Without descriptions there is kRanks alone. The catalogue and the popularity must outlive it.
class Buckets {
 public:
  enum Table : size_t { kRanks, kYears, kGenres, kKinship };
  static constexpr size_t kTablesMost = 4;
  using Bins = std::array<uint32_t, kTablesMost - 1>;

  // `popularity` as released, positive.
  Buckets(const PublicItems& catalogue, std::span<const double> popularity, uint32_t rank_bins);

  uint32_t items() const { return static_cast<uint32_t>(item_bins_.size()); }
  size_t tables() const { return catalogue_.described() ? kTablesMost : 1; }
  uint32_t size(size_t table) const { return sizes_[table]; }
  uint32_t Of(size_t table, uint32_t a, uint32_t b) const {
    return table == kKinship ? Kinship(a, b) : BinBucket(table, item_bins_[a], item_bins_[b]);
  }

  // The item's bin in each table but kKinship.
  const Bins& bins(uint32_t item) const { return item_bins_[item]; }
  uint32_t BinBucket(size_t table, const Bins& a, const Bins& b) const {
    return a[table] * bins_[table] + b[table];
  }
  // Kinship depends on these steps of a pair, each from 0: of the years from a to b, of their ids,
  // of their genres' overlap, whether they share a rare word, and whether the main genre is the
  // same. Steps of years rise with the years between, and the last is that of a missing year.
  struct Kin {
    uint32_t years = 0, ids = 0, overlap = 0, word = 0, same_genre = 0;
  };
  static constexpr uint32_t kYearSteps = 12, kIdSteps = 20, kOverlaps = 4;
  // Ids this far apart, or farther, are in the last step of their direction.
  static constexpr uint64_t kFarIds = 512;
  static_assert(uint64_t{1} << (kIdSteps / 2 - 1) == kFarIds);
  // Returns how far any two ids are apart.
  static uint64_t IdDistance(int64_t a, int64_t b) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return b > a ? y - x : x - y;
  }
  // Returns the step of these ids: 1 and less, 2 or 3, 4 to 7, ..., kFarIds and more apart;
  // downwards first, then upwards.
  static uint32_t IdStep(int64_t a, int64_t b) {
    const auto width = static_cast<uint32_t>(std::bit_width(IdDistance(a, b)));
    return (b > a ? kIdSteps / 2 : 0) + std::clamp(width, 1u, kIdSteps / 2) - 1;
  }
  static bool AreNear(int64_t a, int64_t b) { return IdDistance(a, b) < kFarIds; }
  static bool AreFar(uint32_t ids) { return ids % (kIdSteps / 2) == kIdSteps / 2 - 1; }
  static uint32_t KinshipBucket(const Kin& kin) {
    return (((kin.years * kIdSteps + kin.ids) * kOverlaps + kin.overlap) * 2 + kin.word) * 2 +
           kin.same_genre;
  }
  // Returns the step of two known years this many apart: none, 1 or 2, to 5, to 10, to 20 and more,
  // to either side.
  static uint32_t YearStep(int years) {
    const int size = years < 0 ? -years : years;
    const int step = (size > 0) + (size > 2) + (size > 5) + (size > 10) + (size > 20);
    return static_cast<uint32_t>(years < 0 ? 5 - step : 5 + step);
  }
  // Returns the step of the overlap of two sets: nothing, less than half, more, all.
  static uint32_t OverlapStep(uint64_t genres, uint64_t other_genres) {
    const int common = std::popcount(genres & other_genres),
              all = std::popcount(genres | other_genres);
    return common == 0 ? 0 : 1u + (2 * common >= all) + (common == all);
  }

  const PublicItems& catalogue() const { return catalogue_; }

 private:
  uint32_t Kinship(uint32_t a, uint32_t b) const;

  const PublicItems& catalogue_;
  std::array<uint32_t, kTablesMost - 1> bins_ = {1, 1, 1};
  std::array<uint32_t, kTablesMost> sizes_ = {};
  std::vector<Bins> item_bins_;
};

}  // namespace tacit::model::transitions
