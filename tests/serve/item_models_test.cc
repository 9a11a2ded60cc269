#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/worker_pool.h"
#include "model/sequence/sequence_model.h"
#include "model/transitions/released_model.h"
#include "model/transitions/scorer.h"
#include "ops/backend.h"
#include "recommend_fakes.h"
#include "serve/recommend/item_model.h"

namespace tacit::serve {
namespace {

using model::transitions::ReleasedModel;
using testing::HasSubstr;

constexpr uint32_t kModelItems = 30;

// A count model that has released one period, of numbers that follow from the seed.
class TransitionsItemsTest : public testing::Test {
 protected:
  TransitionsItemsTest() {
    options_.cells_at_signal = 300, options_.signal_unit = 500;
    items_ = MakeTransitionsItems(LearnerIndex(0), catalogue_, options_);
  }

  std::vector<float> Sums(size_t n, std::mt19937* random) {
    std::vector<float> sums;
    for (size_t i = 0; i < n; ++i) sums.push_back(static_cast<float>((*random)() % 50) * 0.3f);
    return sums;
  }
  ReleasedModel Released(uint32_t seed) {
    std::mt19937 random(seed);
    ReleasedModel model(*catalogue_, options_, workers_);
    model.AddPopularity(Sums(kModelItems, &random), 2, 2);
    std::vector<model::transitions::ReleasedTable> tables;
    for (size_t t = 0; t < model.buckets().tables(); ++t)
      tables.push_back({Sums(model.buckets().size(t), &random), 2});
    model.AddTables(tables);
    for (size_t stage = 0; stage < model::transitions::kStages; ++stage) {
      const auto places = model.Choose(stage);
      model.Measure(stage, places, Sums(places.size(), &random), 3);
    }
    return model;
  }
  static RecommendSnapshot Snapshot(std::shared_ptr<const std::string> bytes) {
    RecommendSnapshot snapshot(1, {});
    snapshot.released = std::move(bytes);
    return snapshot;
  }

