#include "model/transitions/options.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace tacit::model::transitions {
namespace {

// This test fails if a constant is added and left out of the words.
TEST(Options, EachOfThemIsInTheWords) {
  const Options usual;
  using Change = void (*)(Options&);
  const std::vector<Change> changes = {
      [](Options& o) { o.popularity_items = 7; },
      [](Options& o) { o.lags = 7; },
      [](Options& o) { o.lag_decay = 0.7; },
      [](Options& o) { o.popularity_share = 0.7; },
      [](Options& o) { o.table_share = 0.7; },
      [](Options& o) { o.stage_shares[2] = 0.7; },
      [](Options& o) { o.popularity_least = 7; },
      [](Options& o) { o.popularity_deviations = 7; },
      [](Options& o) { o.rank_bins = 7; },
      [](Options& o) { o.fitting_rounds = 7; },
      [](Options& o) { o.ratio_least = 0.7; },
      [](Options& o) { o.ratio_most = 7; },
      [](Options& o) { o.support_from = 0.7; },
      [](Options& o) { o.support_to = 0.7; },
      [](Options& o) { o.stage_cells[1] = 0.7; },
      [](Options& o) { o.cells_at_signal = 7; },
      [](Options& o) { o.signal_unit = 7; },
      [](Options& o) { o.cells_power = 7; },
      [](Options& o) { o.items_unit = 7; },
      [](Options& o) { o.items_power = 0.7; },
      [](Options& o) { o.cells_most = 7; },
      [](Options& o) { o.prior_log_deviation = 7; },
      [](Options& o) { o.reverse_weight = 7; },
      [](Options& o) { o.recent_items = 7; },
      [](Options& o) { o.recent_age = 7; },
      [](Options& o) { o.recent_power = 0.7; },
      [](Options& o) { o.recent_decay = 0.75; },
      [](Options& o) { o.score_from = 0.7; },
      [](Options& o) { o.score_to = 0.7; },
      [](Options& o) { o.score_power = 0.7; },
      [](Options& o) { o.dense_cells_most = 7; },
      [](Options& o) { o.forget = 0.7; },
      [](Options& o) { o.share_signal = 7; },
      [](Options& o) { o.share_power = 7; },
      [](Options& o) { o.popularity_share_most = 0.7; },
      [](Options& o) { o.ranks_signal = 0.7; },
      [](Options& o) { o.ranks_power = 7; },
      [](Options& o) { o.ranks_share_least = 0.7; },
      [](Options& o) { o.share_spread = 7; },
      [](Options& o) { o.tables_signal = 7; },
      [](Options& o) { o.tables_power = 7; },
      [](Options& o) { o.tables_share_most = 0.7; },
      [](Options& o) { o.described_share_most = 0.7; },
      [](Options& o) { o.kin_for_each = 7; },
      [](Options& o) { o.kin_most = 7; },
  };
  std::set<std::string> words = {usual.Text()};
  for (const Change change : changes) {
    Options other;
    change(other);
    EXPECT_TRUE(words.insert(other.Text()).second) << other.Text();
  }
  // Constants that the list above does not know would make this larger.
  EXPECT_EQ(sizeof(Options), 376u);
}

TEST(Options, NoMoreCellsThanPairsOfDifferentItems) {
  Options options;
  options.cells_most = 100;
  EXPECT_EQ(options.CellsMost(0), 0u);
  EXPECT_EQ(options.CellsMost(1), 0u);
  EXPECT_EQ(options.CellsMost(3), 6u);
  EXPECT_EQ(options.CellsMost(10), 90u);
  EXPECT_EQ(options.CellsMost(11), 100u);
  EXPECT_EQ(options.CellsMost(~uint32_t{0}), 100u);
}

TEST(Options, PairsForTheirKinshipAreBounded) {
  Options options;
  options.kin_for_each = 5, options.kin_most = 40, options.cells_most = 30;
  EXPECT_EQ(options.KinListed(0), 0u);
  EXPECT_EQ(options.KinListed(1), 0u);
  EXPECT_EQ(options.KinListed(3), 6u);   // no more pairs than there are
  EXPECT_EQ(options.KinListed(9), 30u);  // as many as cells
  options.cells_most = 100;
  EXPECT_EQ(options.KinListed(7), 35u);
  EXPECT_EQ(options.KinListed(9), 40u);
}

}  // namespace
}  // namespace tacit::model::transitions
