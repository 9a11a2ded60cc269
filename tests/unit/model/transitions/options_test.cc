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
      [](Options& o) { o.rules = 1; },
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
  EXPECT_EQ(sizeof(Options), 384u);
}

// Stores of earlier programs have these words.
TEST(Options, EarlierRulesHaveTheWordsOfBefore) {
  Options options;
  options.forget = 0.9, options.cells_most = 99;
  EXPECT_EQ(options.WithRules(1).Text(),
            "history 600 10 0.8 shares 0.25 0.08 [0.34, 0.33, 0.33] popularity 1 0.3 prior 12 2 "
            "0.05 30 1.8 cells 0.3 0.4 [1.3, 0.25, 0.06666666666666667] 1000000 75000 1.4 99 "
            "scores 0.25 20 0.7 0.8 0.4 0.3 dense 33554432 forget 0.9 stream 20000 0.3 0.75");
  EXPECT_EQ(
      options.WithRules(2).Text(),
      "rules 2 history 600 10 0.8 shares 0.25 0.08 [0.34, 0.33, 0.33] popularity 1 0.3 prior "
      "12 2 0.05 30 1.8 cells 0.3 0.4 [1.3, 0.25, 0.06666666666666667] 1000000 75000 1.4 3416 "
      "0.25 99 scores 0.25 20 2 1.5 0.7 0.8 0.4 0.3 dense 33554432 forget 0.9 stream 8 "
      "0.3333333333333333 0.95");
  EXPECT_EQ(
      options.WithRules(3).Text(),
      "rules 3 history 600 10 0.8 shares 0.25 0.08 [0.34, 0.33, 0.33] popularity 1 0.3 prior "
      "12 2 0.05 30 1.8 cells 0.3 0.4 [1.3, 0.25, 0.06666666666666667] 1000000 75000 1.4 3416 "
      "0.25 99 scores 0.1 20 2 1.5 0.7 0.8 0.4 0.3 dense 33554432 forget 0.9 stream 8 "
      "0.3333333333333333 0.95 ranks 0.4 2 0.0008");
  EXPECT_EQ(
      options.WithRules(4).Text(),
      "rules 4 history 600 10 0.8 shares 0.25 0.08 [0.34, 0.33, 0.33] popularity 1 0.3 prior "
      "12 2 0.05 30 1.8 cells 0.3 0.4 [1.3, 0.25, 0.06666666666666667] 1000000 75000 1.4 3416 "
      "0.25 99 scores 0.1 20 2 1.5 0.7 0.8 0.4 0.3 dense 33554432 forget 0.9 stream 8 "
      "0.3333333333333333 0.95 ranks 0.4 2 0.0008 spread 3 kin 64 16777216");
  EXPECT_TRUE(options.Text().starts_with("rules 5 history 600 "));
  for (const uint32_t from : {1u, 2u, 3u, 4u, 5u})
    for (const uint32_t to : {1u, 2u, 3u, 4u, 5u})
      EXPECT_EQ(options.WithRules(from).WithRules(to).Text(), options.WithRules(to).Text());
}

TEST(Options, TheWordsSayTheRules) {
  const Options options;
  EXPECT_EQ(RulesOf(options.WithRules(1).Text()), 1u);
  EXPECT_EQ(RulesOf(options.WithRules(2).Text()), 2u);
  EXPECT_EQ(RulesOf(options.WithRules(3).Text()), 3u);
  EXPECT_EQ(RulesOf(options.WithRules(4).Text()), 4u);
  EXPECT_EQ(RulesOf(options.Text()), 5u);
  for (const char* number : {"6", "1", "0", "", "2x", "-2", "99999999999"}) {
    const auto rules = RulesOf(std::string("rules ") + number + " history 600");
    ASSERT_FALSE(rules) << number;
    EXPECT_EQ(rules.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(rules.error().message.rfind(std::string("rules '") + number + "'", 0), 0u)
        << rules.error().message;
  }
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
  EXPECT_EQ(options.WithRules(3).KinListed(7), 0u);
}

}  // namespace
}  // namespace tacit::model::transitions