  WorkerPool workers_{{.workers = 1}};
  model::transitions::Options options_;
  std::shared_ptr<const model::transitions::PublicItems> catalogue_ =
      std::make_shared<const model::transitions::PublicItems>(kModelItems);
  std::shared_ptr<const ItemModel> items_;
};

TEST_F(TransitionsItemsTest, ScoresAreTheReleasedModels) {
  const ReleasedModel released = Released(5);
  const auto bytes = std::make_shared<const std::string>(released.Encode());
  const auto state = items_->Build(Snapshot(bytes), nullptr);
  ASSERT_TRUE(state.has_value()) << state.error().message;
  ASSERT_NE(*state, nullptr);
  const model::transitions::Scorer oracle(released.estimate(), options_, workers_);
  const auto scorer = items_->MakeScorer();
  std::vector<float> scores(kModelItems), expected(kModelItems);
  for (const std::vector<uint32_t>& history :
       std::vector<std::vector<uint32_t>>{{0}, {3, 7, 3}, {29, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}) {
    ASSERT_TRUE(scorer->Score(**state, history, scores));
    oracle.Score(history, expected);
    EXPECT_EQ(scores, expected);
  }
  ASSERT_EQ((*state)->cold_start().size(), kModelItems);
  for (uint32_t i = 0; i < kModelItems; ++i)
    EXPECT_EQ((*state)->cold_start()[i], static_cast<float>(released.popularity()[i]));
}

TEST_F(TransitionsItemsTest, AStateIsMadeOncePerRelease) {
  const auto bytes = std::make_shared<const std::string>(Released(5).Encode());
  const auto first = items_->Build(Snapshot(bytes), nullptr);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(*items_->Build(Snapshot(bytes), *first), *first);
  const auto read_again = std::make_shared<const std::string>(*bytes);
  EXPECT_EQ(*items_->Build(Snapshot(read_again), *first), *first);
  const auto other = std::make_shared<const std::string>(Released(6).Encode());
  const auto second = items_->Build(Snapshot(other), *first);
  EXPECT_NE(*second, *first);
  EXPECT_NE(*second, nullptr);
}

TEST_F(TransitionsItemsTest, NothingReleasedIsNoState) {
  EXPECT_EQ(*items_->Build(Snapshot(nullptr), nullptr), nullptr);
  const ReleasedModel nothing(*catalogue_, options_, workers_);
  const auto bytes = std::make_shared<const std::string>(nothing.Encode());
  EXPECT_EQ(*items_->Build(Snapshot(bytes), nullptr), nullptr);
}

TEST_F(TransitionsItemsTest, WhatIsNotThisModelsIsRefused) {
  const auto bytes = std::make_shared<const std::string>(Released(5).Encode());
  const auto other = MakeTransitionsItems(
      LearnerIndex(0), std::make_shared<const model::transitions::PublicItems>(kModelItems + 1),
      options_);
  EXPECT_FALSE(other->Build(Snapshot(bytes), nullptr).has_value());
  const auto damaged = std::make_shared<const std::string>(bytes->substr(0, bytes->size() / 2));
  const auto state = items_->Build(Snapshot(damaged), nullptr);
  ASSERT_FALSE(state.has_value());
  EXPECT_EQ(state.error().code, ErrorCode::kCorruption);
}

class SequenceItemsTest : public testing::Test {
 protected:
  SequenceItemsTest() {
    options_.catalogue = kModelItems;
    options_.length = 6;
    options_.width = 8;
    options_.blocks = 1;
    options_.item_bias = true;
    items_ = MakeSequenceItems(LearnerIndex(0), options_);
  }
  std::shared_ptr<const store::DenseState> Parameters(uint64_t seed) const {
    auto dense = std::make_shared<store::DenseState>();
    dense->parameters = model::SequenceLayout(options_).Initial(seed);
    return dense;
  }
  static RecommendSnapshot Snapshot(std::shared_ptr<const store::DenseState> dense) {
    RecommendSnapshot snapshot(1, {});
    snapshot.dense = std::move(dense);
    return snapshot;
  }
  std::vector<float> Expected(std::span<const float> parameters,
                              std::span<const uint32_t> history) const {
    WorkerPool workers({.workers = 1});
    const auto backend = ops::MakeCpuBackend(workers);
    model::SequenceModel model(options_, *backend);
    std::vector<float> expected;
    EXPECT_TRUE(
        model.Score(parameters, {}, {&history, 1}, [&](size_t, std::span<float> scores, size_t) {
          expected.assign(scores.begin(), scores.end());
        }));
    return expected;
  }

  model::SequenceOptions options_;
  std::shared_ptr<const ItemModel> items_;
};

TEST_F(SequenceItemsTest, ScoresAreTheModels) {
  const auto dense = Parameters(3);
  const auto state = items_->Build(Snapshot(dense), nullptr);
  ASSERT_TRUE(state.has_value()) << state.error().message;
  const auto scorer = items_->MakeScorer();
  std::vector<float> scores(kModelItems);
  for (const std::vector<uint32_t>& history :
       std::vector<std::vector<uint32_t>>{{0}, {3, 7, 3}, {29, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}) {
    ASSERT_TRUE(scorer->Score(**state, history, scores));
    EXPECT_EQ(scores, Expected(dense->parameters, history));
  }
  EXPECT_EQ(*items_->Build(Snapshot(dense), *state), *state);
  EXPECT_NE(*items_->Build(Snapshot(Parameters(4)), *state), *state);
  EXPECT_EQ(*items_->Build(Snapshot(nullptr), nullptr), nullptr);
}

TEST_F(SequenceItemsTest, AColdStartIsTheMeanBehindSingleItems) {
  const auto dense = Parameters(3);
  const auto state = items_->Build(Snapshot(dense), nullptr);
  std::vector<double> mean(kModelItems);
  for (uint32_t first = 0; first < kModelItems; ++first) {
    const auto scores = Expected(dense->parameters, std::vector<uint32_t>{first});
    for (uint32_t i = 0; i < kModelItems; ++i) mean[i] += scores[i] / double{kModelItems};
  }
  for (uint32_t i = 0; i < kModelItems; ++i) EXPECT_NEAR((*state)->cold_start()[i], mean[i], 1e-5);
}

TEST_F(SequenceItemsTest, ParametersThatAreNotTheModelsAreRefused) {
  auto shorter = std::make_shared<store::DenseState>(*Parameters(3));
  shorter->parameters.pop_back();
  const auto state = items_->Build(Snapshot(shorter), nullptr);
  ASSERT_FALSE(state.has_value());
  EXPECT_EQ(state.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(state.error().message, HasSubstr("parameters where the model has"));
  auto broken = std::make_shared<store::DenseState>(*Parameters(3));
  broken->parameters[5] = NAN;
  EXPECT_FALSE(items_->Build(Snapshot(broken), nullptr).has_value());
}

}  // namespace
}  // namespace tacit::serve
