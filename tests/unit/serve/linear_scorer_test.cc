#include "serve/scoring/linear_scorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fake_snapshot.h"
#include "random_batch.h"

namespace tacit::serve {
namespace {

using model::linear::CategoryColumn;
using model::linear::Columns;
using model::linear::CrossColumn;
using model::linear::NumberColumn;
using model::linear::State;
using testing::HasSubstr;

std::shared_ptr<const Columns> SmallColumns() {
  return std::make_shared<const Columns>(
      std::vector<CategoryColumn>{{"C1", 100, false}, {"C2", 50, false}, {"tags", 30, true}},
      std::vector<NumberColumn>{{"I1", false}, {"I2", true}}, model::linear::Bins(),
      std::vector<CrossColumn>{{"C2*C1", 1, 0}, {"C1*I2", 0, 4}});
}

float WeightOf(uint64_t row) { return std::sin(static_cast<float>(row)) / 4; }

// A commit of weights that are a function of their rows.
class LinearSnapshot final : public store::Snapshot {
 public:
  explicit LinearSnapshot(std::shared_ptr<const std::string> released) : released_(released) {}

  CommitSeq version() const override { return CommitSeq(5); }
  const Digest& head() const override { return head_; }
  std::string lineage() const override { return "line-1"; }
  const std::vector<privacy::LedgerTotal>& learners() const override { return learners_; }
  const privacy::LedgerTotal& total() const override { return total_; }
  uint64_t ledger_entries() const override { return 0; }
  Result<std::vector<std::string>> LedgerEntries(uint64_t, uint64_t) const override { return {}; }
  std::shared_ptr<const store::DenseState> Dense(LearnerIndex) const override { return nullptr; }
  std::shared_ptr<const std::string> Released(LearnerIndex) const override { return released_; }
  Status Rows(LearnerIndex, std::span<const uint64_t> rows, std::span<float> out) const override {
    asked += rows.size();
    for (size_t i = 0; i < rows.size(); ++i) out[i] = broken ? NAN : factor * WeightOf(rows[i]);
    return {};
  }

  bool broken = false;
  float factor = 1;
  mutable size_t asked = 0;  // rows

