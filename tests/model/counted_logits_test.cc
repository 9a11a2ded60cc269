#include "model/sequence/counted_logits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "model/transitions/released_model.h"
#include "model/transitions/scorer.h"

namespace tacit::model {
namespace {

TEST(CountedLogits, AreLogarithmsOfScoresOverThreeMeans) {
  constexpr uint32_t kItems = 12;
  WorkerPool workers({.workers = 1});
  const transitions::PublicItems catalogue(kItems);
  transitions::Options options;
  options.cells_at_signal = 50, options.signal_unit = 500, options.items_power = 0;
  transitions::ReleasedModel model(catalogue, options, workers);
  const auto sums = [](size_t n) {
    std::vector<float> made(n);
    for (size_t i = 0; i < n; ++i) made[i] = static_cast<float>(7 * i % 11);
    return made;
  };
  model.AddPopularity(sums(kItems), 2, 2);
  std::vector<transitions::ReleasedTable> tables;
  for (size_t t = 0; t < model.buckets().tables(); ++t)
    tables.push_back({sums(model.buckets().size(t)), 2});
  model.AddTables(tables);
  for (size_t stage = 0; stage < transitions::kStages; ++stage) {
    const auto places = model.Choose(stage);
    model.Measure(stage, places, sums(places.size()), 3);
  }
  const transitions::Scorer scorer(model.estimate(), options, workers);
  const std::span<const float> scores = scorer.table();
  ASSERT_EQ(scores.size(), kItems * kItems);
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / (kItems * kItems);
  ASSERT_GT(mean, 0);
  const std::vector<float> logits = CountedLogits(model.estimate(), options, 0.7, workers);
  for (size_t i = 0; i < logits.size(); ++i)
    EXPECT_NEAR(logits[i], 0.7 * (std::log(scores[i] + 3 * mean) - std::log(3 * mean)), 1e-5) << i;
}

TEST(CountedLogits, NeedATableOfAllPairs) {
  transitions::Options options;
  options.dense_cells_most = 100;
  EXPECT_TRUE(CheckCountedLogits(10, options));
  const Status refused = CheckCountedLogits(11, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("11 items"), std::string::npos);
}

}  // namespace
}  // namespace tacit::model
