#include "model/transitions/prior.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "model/transitions/cells.h"
#include "model/transitions/pairs.h"
#include "model/transitions/trust.h"
#include "world.h"

namespace tacit::model::transitions {
namespace {

// The prior by its definition: a dense matrix in float64.
std::vector<std::vector<double>> NaivePrior(const Buckets& buckets, std::vector<double> p,
                                            std::vector<ReleasedTable> tables, const Options& o) {
  const uint32_t items = buckets.items();
  std::vector<std::vector<double>> m(items, std::vector<double>(items));
  for (uint32_t a = 0; a < items; ++a)
    for (uint32_t b = 0; b < items; ++b) m[a][b] = a == b ? 0 : p[a] * p[b];
  for (uint32_t round = 0; round < o.fitting_rounds; ++round) {
    for (size_t t = tables.size(); t-- > 0;) {
      std::vector<double> sums(buckets.size(t));
      for (uint32_t a = 0; a < items; ++a)
        for (uint32_t b = 0; b < items; ++b)
          if (a != b) sums[buckets.Of(t, a, b)] += m[a][b];
      const double from = std::accumulate(sums.begin(), sums.end(), 0.0);
      const double to = std::accumulate(tables[t].sums.begin(), tables[t].sums.end(), 0.0);
      std::vector<double> expected = sums;
      for (double& e : expected) e *= to / from;
      const auto trusts = BucketTrusts(tables[t].sums, expected, tables[t].deviation);
      for (uint32_t a = 0; a < items; ++a)
        for (uint32_t b = 0; b < items; ++b) {
          if (a == b) continue;
          const uint32_t k = buckets.Of(t, a, b);
          const double e = sums[k] * to / from;
          const double ratio = std::clamp(tables[t].sums[k] / e, o.ratio_least, o.ratio_most);
          m[a][b] *= 1 + trusts[k] * (ratio - 1);
        }
    }
  }
  return m;
}

class PriorTest : public testing::Test {
 protected:
  static constexpr uint32_t kItems = 70;

  PriorTest() : catalogue_(SomeTexts(kItems, 3)), plain_(kItems), popularity_(MakePopularity()) {}

  static std::vector<double> MakePopularity() {
    std::vector<double> p;
    for (uint32_t i = 0; i < kItems; ++i) p.push_back(1 + 200.0 / (1 + (i * 29) % kItems));
    return p;
  }
  // A table as noisy counts may make it: some negative, some buckets empty.
  static std::vector<ReleasedTable> SomeTables(const Buckets& buckets, double deviation) {
    std::mt19937_64 random(11);
    const Histories histories = SomeHistories(kItems, 300, 40, 2);
    std::vector<ReleasedTable> tables;
    for (size_t t = 0; t < buckets.tables(); ++t) {
      std::vector<float> sums(buckets.size(t));
      for (size_t u = 0; u < histories.units(); ++u)
        ForPairs(histories.Of(u), 10, 0.8, [&](uint32_t a, uint32_t b, double w) {
          sums[buckets.Of(t, a, b)] += static_cast<float>(w);
        });
      std::normal_distribution<float> noise(0, static_cast<float>(std::max(deviation, 1e-9)));
      for (float& sum : sums) sum += noise(random);
      tables.push_back({std::move(sums), deviation});
    }
    return tables;
  }