 private:
  const std::shared_ptr<const std::string> released_;
  const Digest head_{};
  const std::vector<privacy::LedgerTotal> learners_;
  const privacy::LedgerTotal total_;
};

std::shared_ptr<const std::string> StateOf(const Columns& columns, double bias) {
  State state;
  state.periods = 2;
  state.bias = bias;
  state.priors.resize(columns.size());
  return std::make_shared<const std::string>(state.Encode(columns));
}

// Example i has value i of the first categories, i % 4 tags, and numbers that grow with i.
event::Batch SomeRows(const event::FeatureTransform& transform, size_t size) {
  event::Batch batch;
  transform.StartBatch(&batch);
  for (size_t i = 0; i < size; ++i) {
    batch.dense.push_back(static_cast<float>(i % 7) / 2);
    batch.dense.push_back(static_cast<float>(i));
    AppendSlots(
        transform,
        [&](size_t s) {
          std::vector<std::string> texts(s == 2 ? i % 4 : 1);
          for (size_t t = 0; t < texts.size(); ++t) texts[t] = std::to_string(i + t);
          return texts;
        },
        &batch);
  }
  return batch;
}

// Bias and weights in doubles, value by value.
double NaiveProbability(const Columns& columns, const event::Batch& batch, size_t example,
                        double bias) {
  double logit = bias;
  for (size_t s = 0; s < batch.slots; ++s) {
    const auto values = batch.Slot(example, s);
    for (const uint64_t row : values)
      logit += WeightOf(row) / std::sqrt(static_cast<double>(values.size()));
  }
  const float* const numbers = &batch.dense[example * batch.dense_width];
  const auto& bins = columns.bins();
  const auto tables = columns.space().tables();
  const float z[2] = {numbers[0], std::copysign(std::log1p(std::fabs(numbers[1])), numbers[1])};
  for (size_t d = 0; d < 2; ++d) logit += WeightOf(tables[3 + d].first + bins.Of(z[d]));
  const uint64_t c1 = batch.Slot(example, 0)[0], c2 = batch.Slot(example, 1)[0] - 100;
  logit += WeightOf(tables[5].first + c2 * 100 + c1);
  logit += WeightOf(tables[6].first + c1 * bins.values() + bins.Of(z[1]));
  return 1 / (1 + std::exp(-logit));
}

struct Subject {
  std::shared_ptr<const event::FeatureTransform> transform =
      std::make_shared<const event::FeatureTransform>(SmallSchema());
  std::shared_ptr<const Columns> columns = SmallColumns();
  std::unique_ptr<RowScorer> scorer =
      MakeLinearModel(LearnerIndex(0), "sums", transform, columns)->MakeScorer();
};

TEST(LinearScorer, AgreesWithPlainLoops) {
  Subject subject;
  const LinearSnapshot snapshot(StateOf(*subject.columns, -1.5));
  for (const size_t size : {1u, 7u, 256u, 600u}) {  // 600: more than one chunk
    const event::Batch batch = SomeRows(*subject.transform, size);
    std::vector<float> scores(size);
    ASSERT_TRUE(subject.scorer->Score(snapshot, batch, scores));
    for (size_t i = 0; i < size; ++i)
      ASSERT_NEAR(scores[i], NaiveProbability(*subject.columns, batch, i, -1.5), 1e-5)
          << i << " of " << size;
  }
}

TEST(LinearScorer, ANewReleaseIsReadAtOnce) {
  Subject subject;
  const event::Batch batch = SomeRows(*subject.transform, 3);
  std::vector<float> before(3), after(3), again(3);
  const LinearSnapshot first(StateOf(*subject.columns, -1)), second(StateOf(*subject.columns, 1));
  ASSERT_TRUE(subject.scorer->Score(first, batch, before));
  ASSERT_TRUE(subject.scorer->Score(second, batch, after));
  ASSERT_TRUE(subject.scorer->Score(first, batch, again));
  for (size_t i = 0; i < 3; ++i) EXPECT_GT(after[i], before[i]);
  EXPECT_EQ(before, again);
}

// Weights are remembered as long as the release stands. The second release has others, which a memo
// that is kept for too long would not show.
TEST(LinearScorer, WeightsAreReadOncePerRelease) {
  Subject subject;
  const auto released = StateOf(*subject.columns, -1);
  LinearSnapshot first(released), next_commit(released), second(StateOf(*subject.columns, -1));
  second.factor = -2;
  const event::Batch batch = SomeRows(*subject.transform, 200);
  std::vector<float> scores(200), again(200), after(200);
  ASSERT_TRUE(subject.scorer->Score(first, batch, scores));
  EXPECT_GT(first.asked, 100u);
  ASSERT_TRUE(subject.scorer->Score(next_commit, batch, again));
  EXPECT_LT(next_commit.asked, first.asked / 10) << "another learner's commit";
  EXPECT_EQ(scores, again);
  ASSERT_TRUE(subject.scorer->Score(second, batch, after));
  const auto logit = [](float p) { return std::log(p / (1 - p)); };
  for (size_t i = 0; i < 200; ++i)
    ASSERT_NEAR(logit(after[i]) + 1, -2 * (logit(scores[i]) + 1), 1e-4);
}

// Versions that answer in turn, as with a canary: each keeps what it has read, and its own weights.
TEST(LinearScorer, VersionsThatAlternateAreReadOnceEach) {
  Subject subject;
  const event::Batch batch = SomeRows(*subject.transform, 100);
  std::vector<std::unique_ptr<LinearSnapshot>> versions;
  for (int i = 0; i < 3; ++i) {
    versions.push_back(std::make_unique<LinearSnapshot>(StateOf(*subject.columns, i)));
    versions.back()->factor = static_cast<float>(i + 1);
  }
  std::vector<std::vector<float>> first(3, std::vector<float>(100)), again = first;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(subject.scorer->Score(*versions[i], batch, first[i]));
  const size_t asked = versions[0]->asked;
  for (int turn = 0; turn < 4; ++turn)
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(subject.scorer->Score(*versions[i], batch, again[i]));
      ASSERT_EQ(first[i], again[i]);
    }
  for (const auto& version : versions) EXPECT_LT(version->asked, asked + asked / 2);
  // A fifth release takes the place of the one that was used longest ago.
  for (int i = 3; i < 6; ++i) {
    versions.push_back(std::make_unique<LinearSnapshot>(StateOf(*subject.columns, i)));
    ASSERT_TRUE(subject.scorer->Score(*versions[i], batch, again[0]));
  }
  ASSERT_TRUE(subject.scorer->Score(*versions[0], batch, again[0]));
  EXPECT_EQ(first[0], again[0]);
}

TEST(LinearScorer, WhatIsDamagedIsReadAgain) {
  Subject subject;
  LinearSnapshot snapshot(StateOf(*subject.columns, 0));
  const event::Batch batch = SomeRows(*subject.transform, 1);
  std::vector<float> scores(1);
  snapshot.broken = true;
  EXPECT_FALSE(subject.scorer->Score(snapshot, batch, scores));
  snapshot.broken = false;
  EXPECT_TRUE(subject.scorer->Score(snapshot, batch, scores));
}

TEST(WeightMemo, RowsOfOnePlaceDriveEachOtherOut) {
  WeightMemo memo;
  for (uint64_t row = 0; row < 100'000; ++row) memo.Keep(row, WeightOf(row));
  size_t kept = 0;
  for (uint64_t row = 0; row < 100'000; ++row) {
    float weight = 0;
    if (!memo.Find(row, &weight)) continue;
    ++kept;
    ASSERT_EQ(weight, WeightOf(row));
  }
  EXPECT_GT(kept, 10'000u);
  EXPECT_LE(kept, 16'384u);
  memo.Clear();
  float weight = 0;
  EXPECT_FALSE(memo.Find(99'999, &weight));
}

TEST(LinearScorer, FailuresNameTheLearner) {
  Subject subject;
  const event::Batch batch = SomeRows(*subject.transform, 1);
  std::vector<float> scores(1);
  const Status none = subject.scorer->Score(LinearSnapshot(nullptr), batch, scores);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(none.error().message, HasSubstr("'sums' has no committed model yet"));

  const Status damaged = subject.scorer->Score(
      LinearSnapshot(std::make_shared<const std::string>("nonsense")), batch, scores);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, ErrorCode::kCorruption);
  EXPECT_THAT(damaged.error().message, HasSubstr("'sums': version 5"));

  LinearSnapshot broken(StateOf(*subject.columns, 0));
  broken.broken = true;
  const Status numbers = subject.scorer->Score(broken, batch, scores);
  ASSERT_FALSE(numbers);
  EXPECT_THAT(numbers.error().message, HasSubstr("scores that are not numbers"));
}

}  // namespace
}  // namespace tacit::serve
