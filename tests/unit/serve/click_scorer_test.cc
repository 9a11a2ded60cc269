#include "serve/scoring/click_scorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fake_snapshot.h"
#include "random_batch.h"

namespace tacit::serve {
namespace {

using testing::HasSubstr;

// The click model with loops and doubles: embeddings, then numbers, through ReLU layers.
double NaiveScore(const ScoringModel& model, const store::Snapshot& snapshot,
                  const event::Batch& batch, size_t example) {
  const model::PctrOptions network = SmallNetwork();
  std::vector<double> x;
  for (size_t s = 0; s < batch.slots; ++s) {
    std::vector<double> pooled(network.space.tables()[s].dim);
    for (const uint64_t row : batch.Slot(example, s)) {
      std::vector<float> values(pooled.size());
      EXPECT_TRUE(snapshot.Rows(model.index, std::span(&row, 1), values).has_value());
      for (size_t k = 0; k < pooled.size(); ++k) pooled[k] += values[k];
    }
    x.insert(x.end(), pooled.begin(), pooled.end());
  }
  for (size_t d = 0; d < batch.dense_width; ++d)
    x.push_back(batch.dense[example * batch.dense_width + d]);
  const float* parameter = snapshot.Dense(model.index)->parameters.data();
  std::vector<uint32_t> widths = network.hidden;
  widths.push_back(1);
  for (const uint32_t width : widths) {
    std::vector<double> y(width);
    for (size_t o = 0; o < width; ++o) {
      y[o] = parameter[x.size() * width + o];
      for (size_t i = 0; i < x.size(); ++i) y[o] += x[i] * parameter[i * width + o];
      if (width != 1) y[o] = std::max(y[o], 0.0);
    }
    parameter += (x.size() + 1) * width;
    x = std::move(y);
  }
  return 1 / (1 + std::exp(-x[0]));
}

TEST(ScorerTest, AgreesWithPlainLoops) {
  const ScoringModel model = SmallModel();
  const FakeStore store(model);
  const auto scorer = model.model->MakeScorer();
  for (const size_t size : {1u, 7u, 256u, 600u}) {  // 600: more than one chunk
    const auto snapshot = store.Make(3);
    const event::Batch batch = RandomBatch(*model.transform, size, size);
    std::vector<float> scores(size);
    ASSERT_TRUE(scorer->Score(*snapshot, batch, scores).has_value());
    for (size_t i = 0; i < size; ++i)
      ASSERT_NEAR(scores[i], NaiveScore(model, *snapshot, batch, i), 1e-5) << i << " of " << size;
  }
}

TEST(ScorerTest, AnotherVersionScoresOtherwise) {
  const ScoringModel model = SmallModel();
  const FakeStore store(model);
  const auto scorer = model.model->MakeScorer();
  const event::Batch batch = RandomBatch(*model.transform, 5, 1);
  std::vector<float> first(5), second(5), again(5);
  ASSERT_TRUE(scorer->Score(*store.Make(1), batch, first).has_value());
  ASSERT_TRUE(scorer->Score(*store.Make(2), batch, second).has_value());
  ASSERT_TRUE(scorer->Score(*store.Make(1), batch, again).has_value());
  EXPECT_EQ(first, again);
  EXPECT_NE(first, second);
}

TEST(ScorerTest, WithoutACommitItIsUnavailable) {
  const ScoringModel model = SmallModel();
  const FakeStore store(model);
  const auto scorer = model.model->MakeScorer();
  const event::Batch batch = RandomBatch(*model.transform, 1, 1);
  std::vector<float> scores(1);
  const Status status = scorer->Score(*store.Make(0), batch, scores);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(status.error().message, HasSubstr("'ctr' has no committed model yet"));
}

TEST(ScorerTest, ParametersOfAnotherModelAreRefused) {
  const ScoringModel model = SmallModel();
  const FakeSnapshot snapshot(4, model, DenseSizeOf(SmallNetwork()) + 1);
  const auto scorer = model.model->MakeScorer();
  const event::Batch batch = RandomBatch(*model.transform, 1, 1);
  std::vector<float> scores(1);
  const Status status = scorer->Score(snapshot, batch, scores);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(status.error().message, HasSubstr("version 4"));
}

TEST(ScorerTest, NoRowsNoScores) {
  const ScoringModel model = SmallModel();
  const FakeStore store(model);
  const auto scorer = model.model->MakeScorer();
  const event::Batch batch = RandomBatch(*model.transform, 0, 1);
  EXPECT_TRUE(scorer->Score(*store.Make(1), batch, {}).has_value());
}

}  // namespace
}  // namespace tacit::serve
