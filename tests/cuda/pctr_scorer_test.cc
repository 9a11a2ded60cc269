// Scoring on a device, beside the processor's scorer: the same scores in any shape, of the version
// that was asked for, and an answer whatever fails on the device.
#include "cuda/learn/pctr_scorer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "cuda/device/emulated.h"
#include "cuda/device/errors.h"
#include "cuda/learn/served_places.h"
#include "cuda/scoring_rig.h"
#include "cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

using ops::Precision;
using serve::RandomBatch;

class PctrScorerTest : public OnDevice {};

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
      const event::Batch batch = RandomBatch(*model.transform, 60, number);
      EXPECT_LE(rig.Worst(ScoredSnapshot(model, number), batch), kScoreTolerance) << places;
    }
    EXPECT_EQ(rig.scored(), 180) << places;
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
    for (uint64_t seed = 1; seed <= 3; ++seed)
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

// Makes call after call of the device fail, from the making of a scorer on, until none is left.
void FailEveryCall(int code) {
  const ScoredModel model(serve::SmallSchema());
  size_t not_made = 0, dropped = 0;
  for (uint64_t call = 1;; ++call) {
    ASSERT_LT(call, 500u);
    emulated::Reset();
    auto device = OpenDevice(0);
    ASSERT_TRUE(device);
    emulated::FailCall(call, code);
    ScoringRig rig(**device, model, {.model = model.options, .cache_bytes = 1500, .examples = 8});
    if (!rig.why_not().empty()) {
      EXPECT_THAT(rig.why_not(), ::testing::HasSubstr("GPU 0"));
      ++not_made;
      continue;
    }
    for (uint64_t turn = 0; turn < 4; ++turn) {
      const bool worked = rig.works();
      const event::Batch batch = RandomBatch(*model.transform, 12, turn);
      const double worst = rig.Worst(ScoredSnapshot(model, 1 + turn / 2), batch);
      EXPECT_LE(worst, kScoreTolerance) << call;
      if (!worked) {
        EXPECT_EQ(worst, 0) << "the processor answers for good";
      }
    }
    EXPECT_EQ((*device)->Health().has_value(), rig.works() || !LosesDevice(code)) << call;
    if (rig.works()) break;
    ++dropped;
  }
  EXPECT_GT(not_made, 10u);
  EXPECT_GT(dropped, 30u);
}

TEST_F(PctrScorerTest, WhicheverCallFailsTheAnswerIsTheProcessorsFromThereOn) {
  device_.reset();
  stream_.reset();
  FailEveryCall(code::kMemoryAllocation);
  FailEveryCall(code::kEccUncorrectable);
  emulated::Reset();
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

// A scorer takes what it says it takes, on the device and pinned, and nothing for a request.
TEST_F(PctrScorerTest, TakesTheMemoryThatPlansHave) {
  device_.reset();
  stream_.reset();
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    for (const uint64_t cache_bytes : {uint64_t{1}, uint64_t{3000}, uint64_t{1} << 20}) {
      const ScoredModel model(serve::SmallSchema(), {8, 6}, precision);
      const train::GpuScoreOptions options{
          .model = model.options, .cache_bytes = cache_bytes, .examples = 16};
      const auto make_with = [&](uint64_t memory_bytes, uint64_t* need) {
        emulated::Reset({.memory_bytes = memory_bytes});
        const auto device = OpenDevice(0);
        EXPECT_TRUE(device);
        *need = NeedOfPctrScorer((*device)->facts(), options).all();
        ScoringRig rig(**device, model, options);
        if (!rig.why_not().empty()) return false;
        const uint64_t taken = emulated::BytesTaken(), pinned = emulated::PinnedBytesTaken();
        EXPECT_EQ(taken - pinned, *need);
        EXPECT_EQ(pinned, train::GpuScorePinnedBytes(train::SizesOfGpuScoring(options)));
        for (uint64_t number = 1; number < 4; ++number)
          rig.Worst(ScoredSnapshot(model, number), RandomBatch(*model.transform, 20, number));
        EXPECT_EQ(emulated::BytesTaken(), taken);
        return true;
      };
      uint64_t need = 0;
      EXPECT_TRUE(make_with(1 << 30, &need));
      EXPECT_TRUE(make_with(need, &need));
      EXPECT_FALSE(make_with(need - 1, &need));
    }
  }
  emulated::Reset();
}

// The list of places against maps: a row that is said to be there was brought to that place for
// that version and never written over since.
TEST(ServedPlacesTest, NamesAPlaceOnlyForWhatWasBroughtThere) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    constexpr uint64_t kPlaces = 13;
    ServedPlaces served(2, kPlaces);
    std::mt19937_64 random(seed);
    std::map<uint32_t, std::pair<std::string, uint64_t>> at;  // by place: version, row
    std::vector<uint32_t> places, missing;
    size_t found = 0, brought = 0;
    for (int turn = 0; turn < 400; ++turn) {
      if (random() % 50 == 0) served.Clear();
      const std::string version = fmt::format("v{}", turn / 40 + random() % 3);
      const ServedPlaces::Shelf shelf = served.ShelfOf(version);
      std::map<uint64_t, int> distinct;
      for (uint64_t i = random() % (kPlaces + 1); i > 0; --i) distinct[random() % 30];
      std::vector<uint64_t> rows;
      for (const auto& [row, _] : distinct) rows.push_back(row);
      served.Place(shelf.number, rows, &places, &missing);
      ASSERT_EQ(places.size(), rows.size());
      if (shelf.is_new) {
        ASSERT_EQ(missing.size(), rows.size());
      }
      for (size_t m = 0; m < missing.size(); ++m) {
        ASSERT_EQ(places[missing[m]], places[missing[0]] + m);
        at[places[missing[m]]] = {version, rows[missing[m]]};
      }
      for (size_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(places[i] / kPlaces, shelf.number);
        ASSERT_EQ(at[places[i]], std::pair(version, rows[i])) << seed << ", " << turn;
      }
      brought += missing.size();
      found += rows.size() - missing.size();
    }
    EXPECT_GT(found, 100u);
    EXPECT_GT(brought, 100u);
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