  const PublicItems catalogue_, plain_;
  const std::vector<double> popularity_;
  const Options options_;
  WorkerPool workers_{{.workers = 2}};
};

TEST_F(PriorTest, IsTheDenseOneOfTheBook) {
  for (const auto& [described, deviation] : std::vector<std::pair<bool, double>>{
           {false, 0}, {false, 5}, {false, 60}, {true, 0}, {true, 5}, {true, 60}}) {
    const Buckets buckets(described ? catalogue_ : plain_, popularity_, 6);
    const auto tables = SomeTables(buckets, deviation);
    Prior prior(buckets, popularity_);
    prior.Fit(tables, options_, workers_);
    const auto naive = NaivePrior(buckets, popularity_, tables, options_);
    for (uint32_t a = 0; a < kItems; ++a)
      for (uint32_t b = 0; b < kItems; ++b)
        ASSERT_NEAR(prior.Of(a, b), naive[a][b], 2e-4 * naive[a][b]) << a << ' ' << b;
  }
}

TEST_F(PriorTest, WithoutTablesItIsAProduct) {
  const Buckets buckets(catalogue_, popularity_, 6);
  const Prior prior(buckets, popularity_);
  EXPECT_FLOAT_EQ(prior.Of(3, 9), static_cast<float>(popularity_[3] * popularity_[9]));
  EXPECT_EQ(prior.Of(4, 4), 0);
}

TEST_F(PriorTest, TablesDrownedByNoiseChangeNothing) {
  const Buckets buckets(plain_, popularity_, 6);
  Prior prior(buckets, popularity_);
  const std::vector<ReleasedTable> tables = {{std::vector<float>(36, -4.0f), 100}};
  prior.Fit(tables, options_, workers_);
  EXPECT_EQ(prior.Factor(1, 2), 1);
}

// Samples stand for cells that are too many to go over.
TEST_F(PriorTest, SampledSumsComeNear) {
  const Buckets buckets(catalogue_, popularity_, 6);
  const auto tables = SomeTables(buckets, 5);
  Prior all(buckets, popularity_), sampled(buckets, popularity_);
  all.Fit(tables, options_, workers_);
  Options options = options_;
  options.dense_cells_most = 0;
  sampled.Fit(tables, options, workers_);
  for (uint32_t a = 0; a < kItems; ++a)
    for (uint32_t b = 0; b < kItems; ++b)
      ASSERT_NEAR(sampled.Of(a, b), all.Of(a, b), 0.06 * all.Of(a, b)) << a << ' ' << b;
}

// Supports, against a sort of all cells; up to what floats leave open.
TEST_F(PriorTest, TheTopCellsAreThoseOfASortOfAll) {
  for (const bool described : {false, true}) {
    const Buckets buckets(described ? catalogue_ : plain_, popularity_, 6);
    Prior prior(buckets, popularity_);
    prior.Fit(SomeTables(buckets, 5), options_, workers_);
    struct Cell {
      double score;
      uint32_t a, b;
    };
    std::vector<Cell> cells;
    for (uint32_t a = 0; a < kItems; ++a)
      for (uint32_t b = 0; b < kItems; ++b)
        if (a != b)
          cells.push_back(
              {double{prior.Of(a, b)} / (std::pow(popularity_[a], options_.support_from) *
                                         std::pow(popularity_[b], options_.support_to)),
               a, b});
    std::ranges::sort(cells, std::greater<>(), &Cell::score);
    for (const size_t count : {size_t{1}, size_t{7}, size_t{500}, size_t{3000}, cells.size()}) {
      const Cells top = TopCells(prior, count, options_, workers_);
      ASSERT_EQ(top.size(), count);
      const double least = cells[count - 1].score;
      for (const Cell& cell : cells) {
        const bool in = top.Find(cell.a, cell.b) != Cells::kNone;
        if (cell.score > least * (1 + 1e-4)) {
          ASSERT_TRUE(in) << cell.a << ' ' << cell.b;
        }
        if (cell.score < least * (1 - 1e-4)) {
          ASSERT_FALSE(in) << cell.a << ' ' << cell.b;
        }
      }
      for (uint32_t a = 0; a < kItems; ++a) ASSERT_TRUE(std::ranges::is_sorted(top.Row(a)));
    }
    EXPECT_EQ(TopCells(prior, 1'000'000, options_, workers_).size(), cells.size());
    EXPECT_EQ(TopCells(prior, 0, options_, workers_).size(), 0u);
  }
}

// Many items of the same bins and genres, some with ids that are near and some with ids at the
// ends of what an id can be: most pairs are left out by bounds, and none may be that belongs to the
// top.
TEST_F(PriorTest, TheTopCellsOfManyItemsThatAreAlikeAreThoseOfASortOfAll) {
  constexpr uint32_t kMany = 600;
  std::mt19937_64 random(7);
  std::vector<ItemText> texts(kMany);
  std::vector<double> popularity;
  for (uint32_t i = 0; i < kMany; ++i) {
    texts[i].id = int64_t{10} * i;
    texts[i].title = i % 17 == 0 ? "star of it" : "of it";
    if (i % 5 > 0) texts[i].title += i % 5 == 1 ? " (1980)" : i % 5 == 2 ? " (1994)" : " (1999)";
    texts[i].genres = {"Drama"};
    if (i % 2 == 0) texts[i].genres.push_back("War");
    popularity.push_back(1 + 1e3 / (1 + static_cast<double>(random() % kMany)));
  }
  texts[3].id = std::numeric_limits<int64_t>::min();
  texts[4].id = std::numeric_limits<int64_t>::min() + 1;
  texts[5].id = std::numeric_limits<int64_t>::max();
  const PublicItems catalogue(texts);
  const Buckets buckets(catalogue, popularity, 2);
  std::vector<std::vector<float>> factors;
  for (size_t table = 0; table < buckets.tables(); ++table) {
    factors.emplace_back();
    for (uint32_t k = 0; k < buckets.size(table); ++k)
      factors[table].push_back(std::exp(std::normal_distribution<float>(0, 1.5f)(random)));
  }
  const Prior prior(buckets, popularity, factors);
  std::vector<double> scores;
  const auto score = [&](uint32_t a, uint32_t b) {
    return double{prior.Of(a, b)} / (std::pow(popularity[a], options_.support_from) *
                                     std::pow(popularity[b], options_.support_to));
  };
  for (uint32_t a = 0; a < kMany; ++a)
    for (uint32_t b = 0; b < kMany; ++b)
      if (a != b) scores.push_back(score(a, b));
  std::ranges::sort(scores, std::greater<>());
  for (const size_t count : {size_t{1}, size_t{100}, size_t{5000}, size_t{100'000}}) {
    const Cells top = TopCells(prior, count, options_, workers_);
    ASSERT_EQ(top.size(), count);
    const double least = scores[count - 1];
    for (uint32_t a = 0; a < kMany; ++a) {
      ASSERT_TRUE(std::ranges::is_sorted(top.Row(a)));
      for (uint32_t b = 0; b < kMany; ++b) {
        const bool in = top.Find(a, b) != Cells::kNone;
        if (a != b && score(a, b) > least * (1 + 1e-4)) {
          ASSERT_TRUE(in) << a << ' ' << b;
        }
        if (a == b || score(a, b) < least * (1 - 1e-4)) {
          ASSERT_FALSE(in) << a << ' ' << b;
        }
      }
    }
  }
}

TEST_F(PriorTest, OfEqualCellsTheEarlierAreTaken) {
  const PublicItems plain(6);
  const std::vector<double> popularity(6, 2);
  const Buckets buckets(plain, popularity, 1);
  const Prior prior(buckets, popularity);
  for (const size_t workers : {1, 2, 3}) {
    WorkerPool pool({.workers = workers});
    const Cells top = TopCells(prior, 7, options_, pool);
    EXPECT_EQ(top.column, (std::vector<uint32_t>{1, 2, 3, 4, 5, 0, 2}));
    EXPECT_EQ(top.row_end, (std::vector<uint64_t>{5, 7, 7, 7, 7, 7}));
  }
}

// A million items: nothing is as long as the square of that.
TEST_F(PriorTest, AMillionItemsHaveTopCellsToo) {
  const uint32_t items = 1'000'000;
  const PublicItems plain(items);
  std::vector<double> popularity(items);
  for (uint32_t i = 0; i < items; ++i) popularity[i] = 1 + 1e5 / (1 + i);
  const Buckets buckets(plain, popularity, 12);
  Prior prior(buckets, popularity);
  std::vector<float> sums(buckets.size(0), 1.0f);
  prior.Fit(std::vector<ReleasedTable>{{sums, 0.1}}, options_, workers_);
  const Cells top = TopCells(prior, 200'000, options_, workers_);
  EXPECT_EQ(top.size(), 200'000u);
  // None that was left out is above one that is in.
  double least = 1e300;
  const auto score = [&](uint32_t a, uint32_t b) {
    return prior.Of(a, b) / (std::pow(popularity[a], 0.3) * std::pow(popularity[b], 0.4));
  };
  for (uint32_t a = 0; a < items; ++a)
    for (const uint32_t b : top.Row(a)) least = std::min(least, score(a, b));
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const auto a = static_cast<uint32_t>(random() % 3000),
               b = static_cast<uint32_t>(random() % 3000);
    if (a != b && top.Find(a, b) == Cells::kNone) {
      ASSERT_LE(score(a, b), least * (1 + 1e-4));
    }
  }
}

TEST(SeenCells, AreThePairsOfTheHistories) {
  const Histories histories = SomeHistories(30, 40, 20, 4);
  std::vector<std::vector<bool>> seen(30, std::vector<bool>(30));
  size_t pairs = 0;
  for (size_t u = 0; u < histories.units(); ++u) {
    const auto items = histories.Of(u);
    for (size_t i = 0; i < items.size(); ++i)
      for (size_t j = i + 1; j < items.size() && j <= i + 3; ++j)
        if (items[i] != items[j] && !seen[items[i]][items[j]]) {
          seen[items[i]][items[j]] = true;
          ++pairs;
        }
  }
  const Cells cells = SeenCells(histories, 3);
  EXPECT_EQ(cells.size(), pairs);
  for (uint32_t a = 0; a < 30; ++a)
    for (uint32_t b = 0; b < 30; ++b) EXPECT_EQ(cells.Find(a, b) != Cells::kNone, seen[a][b]);
}

}  // namespace
}  // namespace tacit::model::transitions
