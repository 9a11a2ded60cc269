#include "model/transitions/buckets.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace tacit::model::transitions {
namespace {

constexpr uint32_t kYearBins = 12;  // and one for items without a year

std::vector<uint32_t> ByPopularity(std::span<const double> popularity) {
  std::vector<uint32_t> order(popularity.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order,
                           [&](uint32_t a, uint32_t b) { return popularity[a] > popularity[b]; });
  return order;
}

}  // namespace

Buckets::Buckets(const PublicItems& catalogue, std::span<const double> popularity,
                 uint32_t rank_bins)
    : catalogue_(catalogue), item_bins_(catalogue.items()) {
  TACIT_CHECK(popularity.size() == catalogue.items() && rank_bins > 0);
  bins_[kRanks] = rank_bins;
  const double total = std::accumulate(popularity.begin(), popularity.end(), 0.0);
  double before = 0;
  for (uint32_t item : ByPopularity(popularity)) {
    const auto bin = static_cast<uint32_t>(before / total * rank_bins);
    item_bins_[item][kRanks] = std::min(bin, rank_bins - 1);
    before += popularity[item];
  }
  sizes_[kRanks] = rank_bins * rank_bins;
  if (!catalogue.described()) return;

  const std::span<const int16_t> years = catalogue.years();
  bins_[kYears] = kYearBins + 1;
  bins_[kGenres] = catalogue.first_genres();
  for (uint32_t item = 0; item < items(); ++item) {
    const ItemFeatures& features = catalogue.features(item);
    item_bins_[item][kGenres] = features.first_genre;
    if (features.year == 0) continue;
    // Items of one year share the bin of the year's first item.
    const auto rank = std::lower_bound(years.begin(), years.end(), features.year) - years.begin();
    item_bins_[item][kYears] =
        1 + static_cast<uint32_t>(static_cast<uint64_t>(rank) * kYearBins / years.size());
  }
  sizes_[kYears] = bins_[kYears] * bins_[kYears];
  sizes_[kGenres] = bins_[kGenres] * bins_[kGenres];
  sizes_[kKinship] = kYearSteps * kIdSteps * kOverlaps * 4;
}

uint32_t Buckets::Kinship(uint32_t a, uint32_t b) const {
  const ItemFeatures& x = catalogue_.features(a);
  const ItemFeatures& y = catalogue_.features(b);
  return KinshipBucket(
      {.years = x.year == 0 || y.year == 0 ? kYearSteps - 1 : YearStep(y.year - x.year),
       .ids = IdStep(x.id, y.id),
       .overlap = OverlapStep(x.genres, y.genres),
       .word = catalogue_.ShareRareWord(a, b) ? 1u : 0u,
       .same_genre = x.first_genre == y.first_genre ? 1u : 0u});
}

}  // namespace tacit::model::transitions
