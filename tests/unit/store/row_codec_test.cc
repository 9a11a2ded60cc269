#include "store/rows/row_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>

#include "base/hash.h"
#include "growth_script.h"
#include "script.h"
#include "store/care/reshard.h"
#include "support/files_below.h"

namespace tacit::store {
namespace {

std::vector<float> SomeNumbers(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& x : numbers) x = std::exp2(6 * normal(random)) * normal(random);
  return numbers;
}

bool IsHalf(float number) { return (std::bit_cast<uint32_t>(number) & 0xffff) == 0; }

TEST(RowCodecTest, ARowComesBackAsItWas) {
  for (const uint32_t state : {0u, 1u, 6u}) {
    auto row = SomeNumbers(5 + state, state);
    std::string scratch;
    EXPECT_EQ(EncodeRow(row, 5, true, &scratch).size(), RowBytes(5, state, false))
        << "what would lose something stays as it is";
    RoundToBf16(1, CommitSeq(2), 3, {row.data(), 5});
    for (const bool bf16 : {false, true}) {
      const std::string value(EncodeRow(row, 5, bf16, &scratch));
      EXPECT_EQ(value.size(), RowBytes(5, state, bf16));
      std::vector<float> whole(row.size()), embedding(5);
      ASSERT_TRUE(DecodeRow(value, 5, state, whole));
      EXPECT_EQ(whole, row);
      ASSERT_TRUE(DecodeRow(value, 5, state, embedding));
      EXPECT_EQ(embedding, std::vector<float>(row.begin(), row.begin() + 5));
      for (const size_t bytes : {size_t{0}, value.size() - 1, value.size() + 1})
        EXPECT_FALSE(DecodeRow(std::string(bytes, 'x'), 5, state, whole)) << bytes;
    }
  }
}

TEST(RowCodecTest, RoundingTakesOneOfTheTwoNeighbours) {
  const auto numbers = SomeNumbers(4000, 1);
  auto rounded = numbers;
  RoundToBf16(1, CommitSeq(1), 1, rounded);
  size_t up = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_TRUE(IsHalf(rounded[i]));
    const uint32_t down = std::bit_cast<uint32_t>(numbers[i]) & ~0xffffu;
    const uint32_t is = std::bit_cast<uint32_t>(rounded[i]);
    ASSERT_TRUE(is == down || is == down + 0x10000) << numbers[i];
    up += is != down;
  }
  EXPECT_NEAR(up, 2000, 8 * std::sqrt(1000));
  auto again = rounded;
  RoundToBf16(1, CommitSeq(2), 1, again);
  EXPECT_EQ(again, rounded) << "what is rounded stays";
  auto repeated = numbers, later = numbers, another = numbers;
  RoundToBf16(1, CommitSeq(1), 1, repeated);
  EXPECT_EQ(repeated, rounded);
  RoundToBf16(1, CommitSeq(2), 1, later);
  EXPECT_NE(later, rounded);
  RoundToBf16(1, CommitSeq(1), 2, another);
  EXPECT_NE(another, rounded);
}

TEST(RowCodecTest, TheEndsOfTheNumbersStay) {
  std::vector<float> ends{FLT_MAX, -FLT_MAX, INFINITY, -INFINITY, NAN, 0.0f, -0.0f, FLT_TRUE_MIN};
  const auto were = ends;
  ends[4] = std::bit_cast<float>(0x7f800001u);  // no number either, by its last bit alone
  for (uint64_t commit = 1; commit < 200; ++commit) {
    auto rounded = ends;
    RoundToBf16(5, CommitSeq(commit), 9, rounded);
    EXPECT_TRUE(std::isfinite(rounded[0]) && std::isfinite(rounded[1]));
    EXPECT_EQ(rounded[2], INFINITY);
    EXPECT_EQ(rounded[3], -INFINITY);
    EXPECT_TRUE(std::isnan(rounded[4]));
    EXPECT_EQ(rounded[5], 0);
    EXPECT_EQ(rounded[6], 0);
    EXPECT_LE(rounded[7], std::bit_cast<float>(0x10000u));
  }
}

