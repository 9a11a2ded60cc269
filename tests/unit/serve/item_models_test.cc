#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "base/threads/worker_pool.h"
#include "model/ranking/ranker.h"
#include "model/ranking/released_ranker.h"
#include "model/sequence/sequence_model.h"
#include "model/transitions/released_model.h"
#include "model/transitions/scorer.h"
#include "ops/backend.h"
#include "recommend_fakes.h"
#include "serve/items/item_model.h"

namespace tacit::serve {
namespace {

using model::transitions::ReleasedModel;
using testing::HasSubstr;

constexpr uint32_t kModelItems = 30;

// A count model that has released one period, of numbers that follow from the seed.
class TransitionsItemsTest : public testing::Test {
 protected:
  TransitionsItemsTest() {
    options_.cells_at_signal = 300, options_.signal_unit = 500, options_.items_power = 0;
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

// The bytes of these counts with a ranker that orders unlike them.
std::shared_ptr<const std::string> Ranked(const ReleasedModel& counts,
                                          std::vector<float>* parameters) {
  *parameters = model::ranking::InitialRanker(4);
  (*parameters)[model::ranking::kPopular] = -3;
  return std::make_shared<const std::string>(model::ranking::EncodeRanker(counts, *parameters));
}

// Without a table of all pairs the best are found without all scores, of counts and of a ranker.
TEST_F(TransitionsItemsTest, TheBestOfAListAreThoseOfAllScores) {
  options_.dense_cells_most = 0;
  const ReleasedModel released = Released(5);
  std::vector<float> parameters;
  const std::pair<std::shared_ptr<const ItemModel>, std::shared_ptr<const std::string>> models[] = {
      {MakeTransitionsItems(LearnerIndex(0), catalogue_, options_),
       std::make_shared<const std::string>(released.Encode())},
      {MakeRankedItems(LearnerIndex(0), catalogue_, options_, 9), Ranked(released, &parameters)}};
  for (const auto& [model, bytes] : models) {
    EXPECT_EQ(model->kind(), "transitions");
    const auto state = model->Build(Snapshot(bytes), nullptr);
    ASSERT_TRUE(state.has_value()) << state.error().message;
    const auto scorer = model->MakeScorer();
    for (const std::vector<uint32_t>& history :
         std::vector<std::vector<uint32_t>>{{0}, {3, 7, 3}, {29, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}})
      for (const uint32_t count : {1u, 5u, 30u}) {
        std::vector<float> scores(kModelItems);
        ASSERT_TRUE(scorer->Score(**state, history, scores));
        std::vector<uint8_t> seen(kModelItems);
        for (const uint32_t item : history) seen[item] = 1;
        std::vector<uint32_t> order;
        for (uint32_t i = 0; i < kModelItems; ++i)
          if (seen[i] == 0) order.push_back(i);
        std::ranges::stable_sort(order, std::greater<>(), [&](uint32_t i) { return scores[i]; });
        std::vector<ScoredItem> top;
        const auto found = scorer->Top(**state, history, seen, count, &top);
        ASSERT_TRUE(found.has_value() && *found);
        ASSERT_EQ(top.size(), std::min<size_t>(count, order.size()));
        for (size_t i = 0; i < top.size(); ++i) EXPECT_EQ(top[i].score, scores[order[i]]) << i;
      }
  }
}

// The reason is the item that most of the score comes from, one that comes again counted together.
TEST_F(TransitionsItemsTest, AReasonIsTheLargestPart) {
  const ReleasedModel released = Released(5);
  const auto bytes = std::make_shared<const std::string>(released.Encode());
  const auto state = items_->Build(Snapshot(bytes), nullptr);
  const model::transitions::Scorer oracle(released.estimate(), options_, workers_);
  const auto scorer = items_->MakeScorer();
  const std::vector<uint32_t> history = {3, 7, 3, 12, 29};
  for (uint32_t item = 0; item < kModelItems; ++item) {
    std::map<uint32_t, double> parts;
    double all = 0;
    for (size_t age = 0; age < history.size(); ++age) {
      const uint32_t from = history[history.size() - 1 - age];
      const double part =
          std::pow(1 + static_cast<double>(age) / options_.recent_age, -options_.recent_power) *
          double{oracle.table()[size_t{from} * kModelItems + item]};
      parts[from] += part;
      all += part;
    }
    const auto most =
        std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; });
    const auto reason = scorer->ReasonOf(**state, history, item);
    ASSERT_TRUE(reason.has_value());
    EXPECT_EQ(reason->item, most->first) << item;
    EXPECT_NEAR(reason->share, most->second / all, 1e-5);
  }
  EXPECT_FALSE(scorer->ReasonOf(**state, {}, 3).has_value());
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

TEST_F(TransitionsItemsTest, ARankersScoresAreTheRankers) {
  constexpr size_t kAsked = 7;
  const ReleasedModel counts = Released(5);
  std::vector<float> parameters;
  const auto bytes = Ranked(counts, &parameters);
  const auto ranked = MakeRankedItems(LearnerIndex(0), catalogue_, options_, kAsked);
  EXPECT_EQ(*ranked->Build(Snapshot(nullptr), nullptr), nullptr);
  const auto state = ranked->Build(Snapshot(bytes), nullptr);
  ASSERT_TRUE(state.has_value()) << state.error().message;
  EXPECT_EQ(*ranked->Build(Snapshot(std::make_shared<const std::string>(*bytes)), *state), *state);
  const model::ranking::CandidateSource source(counts.estimate(), *catalogue_, options_, workers_);
  const model::transitions::Scorer alone(counts.estimate(), options_, workers_);
  const auto scorer = ranked->MakeScorer();
  std::vector<float> scores(kModelItems), expected(kModelItems), unranked(kModelItems);
  for (const std::vector<uint32_t>& history :
       std::vector<std::vector<uint32_t>>{{0}, {3, 7, 3}, {29, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}) {
    ASSERT_TRUE(scorer->Score(**state, history, scores));
    model::ranking::ScoreRanked(source, parameters, kAsked, history, expected);
    EXPECT_EQ(scores, expected);
    alone.Score(history, unranked);
    EXPECT_NE(scores, unranked);
  }
  for (uint32_t i = 0; i < kModelItems; ++i)
    EXPECT_EQ((*state)->cold_start()[i], static_cast<float>(counts.popularity()[i]));
}

TEST_F(TransitionsItemsTest, ARankerThatIsDamagedIsRefused) {
  std::vector<float> parameters;
  const std::string bytes = *Ranked(Released(5), &parameters);
  const auto ranked = MakeRankedItems(LearnerIndex(0), catalogue_, options_, 7);
  const auto refused = [&](const std::string& wrong) {
    const auto state = ranked->Build(Snapshot(std::make_shared<const std::string>(wrong)), nullptr);
    return !state && state.error().code == ErrorCode::kCorruption;
  };
  for (const size_t length : {size_t{0}, size_t{10}, bytes.size() / 2, bytes.size() - 1})
    EXPECT_TRUE(refused(bytes.substr(0, length))) << length;
  EXPECT_TRUE(refused(bytes + "x"));
  EXPECT_TRUE(refused(Released(5).Encode())) << "counts alone are another model";
  std::string nan = bytes;
  nan.replace(nan.size() - 4, 4, "\xff\xff\xff\xff");
  EXPECT_TRUE(refused(nan));
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
  std::vector<float> Expected(std::span<const float> parameters, std::span<const uint32_t> history,
                              const model::LogitPrior* prior = nullptr) const {
    WorkerPool workers({.workers = 1});
    const auto backend = ops::MakeCpuBackend(workers);
    model::SequenceModel model(options_, *backend, prior);
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

// The start in this test: a release is one character, and item i has the logit i times it.
ReleasedStart StartOf(std::string_view released) {
  std::vector<float> logits;
  for (uint32_t i = 0; i < kModelItems; ++i)
    logits.push_back(static_cast<float>(i) * 0.1f * static_cast<float>(released[0] - '0'));
  auto prior = std::make_shared<model::ItemLogits>(kModelItems);
  prior->Set(std::move(logits));
  return {.prior = std::move(prior), .noise = {}};
}

TEST_F(SequenceItemsTest, AStartsLogitsAreAdded) {
  const auto items = MakeSequenceItems(LearnerIndex(0), options_, {},
                                       [](std::string_view released) -> Result<ReleasedStart> {
                                         if (released == "x")
                                           return Fail(ErrorCode::kCorruption, "no number");
                                         return StartOf(released);
                                       });
  const auto snapshot = [&](const char* released) {
    RecommendSnapshot made = Snapshot(Parameters(3));
    if (released != nullptr) made.released = std::make_shared<const std::string>(released);
    return made;
  };
  EXPECT_EQ(*items->Build(snapshot(nullptr), nullptr), nullptr) << "nothing is released yet";
  const RecommendSnapshot first = snapshot("2");
  const auto state = items->Build(first, nullptr);
  ASSERT_TRUE(state.has_value()) << state.error().message;
  ASSERT_NE(*state, nullptr);
  const auto scorer = items->MakeScorer();
  std::vector<float> scores(kModelItems);
  const std::vector<uint32_t> history = {3, 7, 9};
  ASSERT_TRUE(scorer->Score(**state, history, scores));
  const ReleasedStart start = StartOf("2");
  EXPECT_EQ(scores, Expected(first.dense->parameters, history, start.prior.get()));
  EXPECT_NE(scores, Expected(first.dense->parameters, history));
  // A cold start has them too.
  std::vector<double> mean(kModelItems);
  for (uint32_t one = 0; one < kModelItems; ++one) {
    const auto behind =
        Expected(first.dense->parameters, std::vector<uint32_t>{one}, start.prior.get());
    for (uint32_t i = 0; i < kModelItems; ++i) mean[i] += behind[i] / double{kModelItems};
  }
  for (uint32_t i = 0; i < kModelItems; ++i) EXPECT_NEAR((*state)->cold_start()[i], mean[i], 1e-5);

  EXPECT_EQ(*items->Build(first, *state), *state);
  RecommendSnapshot later = first;
  later.released = std::make_shared<const std::string>("3");
  EXPECT_NE(*items->Build(later, *state), *state) << "the same parameters, another release";
  later.released = std::make_shared<const std::string>("x");
  EXPECT_FALSE(items->Build(later, nullptr).has_value());
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
