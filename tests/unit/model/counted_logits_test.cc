#include "model/sequence/counted_logits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "model/transitions/released_model.h"
#include "model/transitions/scorer.h"

namespace tacit::model {
namespace {

class CountedLogitsTest : public testing::Test {
 protected:
  // A model of numbers that follow from nothing but their places.
  static transitions::ReleasedModel Model(const transitions::PublicItems& catalogue,
                                          const transitions::Options& options,
                                          WorkerPool& workers) {
    transitions::ReleasedModel model(catalogue, options, workers);
    const auto sums = [](size_t n) {
      std::vector<float> made(n);
      for (size_t i = 0; i < n; ++i) made[i] = static_cast<float>(7 * i % 11);
      return made;
    };
    model.AddPopularity(sums(catalogue.items()), 2, 2);
    std::vector<transitions::ReleasedTable> tables;
    for (size_t t = 0; t < model.buckets().tables(); ++t)
      tables.push_back({sums(model.buckets().size(t)), 2});
    model.AddTables(tables);
    for (size_t stage = 0; stage < transitions::kStages; ++stage) {
      const auto places = model.Choose(stage);
      model.Measure(stage, places, sums(places.size()), 3);
    }
    return model;
  }
  // The logits after each item alone, row by row.
  static std::vector<float> Logits(const transitions::Estimate& estimate,
                                   const transitions::Options& options, double weight,
                                   WorkerPool& workers) {
    const uint32_t items = estimate.prior().items();
    DecayedLogits logits(items, 0.7);
    SetCountedLogits(estimate, options, weight, workers, &logits);
    std::vector<float> all(size_t{items} * items);
    for (uint32_t item = 0; item < items; ++item) {
      UnitRows rows;
      rows.Append(std::vector<uint32_t>{item}, std::vector<uint32_t>{item}, 1);
      const uint32_t place = 0;
      logits.Fill(rows, {&place, 1}, {&all[size_t{item} * items], 1, items});
    }
    return all;
  }
  static transitions::Options FewCells() {
    transitions::Options options;
    options.cells_at_signal = 50, options.signal_unit = 500, options.items_power = 0;
    return options;
  }

  WorkerPool workers_{{.workers = 1}};
};

TEST_F(CountedLogitsTest, AreLogarithmsOfScoresOverThreeMeans) {
  constexpr uint32_t kItems = 12;
  const transitions::PublicItems catalogue(kItems);
  const transitions::Options options = FewCells();
  const auto model = Model(catalogue, options, workers_);
  const transitions::Scorer scorer(model.estimate(), options, workers_);
  const std::span<const float> scores = scorer.table();
  ASSERT_EQ(scores.size(), kItems * kItems);
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / (kItems * kItems);
  ASSERT_GT(mean, 0);
  const std::vector<float> logits = Logits(model.estimate(), options, 0.7, workers_);
  for (size_t i = 0; i < logits.size(); ++i)
    EXPECT_NEAR(logits[i], 0.7 * (std::log(scores[i] + 3 * mean) - std::log(3 * mean)), 1e-5) << i;
}

// Rows that are made where they are needed are the table's, where both ways apply: items that are
// not described have no kinship, which only the table knows.
TEST_F(CountedLogitsTest, RowsWithoutATableAreTheSame) {
  constexpr uint32_t kItems = 60;
  const transitions::PublicItems catalogue(kItems);
  const transitions::Options dense = FewCells();
  transitions::Options sparse = dense;
  sparse.dense_cells_most = 10;
  const auto model = Model(catalogue, dense, workers_);
  const transitions::Scorer scorer(model.estimate(), sparse, workers_);
  ASSERT_TRUE(scorer.table().empty());
  // The oracle: all pairs one by one, in float64.
  std::vector<double> scores;
  for (uint32_t a = 0; a < kItems; ++a) {
    std::vector<float> row(kItems);
    std::vector<uint32_t> all(kItems);
    std::iota(all.begin(), all.end(), 0u);
    scorer.ScorePairs(a, all, row);
    scores.insert(scores.end(), row.begin(), row.end());
  }
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / (kItems * kItems);
  ASSERT_GT(mean, 0);
  EXPECT_NEAR(scorer.MeanScore(), mean, 1e-6 * mean);
  const std::vector<float> made = Logits(model.estimate(), sparse, 0.7, workers_),
                           table = Logits(model.estimate(), dense, 0.7, workers_);
  size_t other = 0;
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_NEAR(made[i], 0.7 * std::log(1 + scores[i] / (3 * mean)), 1e-5) << i;
    EXPECT_NEAR(made[i], table[i], 1e-4) << i;
    other += made[i] != made[0] ? 1 : 0;
  }
  EXPECT_GT(other, made.size() / 2);
}

// A table of this many items' pairs would have 36 million cells.
TEST_F(CountedLogitsTest, NeedNoTableOfAllPairs) {
  constexpr uint32_t kItems = 6000;
  const transitions::PublicItems catalogue(kItems);
  const transitions::Options options = FewCells();
  ASSERT_FALSE(options.IsDense(kItems));
  const auto model = Model(catalogue, options, workers_);
  DecayedLogits logits(kItems, 0.5);
  SetCountedLogits(model.estimate(), options, 2, workers_, &logits);
  UnitRows rows;
  rows.Append(std::vector<uint32_t>{5, 4000}, std::vector<uint32_t>{5, 4000}, 2);
  const uint32_t place = 1;
  std::vector<float> row(kItems);
  logits.Fill(rows, {&place, 1}, {row.data(), 1, kItems});
  const transitions::Scorer scorer(model.estimate(), options, workers_);
  const double floor = 3 * scorer.MeanScore();
  for (const uint32_t b : {0u, 5u, 6u, 3999u, 4000u, 5999u}) {
    float first = 0, last = 0;
    scorer.ScorePairs(5, {&b, 1}, {&first, 1});
    scorer.ScorePairs(4000, {&b, 1}, {&last, 1});
    EXPECT_NEAR(row[b], 2 * (0.5 * std::log(1 + first / floor) + std::log(1 + last / floor)), 1e-4)
        << b;
  }
}

}  // namespace
}  // namespace tacit::model