// The deviations by which `round` is off in the mean over many commits: small steps up that it
// keeps only if its coins are fair.
template <class Round>
double MeanOff(const Round& round) {
  constexpr int kCommits = 400;
  double sum = 0, squares = 0;
  for (int commit = 1; commit <= kCommits; ++commit) {
    auto numbers = SomeNumbers(64, static_cast<uint64_t>(commit) / 8);
    const auto were = numbers;
    round(commit, numbers);
    for (size_t i = 0; i < numbers.size(); ++i) {
      // In steps of the last place that is kept, which is the same for both neighbours.
      int exponent = 0;
      std::frexp(were[i], &exponent);
      const double off = std::ldexp(static_cast<double>(numbers[i]) - were[i], 8 - exponent) *
                         (were[i] < 0 ? -1 : 1);
      sum += off;
      squares += off * off;
    }
  }
  return std::abs(sum) / std::sqrt(squares);
}

TEST(RowCodecTest, RoundingIsFairInTheMeanAndOneThatIsNotIsFoundOut) {
  EXPECT_LT(MeanOff([](int commit, std::span<float> numbers) {
              RoundToBf16(1, CommitSeq(static_cast<uint64_t>(commit)), 7, numbers);
            }),
            5);
  const auto cut = [](int, std::span<float> numbers) {
    for (float& x : numbers) x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & ~0xffffu);
  };
  EXPECT_GT(MeanOff(cut), 20);
  // Coins of 15 bits of 16.
  const auto low = [](int commit, std::span<float> numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto coins =
          Philox({static_cast<uint32_t>(commit), static_cast<uint32_t>(i), 0, 0}, {1, 1});
      const uint32_t bits = std::bit_cast<uint32_t>(numbers[i]);
      numbers[i] = std::bit_cast<float>((bits + (coins[0] & 0x7fff)) & ~0xffffu);
    }
  };
  EXPECT_GT(MeanOff(low), 20);
}

// A small weight that gets a step far below its last place, again and again, arrives where it
// should; rounded to the nearest, it stays where it is.
TEST(RowCodecTest, SmallStepsAddUp) {
  float rounded = 1;
  double mean = 0;
  for (uint64_t row = 0; row < 50; ++row) {
    rounded = 1;
    for (uint64_t commit = 1; commit <= 1000; ++commit) {
      rounded += 0.001f;
      RoundToBf16(3, CommitSeq(commit), row, {&rounded, 1});
    }
    mean += rounded / 50;
  }
  EXPECT_NEAR(mean, 2, 0.1);
}

// A store whose learner has bfloat16 rows, held against a map of what was rounded.
class HalfRowsTest : public testing::Test {
 protected:
  StoreOptions Options(const std::string& root, bool bf16) const {
    StoreOptions options = TestOptionsAt(root);
    for (LearnerLayout& learner : options.learners) learner.rows.bf16 = bf16;
    return options;
  }
  StoreOptions Options(bool bf16 = true) const { return Options(folder_.root(), bf16); }

  void Train(Store& store, int commits, bool bf16 = true) {
    for (int i = 0; i < commits; ++i) {
      ASSERT_TRUE(Script::Step(store));
      const CommitSeq seq = store.Latest()->version();
      for (const uint64_t row : Script::RowsOf(seq.value)) {
        auto floats = model_.Row(row);
        Script::Change(seq.value, floats);
        const auto& table = learner_.rows.space.tables()[learner_.rows.space.TableOf(row)];
        if (bf16) RoundToBf16(learner_.rows.seed, seq, row, {floats.data(), table.dim});
        model_.Set(row, floats);
      }
    }
  }
  void Expect(Store& store) {
    ExpectRows(*store.Latest(), LearnerIndex(0), model_);
    // The trainer's rows are those that were committed, state included.
    std::vector<uint64_t> rows(learner_.rows.space.rows());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
    std::vector<float*> places(rows.size());
    ASSERT_TRUE(store.working_rows(LearnerIndex(0)).Gather(rows, places));
    for (const uint64_t row : rows) {
      const auto expected = model_.Row(row);
      ASSERT_EQ(std::vector<float>(places[row], places[row] + expected.size()), expected)
          << "row " << row;
    }
  }
  const LearnerLayout learner_ = TestLearners()[0];
  RowModel model_{&learner_.rows};
  const TestFolder folder_;
};

