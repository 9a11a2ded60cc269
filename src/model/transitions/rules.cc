#include "model/transitions/rules.h"

#include <algorithm>
#include <cmath>

namespace tacit::model::transitions {

double PopularitySpread(std::span<const float> sums, double deviation) {
  double mean = 0, square = 0;
  for (const float sum : sums) mean += sum / static_cast<double>(sums.size());
  if (!(mean > 0)) return 0;
  for (const float sum : sums)
    square += (sum - mean) * (sum - mean) / static_cast<double>(sums.size());
  return std::sqrt(std::max(0.0, square - deviation * deviation)) / mean;
}

// Evidence (tests/bench/history/2026-11.md, "rules of the shaped counts" and "counts by rules 5"):
// NDCG@10 of the items before the last, on five logs: MovieLens-1M, Amazon Beauty, ml-latest-small,
// and two that `tacit generate interactions` made (1,000 and 18,640 items).

// An item's popularity stands out of its noise as the signal for each item does. The best share
// was .25 at a signal of 5.3 and 22 an item (MovieLens-1M, epsilon 1 and 5), .33 to .45 at 5
// (Beauty, 5), .45 at 1.2 (Beauty, 1), .6 to .8 at .4 (Beauty, .3), .3 to .45 at .8 and .45 to .85
// at .2 (ml-latest-small, 5 and 1), and any at .2 to 2 on the generated logs. The cube root of 8
// over the signal passes through all of these. The largest share leaves pairs enough of mu for
// their noise to stay on the grid.
//
// The difference between items must stand out, not an item's own count. MovieLens-1M and
// Beauty differ by 1.3 to 1.6 of the mean, and the generated log of 1,000 items by .6: at epsilon
// .1 (a signal of .85 an item) it had .9 with a share of .5 and 1.2 to 1.3 with .95, where
// popularity alone has 1.7 and nothing else stands out. At epsilon 1 and 5 that changes nothing on
// any log.
double PopularityShareAt(const Options& options, double signal, double spread, uint32_t items,
                         bool described) {
  signal *= std::min(1.0, spread / options.share_spread);
  const double share = options.popularity_share, full = options.share_signal * items;
  if (signal >= full) return share;
  // Without any signal the quotient is infinite, and the largest share applies.
  const double most = described
                          ? std::min(options.popularity_share_most, options.described_share_most)
                          : options.popularity_share_most;
  return std::min(std::max(share, most), share * std::pow(full / signal, options.share_power));
}

// The other tables say of hundreds of buckets what cells say of millions: where no cell stands out
// of its noise, they do. With .08 of mu at any signal the described log of 18,640 items had
// .2, 1.1, 4.8 and 4.9 at epsilon .2, .3, .6 and 1, that of 1,000 items 1.3, 2.2 and 6.0 at .1, .3
// and 1, and MovieLens-1M 2.4, 4.5 and 7.5; with .28 where the signal is small they
// had 4.4, 4.5, 4.8 and 7.6; 1.8, 4.8 and 9.0; 3.1, 5.2 and 7.5. Less than .28 is worth less on all
// but MovieLens-1M, and .35 no more. A root of the signal leads back to .08 where cells stand out:
// at epsilon 5 all three gain .1 to 1.1 by it, and a signal of 750e3 in place of 225e3 costs
// MovieLens-1M .2 there.
//
// The table of ranks says how often what ranks so is followed by what ranks so, and is 1 in every
// bucket where people have no order: with noise alone it puts a dozen groups of items into an order
// of its own, above that of popularity. Beauty at epsilon .1 (a signal of .12 an item) had .44 with
// a whole share, .52 with none and with this; .3 (.4 an item) .88 and .89; the described log of
// 18,640 items .31 and .38 at .17 an item, 1.92 and 1.80 at .35. Only the first of these is outside
// of its noise; with .5 for .4 the last begins to be lost.
double TableShareAt(const Options& options, Buckets::Table table, double signal, uint32_t items) {
  const double share = options.table_share, full = options.ranks_signal * items;
  if (table != Buckets::kRanks) {
    if (signal >= options.tables_signal) return share;
    return std::min(std::max(share, options.tables_share_most),
                    share * std::pow(options.tables_signal / signal, options.tables_power));
  }
  if (signal >= full) return share;
  return std::max(std::min(share, options.ranks_share_least),
                  share * std::pow(signal / full, options.ranks_power));
}

// The more a cell stands out, the more of them are worth their noise: the power 1.4 of the signal
// is within .1 of the best that a factor of .4 to 3 in the signal gives, at epsilon 1 and 5 on all
// but the generated logs. There 1,000 items had too many cells and 18,640 too few; the fourth root
// of the number of items is between what both ask for and what changes nothing elsewhere.
double CellsAt(const Options& options, double signal, uint32_t items) {
  const double of_signal =
      options.cells_at_signal * std::pow(signal / options.signal_unit, options.cells_power);
  return of_signal * std::pow(items / options.items_unit, options.items_power);
}

// The best decay depends on what people do and not on how much of it there is: it is .7 for
// MovieLens-1M, .5 and less for generated logs, .8 for Beauty. A power of the age is near the best
// of each: what came last counts more than by .7, and what came long before is not forgotten.
std::vector<float> RecentWeights(const Options& options) {
  std::vector<float> weights;
  weights.reserve(options.recent_items);
  for (uint32_t age = 0; age < options.recent_items; ++age)
    weights.push_back(
        static_cast<float>(std::pow(1 + age / options.recent_age, -options.recent_power)));
  return weights;
}

}  // namespace tacit::model::transitions
