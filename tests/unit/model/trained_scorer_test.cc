#include "model/sequence/trained_scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/threads/worker_pool.h"
#include "model/sequence/sequence_model.h"
#include "ops/backend.h"

namespace tacit::model {
namespace {

constexpr uint32_t kItems = 40;

class TrainedScorerTest : public ::testing::Test {
 protected:
  TrainedScorerTest() {
    options_.catalogue = kItems;
    options_.length = 8;
    options_.width = 16;
  }

  // The scores of the model itself.
  std::vector<float> ByModel(std::span<const float> weights, std::span<const uint32_t> history,
                             const ParameterNoise& noise = {}) {
    SequenceModel model(options_, *backend_);
    std::vector<float> scores;
    const Status status =
        model.Score(weights, noise, {&history, 1},
                    [&](size_t, std::span<float> s, size_t) { scores.assign(s.begin(), s.end()); });
    EXPECT_TRUE(status.has_value());
    return scores;
  }
  std::vector<float> ByScorer(std::span<const uint32_t> history) const {
    std::vector<float> scores(kItems);
    EXPECT_TRUE(scorer_.Score(history, scores).has_value());
    return scores;
  }

  WorkerPool workers_{{.workers = 1}};
  const std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
  SequenceOptions options_;
  TrainedScorer scorer_;
};

TEST_F(TrainedScorerTest, ScoresAsThePublishedModelDid) {
  const SequenceLayout layout(options_);
  std::vector<float> weights = layout.Initial(1);
  const std::vector<float> first = weights;
  const std::vector<uint32_t> history = {3, 9, 27};
  scorer_.Publish(layout, weights, {}, nullptr);
  std::ranges::fill(weights, 0.0f);
  EXPECT_EQ(ByScorer(history), ByModel(first, history)) << "weights are copied";
  const std::vector<float> second = layout.Initial(2);
  scorer_.Publish(layout, second, {}, nullptr);
  EXPECT_EQ(ByScorer(history), ByModel(second, history));
  EXPECT_NE(ByScorer(history), ByModel(first, history));
}

// Attention is corrected as in training, by carriers or without, after what was published is gone.
TEST_F(TrainedScorerTest, NoiseIsCopiedWithTheRankOfItsCarriers) {
  options_.re_attention.kappa = 1;
  const SequenceLayout layout(options_);
  const std::vector<float> weights = layout.Initial(1);
  const std::vector<uint32_t> history = {3, 9, 27};
  const std::vector<float> variance(kItems, 0.01f);
  std::vector<std::vector<float>> scores;
  for (const uint32_t rank : {0, 2}) {
    const ParameterNoise noise{0.2f, variance, rank};
    std::vector<float> copied = variance;
    scorer_.Publish(layout, weights, {0.2f, copied, rank}, nullptr);
    std::ranges::fill(copied, 9.0f);
    scores.push_back(ByScorer(history));
    EXPECT_EQ(scores.back(), ByModel(weights, history, noise));
  }
  EXPECT_NE(scores[0], scores[1]) << "a forgotten rank would not be missed";
  EXPECT_NE(scores[0], ByModel(weights, history));
}

TEST_F(TrainedScorerTest, ThreadsScoreAtOnce) {
  const SequenceLayout layout(options_);
  const std::vector<float> weights = layout.Initial(1);
  scorer_.Publish(layout, weights, {}, nullptr);
  std::vector<std::vector<float>> expected;
  for (uint32_t item = 0; item < kItems; ++item)
    expected.push_back(ByModel(weights, std::vector<uint32_t>{item, 5, item}));
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 5 * kItems; ++i) {
        const uint32_t item = (i + 10 * t) % kItems;
        EXPECT_EQ(ByScorer(std::vector<uint32_t>{item, 5, item}), expected[item]);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tacit::model