TEST_F(HalfRowsTest, AreServedLearntFromAndFoundAgain) {
  for (int life = 0; life < 4; ++life) {
    StoreOptions options = Options();
    options.fold_file_bytes = life % 2 == 0 ? 0 : 1 << 20;
    const auto store = MustOpen(options);
    Expect(*store);
    Train(*store, 3 + life);
    Expect(*store);
    if (life == 2) {
      ASSERT_TRUE(store->Settle());
    }
  }
  ASSERT_TRUE(Reshard({.path = folder_.store(), .shards = 3, .paths = {}}));
  StoreOptions options = Options();
  options.shards = 3;
  const auto store = MustOpen(options);
  Expect(*store);
  for (const CheckpointKind kind : {CheckpointKind::kRelease, CheckpointKind::kFull}) {
    const auto made =
        store->MakeCheckpoint({.kind = kind, .parent = folder_.root() + "/made", .schema = ""});
    ASSERT_TRUE(made) << made.error().message;
    const auto reader = OpenReadOnly(made->place.folder, "", TestLearners());
    ASSERT_TRUE(reader) << reader.error().message;
    ExpectRows(*reader->snapshot, LearnerIndex(0), model_);
  }
}

// A row that was stored as f32 is read, and stays so until it is changed; and the other way round.
TEST_F(HalfRowsTest, BothFormsLiveInOneStore) {
  for (const bool bf16 : {false, true, false, true}) {
    const auto store = MustOpen(Options(bf16));
    Expect(*store);
    Train(*store, 4, bf16);
    Expect(*store);
  }
}

TEST_F(HalfRowsTest, ARestartRoundsAsIfItHadNotBeen) {
  const TestFolder other;
  {
    const auto store = MustOpen(Options(other.root(), true));
    for (int i = 0; i < 9; ++i) ASSERT_TRUE(Script::Step(*store));
  }
  for (int life = 0; life < 3; ++life) Train(*MustOpen(Options()), 3);
  const auto store = MustOpen(Options(other.root(), true));
  ExpectRows(*store->Latest(), LearnerIndex(0), model_);
}

// A table's rows are made anew, with more numbers, out of those of half the size.
TEST_F(HalfRowsTest, BecomeLongerWithTheirModel) {
  LearnerLayout before = GrowthScript::Before(), after = GrowthScript::After();
  before.rows.bf16 = after.rows.bf16 = true;
  GrowthScript::Rows was;
  {
    const auto store = MustOpen(GrowthScript::Options(folder_.root(), before));
    for (uint64_t seq = 1; seq <= 5; ++seq)
      ASSERT_TRUE(GrowthScript::Step(*store, before.rows, Script::RowsOf(seq)));
    was = GrowthScript::RowsOf(*store, before.rows);
    ASSERT_TRUE(store->Settle());
  }
  StoreOptions options = GrowthScript::Options(folder_.root(), after);
  options.may_lose = true;
  const auto store = MustOpen(options);
  EXPECT_EQ(GrowthScript::RowsOf(*store, after.rows),
            GrowthScript::Grown(was, before.rows, after.rows));
}

TEST_F(HalfRowsTest, TakeHalfTheRoom) {
  std::array<uint64_t, 2> bytes{};
  for (const bool bf16 : {false, true}) {
    const TestFolder folder;
    StoreOptions options = TestOptionsAt(folder.root());
    options.learners = {MakeLearner("ctr", {{"site", 20000, 64, 1}})};
    options.learners[0].rows.bf16 = bf16;
    options.shards = 1;
    auto store = MustOpen(options);
    std::vector<uint64_t> rows(20000);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
    std::vector<float*> places(rows.size());
    WorkingRows& working = store->working_rows(LearnerIndex(0));
    ASSERT_TRUE(working.Gather(rows, places));
    working.MarkChanged(rows);
    CommitRequest request{.learners = {}, .source_identity = "source"};
    request.learners.push_back(
        {LearnerIndex(0), working.TakeDelta(), nullptr, "position", {TestCharge("ctr", 1)}});
    ASSERT_TRUE(store->Commit(std::move(request), {}));
    ASSERT_TRUE(store->Settle());
    store.reset();  // RocksDB removes tables that are no longer used
    bytes[bf16] = test::BytesBelow(folder.store() + "/rows", {".sst"});
  }
  EXPECT_LT(static_cast<double>(bytes[1]), 0.58 * static_cast<double>(bytes[0]));
}

}  // namespace
}  // namespace tacit::store
