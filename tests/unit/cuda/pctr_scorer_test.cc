// Scoring on a device, beside the processor's scorer: the same scores in any shape, of the version
// that was asked for, and failures of a commit in the same words.
#include "cuda/learn/pctr_scorer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "unit/cuda/scoring_rig.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

using ops::Precision;
using serve::RandomBatch;

class PctrScorerTest : public OnDevice {};

// Each thread of a kernel is dear under the thread sanitizer.
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeedsOfVersions = 1;
constexpr size_t kLargeRequest = 6;
#else
constexpr uint64_t kSeedsOfVersions = 3;
constexpr size_t kLargeRequest = 60;
#endif

event::FeatureSchema SchemaOf(size_t numbers, std::vector<event::CategoricalFeature> categories) {
  event::FeatureSchema schema;
  for (size_t i = 0; i < numbers; ++i)
    schema.dense.push_back({fmt::format("I{}", i), event::DenseTransform::kIdentity});
  schema.categorical = std::move(categories);
  return schema;
}

// In bf16 a sum beside a rounding border is rounded otherwise where it is added in another order.
double ToleranceOf(Precision precision) {
  return precision == Precision::kBf16 ? 2e-3 : kScoreTolerance;
}

TEST_F(PctrScorerTest, ScoresAreTheProcessorsInAnyShape) {
  struct Shape {
    event::FeatureSchema schema;
    std::vector<uint32_t> hidden;
  };
  const std::vector<Shape> shapes = {
      {serve::SmallSchema(), {8, 6}},
      {SchemaOf(1, {{"a", 50, 8}, {"b", 20, 4}, {"c", 9, 12, true, 3}}), {17}},  // rows by fours
      {SchemaOf(0, {{"a", 30, 1}, {"b", 2, 33}}), {5, 1, 3}},                    // no numbers
      {SchemaOf(3, {{"a", 3000, 6}}), {}},                                       // one layer
      {SchemaOf(5, {}), {7}}};                                                   // no tables
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    for (size_t s = 0; s < shapes.size(); ++s) {
      const ScoredModel model(shapes[s].schema, shapes[s].hidden, precision);
      ScoringRig rig(*device_, model,
                     {.model = model.options, .cache_bytes = 1 << 16, .examples = 32});
      ASSERT_EQ(rig.why_not(), "");
      const ScoredSnapshot snapshot(model, 3);
      double asked = 0;
      for (const size_t size : {1u, 7u, 32u, 33u, 70u}) {
        const event::Batch batch = RandomBatch(*model.transform, size, size);
        EXPECT_LE(rig.Worst(snapshot, batch), ToleranceOf(precision)) << s << ", " << size;
        asked += static_cast<double>(size);
      }
      EXPECT_EQ(rig.scored(), asked) << "shape " << s;
    }
  }
}

TEST_F(PctrScorerTest, ScoresAreTheSameBitsUnderAnyOrder) {
  const ScoredModel model(serve::SmallSchema());
  const ScoredSnapshot snapshot(model, 3);
  const event::Batch batch = RandomBatch(*model.transform, 20, 1);
  std::vector<float> first(20), again(20);
  for (int order = 0; order < Orders(); ++order) {
    NextOrder(order);
    ScoringRig rig(*device_, model,
                   {.model = model.options, .cache_bytes = 1 << 16, .examples = 16});
    ASSERT_TRUE(rig.scorer().Score(snapshot, batch, order == 0 ? first : again));
    if (order > 0) {
      ASSERT_EQ(first, again) << order;
    }
  }
}

TEST_F(PctrScorerTest, ARequestOfMoreRowsThanTheCacheHasGoesInSeveralPasses) {
  const ScoredModel model(serve::SmallSchema());
  // A place is 8 floats; both versions have this many.
  for (const uint64_t places : {6u, 9u, 20u}) {
    ScoringRig rig(*device_, model,
                   {.model = model.options, .cache_bytes = places * 2 * 32, .examples = 32});
    for (uint64_t number = 1; number < 4; ++number) {
      const event::Batch batch = RandomBatch(*model.transform, kLargeRequest, number);
      EXPECT_LE(rig.Worst(ScoredSnapshot(model, number), batch), kScoreTolerance) << places;
    }
    EXPECT_EQ(rig.scored(), 3.0 * kLargeRequest) << places;
  }
}

TEST_F(PctrScorerTest, AnExampleOfMoreRowsThanTheCacheHasIsTheProcessors) {
  const ScoredModel model(serve::SmallSchema());
  ScoringRig rig(*device_, model, {.model = model.options, .cache_bytes = 1, .examples = 32});
  const ScoredSnapshot snapshot(model, 2);
  EXPECT_EQ(rig.Worst(snapshot, RandomBatch(*model.transform, 9, 1)), 0);
  EXPECT_EQ(rig.scored(), 0);
  EXPECT_TRUE(rig.works()) << "the device has not failed";
}

