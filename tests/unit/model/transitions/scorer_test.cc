// Tests scores without a table of all pairs, against the words of scorer.h in double: a catalogue
// with descriptions, factors fitted to made-up tables, and some cells measured.
#include "model/transitions/scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <random>

#include "world.h"

namespace tacit::model::transitions {
namespace {

class ScorerTest : public testing::Test {
 protected:
  static constexpr uint32_t kItems = 90;

  explicit ScorerTest() {
    sparse_.dense_cells_most = 0;
    sparse_.kin_for_each = 0;
    for (uint32_t i = 0; i < kItems; ++i)
      popularity_.push_back(static_cast<double>(1 + random_() % 40));
    Make(texts_, options_.rank_bins, 4);
  }
  void Make(const std::vector<ItemText>& texts, uint32_t rank_bins, uint64_t one_in) {
    items_ = static_cast<uint32_t>(texts.size());
    catalogue_ = std::make_unique<PublicItems>(texts);
    buckets_.emplace(*catalogue_, popularity_, rank_bins);
    std::vector<std::vector<float>> factors(buckets_->tables());
    for (size_t table = 0; table < factors.size(); ++table)
      for (uint32_t k = 0; k < buckets_->size(table); ++k)
        factors[table].push_back(static_cast<float>(1 + random_() % 30) / 10);
    prior_.emplace(*buckets_, popularity_, std::move(factors));
    Measured measured;
    measured.kappa = 0.01;
    for (uint32_t a = 0; a < items_; ++a) {
      for (uint32_t b = 0; b < items_; ++b) {
        if (a == b || random_() % one_in > 0) continue;
        measured.cells.column.push_back(b);
        measured.mean.push_back(static_cast<float>(random_() % 50));
        measured.precision.push_back(1.0f);
      }
      measured.cells.row_end.push_back(measured.cells.column.size());
    }
    estimate_.emplace(*prior_, std::move(measured), options_, workers_);
  }

  // The weight of a pair that was measured in neither direction: the prior without kinship.
  double MarkPrior(uint32_t a, uint32_t b, bool years) const {
    double product = estimate_->kappa() * popularity_[a] * popularity_[b];
    for (const size_t table : {Buckets::kRanks, Buckets::kYears, Buckets::kGenres})
      if (years || table != Buckets::kYears)
        product *= prior_->factors(table)[buckets_->Of(table, a, b)];
    return product;
  }
  double Pair(uint32_t a, uint32_t b, double reverse, bool years = true) const {
    if (a == b) return 0;
    const auto is_in = [&](const Cells& cells) {
      return cells.Find(a, b) != Cells::kNone || (reverse != 0 && cells.Find(b, a) != Cells::kNone);
    };
    const bool is_listed = is_in(estimate_->cells()) || (kin_.items() > 0 && is_in(kin_));
    const double both = is_listed ? double{estimate_->Of(a, b)} + reverse * estimate_->Of(b, a)
                                  : MarkPrior(a, b, years) + reverse * MarkPrior(b, a, years);
    return std::pow(both / (std::pow(popularity_[a], options_.score_from) *
                            std::pow(popularity_[b], options_.score_to)),
                    options_.score_power);
  }
  double Naive(const std::vector<uint32_t>& history, uint32_t b) const {
    double sum = 0;
    for (size_t age = 0; age < std::min<size_t>(options_.recent_items, history.size()); ++age)
      sum += std::pow(1 + static_cast<double>(age) / options_.recent_age, -options_.recent_power) *
             Pair(history[history.size() - 1 - age], b, options_.reverse_weight);
    return sum;
  }
  std::vector<uint32_t> SomeHistory(size_t length) {
    std::vector<uint32_t> history(length);
    for (uint32_t& item : history) item = static_cast<uint32_t>(random_() % items_);
    return history;
  }

