// Scoring on a device where calls of the device fail one after the other, its memory beside what
// plans say, and its list of places beside maps.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "cuda/device/emulated.h"
#include "cuda/device/errors.h"
#include "cuda/learn/pctr_scorer.h"
#include "cuda/learn/served_places.h"
#include "unit/cuda/scoring_rig.h"

namespace tacit::cuda::testing {
namespace {

// Each thread of a kernel is dear under the thread sanitizer.
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kCallsApart = 37;
#else
constexpr uint64_t kCallsApart = 1;
#endif

// Makes call after call of the device fail, from the making of a scorer on, until none is left.
void FailEveryCall(int code) {
  const ScoredModel model(serve::SmallSchema());
  size_t not_made = 0, dropped = 0;
  for (uint64_t call = 1;; call += kCallsApart) {
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
      const event::Batch batch = serve::RandomBatch(*model.transform, 12, turn);
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
  EXPECT_GT(not_made * kCallsApart, 10u);
  EXPECT_GT(dropped * kCallsApart, 30u);
}

TEST(PctrScorerEmulatedTest, WhicheverCallFailsTheAnswerIsTheProcessorsFromThereOn) {
  FailEveryCall(code::kMemoryAllocation);
  FailEveryCall(code::kEccUncorrectable);
  emulated::Reset();
}

// A scorer takes what it says it takes, on the device and pinned, and nothing for a request.
TEST(PctrScorerEmulatedTest, TakesTheMemoryThatPlansHave) {
  for (const ops::Precision precision : {ops::Precision::kF32, ops::Precision::kBf16}) {
    for (const uint64_t cache_bytes : {uint64_t{1}, uint64_t{3000}, uint64_t{1} << 20}) {
      const ScoredModel model(serve::SmallSchema(), {8, 6}, precision);
      const train::GpuScoreOptions options{
          .model = model.options, .cache_bytes = cache_bytes, .examples = 16};
      const auto make_with = [&](uint64_t memory_bytes, uint64_t piece, uint64_t* need) {
        emulated::Reset({.memory_bytes = memory_bytes, .memory_piece_bytes = piece});
        const auto device = OpenDevice(0);
        EXPECT_TRUE(device);
        *need = NeedOfPctrScorer((*device)->facts(), options).all();
        ScoringRig rig(**device, model, options);
        if (!rig.why_not().empty()) return false;
        const uint64_t taken = emulated::BytesTaken(), pinned = emulated::PinnedBytesTaken();
        EXPECT_EQ(taken - pinned, *need);
        EXPECT_EQ(pinned, train::GpuScorePinnedBytes(train::SizesOfGpuScoring(options)));
        for (uint64_t number = 1; number < 4; ++number)
          rig.Worst(ScoredSnapshot(model, number),
                    serve::RandomBatch(*model.transform, 20, number));
        EXPECT_EQ(emulated::BytesTaken(), taken);
        return true;
      };
      for (const uint64_t piece : {1, 4096}) {
        uint64_t need = 0;
        EXPECT_TRUE(make_with(1 << 30, piece, &need));
        EXPECT_TRUE(make_with(need, piece, &need));
        EXPECT_FALSE(make_with(need - 1, piece, &need));
      }
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