TEST_F(PctrScorerTest, SmallAndEmptyRequestsAreTheProcessors) {
  const ScoredModel model(serve::SmallSchema());
  ScoringRig rig(*device_, model, {.model = model.options, .cache_bytes = 1 << 16, .examples = 32},
                 10);
  const ScoredSnapshot snapshot(model, 2);
  for (const size_t size : {0u, 1u, 9u})
    EXPECT_EQ(rig.Worst(snapshot, RandomBatch(*model.transform, size, size)), 0);
  EXPECT_EQ(rig.scored(), 0);
  EXPECT_LE(rig.Worst(snapshot, RandomBatch(*model.transform, 10, 1)), kScoreTolerance);
  EXPECT_EQ(rig.scored(), 10);
}

TEST_F(PctrScorerTest, AnAnswerIsOfTheVersionThatWasAskedFor) {
  for (const uint64_t cache_bytes : {uint64_t{1} << 20, uint64_t{2000}})
    for (uint64_t seed = 1; seed <= kSeedsOfVersions; ++seed)
      EXPECT_EQ(AnswersOfOtherVersions(*device_, cache_bytes, seed), 0u) << seed;
}

// A version's number is not all that tells it from another.
TEST_F(PctrScorerTest, VersionsOfOneNumberAreToldApart) {
  const ScoredModel model(serve::SmallSchema());
  ScoringRig rig(*device_, model, {.model = model.options, .cache_bytes = 1 << 16, .examples = 32});
  const ScoredSnapshot first(model, 1, {.version = 5}),
      other_line(model, 2, {.version = 5, .lineage = "line-2"}),
      other_term(model, 3, {.version = 5, .term = {1}}), other_number(model, 4, {.version = 6});
  const event::Batch batch = RandomBatch(*model.transform, 12, 1);
  for (const ScoredSnapshot* snapshot :
       {&first, &other_line, &other_term, &first, &other_number, &other_term})
    EXPECT_LE(rig.Worst(*snapshot, batch), kScoreTolerance);
}

TEST_F(PctrScorerTest, ThreadsShareItWhileCommitsGoOn) {
  const ScoredModel model(serve::SmallSchema());
  ScoringRig rig(*device_, model, {.model = model.options, .cache_bytes = 6000, .examples = 8});
  std::vector<std::thread> threads;
  std::atomic<size_t> wrong = 0;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const auto scorer = rig.MakeScorer();
      std::mt19937_64 random(t);
      for (uint64_t turn = 0; turn < 12; ++turn) {
        const ScoredSnapshot snapshot(model, 1 + turn / 3 + random() % 2);
        const event::Batch batch = RandomBatch(*model.transform, 1 + random() % 12, random());
        wrong += rig.WorstOf(*scorer, snapshot, batch) > kScoreTolerance;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(rig.works());
}

TEST_F(PctrScorerTest, RowsThatCannotBeReadFailTheRequestAndNotTheDevice) {
  const ScoredModel model(serve::SmallSchema());
  ScoringRig rig(*device_, model, {.model = model.options, .cache_bytes = 1 << 16, .examples = 32});
  const event::Batch batch = RandomBatch(*model.transform, 12, 1);
  ScoredSnapshot snapshot(model, 2);
  snapshot.broken = Error(ErrorCode::kIo, "the disk is gone");
  std::vector<float> scores(12);
  const Status failed = rig.scorer().Score(snapshot, batch, scores);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kIo);
  EXPECT_TRUE(rig.works());
  snapshot.broken.reset();
  EXPECT_LE(rig.Worst(snapshot, batch), kScoreTolerance) << "rows that did not come are not there";
  EXPECT_EQ(rig.scored(), 12);
}

// A commit whose parameters are not numbers, or are another model's, or not there.
class OddSnapshot final : public serve::FakeSnapshot {
 public:
  OddSnapshot(const ScoredModel& model, std::vector<float> dense, uint64_t version = 4)
      : FakeSnapshot(version, serve::SmallModel(), model.dense_size), odd_(std::move(dense)) {}
  std::span<const float> ServedDense(LearnerIndex) const override { return odd_; }

 private:
  const std::vector<float> odd_;
};

TEST_F(PctrScorerTest, FailuresOfACommitAreToldInTheProcessorsWords) {
  const ScoredModel model(serve::SmallSchema());
  ScoringRig rig(*device_, model, {.model = model.options, .cache_bytes = 1 << 16, .examples = 32});
  const auto host =
      serve::MakeClickModel(LearnerIndex(0), "ctr", model.transform, model.options)->MakeScorer();
  const event::Batch batch = RandomBatch(*model.transform, 5, 1);
  std::vector<float> scores(5);
  for (const auto& snapshot :
       {std::make_shared<OddSnapshot>(model, std::vector<float>(model.dense_size, NAN)),
        std::make_shared<OddSnapshot>(model, std::vector<float>(model.dense_size + 1)),
        std::make_shared<OddSnapshot>(model, std::vector<float>(), 0)}) {
    const Status here = host->Score(*snapshot, batch, scores),
                 there = rig.scorer().Score(*snapshot, batch, scores);
    ASSERT_FALSE(here);
    ASSERT_FALSE(there);
    EXPECT_EQ(there.error().code, here.error().code);
    EXPECT_EQ(there.error().message, here.error().message);
  }
  EXPECT_TRUE(rig.works());
}

}  // namespace
}  // namespace tacit::cuda::testing