  std::mt19937_64 random_{17};
  const Options options_;
  Options sparse_;
  WorkerPool workers_{{.workers = 2}};
  const std::vector<ItemText> texts_ = SomeTexts(kItems, 3);
  std::vector<double> popularity_;
  uint32_t items_ = 0;
  std::unique_ptr<PublicItems> catalogue_;
  std::optional<Buckets> buckets_;
  std::optional<Prior> prior_;
  std::optional<Estimate> estimate_;
  Cells kin_;  // cells that are listed for their kinship; if empty, none are
};

TEST_F(ScorerTest, WithoutATableUnmeasuredPairsHaveTheirGroupsPrior) {
  const Scorer scorer(*estimate_, sparse_, workers_);
  ASSERT_TRUE(scorer.table().empty());
  ASSERT_GT(scorer.groups(), 10u);
  for (const size_t length : {1, 2, 7, 20, 45}) {
    const auto history = SomeHistory(length);
    std::vector<float> scores(kItems);
    scorer.Score(history, scores);
    for (uint32_t b = 0; b < kItems; ++b) {
      const double expected = Naive(history, b);
      ASSERT_NEAR(scores[b], expected, 1e-4 * expected + 1e-5) << b << " after " << length;
    }
  }
}

// The likeliest pairs by all that is known of them, each with its own kinship, measured or not.
TEST_F(ScorerTest, LikelyKinAreListed) {
  constexpr uint64_t kForEach = 5;
  std::vector<std::pair<double, std::pair<uint32_t, uint32_t>>> pairs;
  for (uint32_t a = 0; a < kItems; ++a)
    for (uint32_t b = 0; b < kItems; ++b)
      if (a != b)
        pairs.push_back(
            {-double{prior_->Of(a, b)} / (std::pow(popularity_[a], options_.score_from) *
                                          std::pow(popularity_[b], options_.score_to)),
             {a, b}});
  std::ranges::sort(pairs);
  std::vector<std::pair<uint32_t, uint32_t>> likely;
  for (size_t i = 0; i < kForEach * kItems; ++i) likely.push_back(pairs[i].second);
  std::ranges::sort(likely);
  kin_.row_end.assign(kItems, 0);
  for (const auto& [a, b] : likely) {
    kin_.column.push_back(b);
    for (uint32_t item = a; item < kItems; ++item) ++kin_.row_end[item];
  }
  Options options = sparse_;
  options.kin_for_each = kForEach;
  const Scorer with(*estimate_, options, workers_), without(*estimate_, sparse_, workers_);
  size_t moved = 0;
  for (uint32_t a = 0; a < kItems; ++a) {
    const std::vector<uint32_t> history = {a};
    std::vector<float> scores(kItems), groups(kItems);
    with.Score(history, scores);
    without.Score(history, groups);
    for (uint32_t b = 0; b < kItems; ++b) {
      const double expected = Pair(a, b, options_.reverse_weight);
      ASSERT_NEAR(scores[b], expected, 1e-4 * expected + 1e-5) << b << " after " << a;
      if (std::abs(scores[b] - groups[b]) > 0.01 * groups[b]) ++moved;
    }
  }
  EXPECT_GT(moved, kItems) << "kinship makes a difference";
}

TEST_F(ScorerTest, PairsAreScoredOneByOneAsTogether) {
  Options forward = sparse_;
  forward.reverse_weight = 0;
  const Scorer both(*estimate_, sparse_, workers_), alone(*estimate_, forward, workers_);
  for (uint32_t a = 0; a < kItems; ++a) {
    std::vector<uint32_t> to;
    for (uint32_t b = 0; b < kItems; ++b)
      if (random_() % (1 + a % 5) == 0) to.push_back(b);
    std::vector<float> scores(to.size());
    both.ScorePairs(a, to, scores);
    for (size_t i = 0; i < to.size(); ++i)
      ASSERT_NEAR(scores[i], Pair(a, to[i], options_.reverse_weight), 1e-4) << a << " " << to[i];
    alone.ScorePairs(a, to, scores);
    for (size_t i = 0; i < to.size(); ++i)
      ASSERT_NEAR(scores[i], Pair(a, to[i], 0), 1e-4) << a << " " << to[i];
  }
}

// The best are those that sorting every score finds, in a scorer of either form; lists that are
// short beside the catalogue are gone over without it.
TEST_F(ScorerTest, TheTopIsWhatSortingFinds) {
  struct Case {
    uint32_t items;
    uint64_t one_in;  // cells that are measured
    Options options;
    uint64_t longest;
  };
  Options kin = sparse_;
  kin.kin_for_each = 3;
  for (const auto& [items, one_in, options, longest] :
       {Case{kItems, 4, options_, 30}, Case{kItems, 4, sparse_, 30}, Case{600, 100, sparse_, 5},
        Case{600, 10'000, sparse_, 30}, Case{600, 10'000, kin, 5}}) {
    while (popularity_.size() < items)
      popularity_.push_back(static_cast<double>(1 + random_() % 40));
    Make(SomeTexts(items, 3), options_.rank_bins, one_in);
    const Scorer scorer(*estimate_, options, workers_);
    TopMemory memory;
    std::vector<ScoredItem> top;
    for (int round = 0; round < 400; ++round) {
      const auto history = SomeHistory(1 + random_() % longest);
      const size_t most = 1 + random_() % (round % 4 == 0 ? 2 * items : 12);
      std::vector<uint8_t> left_out;
      if (round % 3 > 0) {
        const uint64_t kept_in = round % 3 == 1 ? 2 : 20;
        for (uint32_t i = 0; i < items; ++i) left_out.push_back(random_() % kept_in > 0);
      }
      std::vector<float> scores(items);
      scorer.Score(history, scores);
      std::vector<uint32_t> order;
      for (uint32_t i = 0; i < items; ++i)
        if (left_out.empty() || left_out[i] == 0) order.push_back(i);
      std::ranges::stable_sort(order, std::greater<>(), [&](uint32_t i) { return scores[i]; });
      order.resize(std::min(order.size(), most));
      scorer.Top(history, most, left_out, &memory, &top);
      ASSERT_EQ(top.size(), order.size());
      for (size_t i = 0; i < order.size(); ++i) {
        ASSERT_EQ(top[i].score, scores[order[i]]) << "place " << i << " of round " << round;
        ASSERT_TRUE(left_out.empty() || left_out[top[i].item] == 0);
        ASSERT_EQ(top[i].score, scores[top[i].item]);
      }
    }
    scorer.Top({}, 5, {}, &memory, &top);
    EXPECT_TRUE(top.empty()) << "no history";
    scorer.Top(SomeHistory(3), 5, std::vector<uint8_t>(items, 1), &memory, &top);
    EXPECT_TRUE(top.empty()) << "all are left out";
  }
}

// Sixty genres in thirteen bins of years and twelve of popularity: more groups than a table has
// room for.
TEST_F(ScorerTest, ManyKindsOfItemsAreToldApartWithoutTheirYears) {
  constexpr uint32_t kMany = 12'000;
  std::vector<ItemText> texts(kMany);
  popularity_.assign(kMany, 0);
  for (uint32_t i = 0; i < kMany; ++i) {
    texts[i].id = 1 + i;
    texts[i].title = "item (" + std::to_string(1950 + random_() % 60) + ")";
    texts[i].genres = {"genre " + std::to_string(random_() % 60)};
    popularity_[i] = static_cast<double>(1 + random_() % 40);
  }
  Make(texts, options_.rank_bins, 5000);
  Options options = options_;
  options.kin_for_each = 0;
  const Scorer scorer(*estimate_, options, workers_);
  ASSERT_TRUE(scorer.table().empty());
  EXPECT_LE(scorer.groups(), 12u * 60u);
  for (int round = 0; round < 200; ++round) {
    const auto pair = SomeHistory(2);
    float score = 0;
    scorer.ScorePairs(pair[0], std::span(pair).last(1), {&score, 1});
    const double expected = Pair(pair[0], pair[1], options_.reverse_weight, false);
    ASSERT_NEAR(score, expected, 1e-4 * expected);
  }
}

}  // namespace
}  // namespace tacit::model::transitions
