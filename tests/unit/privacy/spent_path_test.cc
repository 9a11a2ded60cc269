#include "privacy/spent_path.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ledger_fixture.h"

namespace tacit::privacy {
namespace {

constexpr int64_t kSpentDay = 86400 * 1000;

class SpentPathTest : public ::testing::Test {
 protected:
  void Declare(Unit unit, uint64_t allowance = 0) {
    Promise promise = PromiseOf("ctr");
    promise.unit = unit;
    promise.bounds.allowance = allowance;
    ASSERT_TRUE(ledger.Declare(promise));
  }
  // Notes what the ledger itself said after each step.
  void Step(int64_t day, uint64_t begin, uint64_t end) {
    const CommitCharge step = StepOf("ctr", begin, end);
    ledger.Append(CommitSeq(++commit), day * kSpentDay, {&step, 1}, kSalt, "test");
    truth.push_back({day * kSpentDay, commit, ledger.entries().back().worst});
  }
  // The largest difference of the path, between its moments a staircase, from what was so.
  double WorstError(const std::vector<SpentMoment>& path) const {
    double worst = 0;
    for (const SpentMoment& moment : truth)
      worst = std::max(
          worst, std::abs(SpentAt(path, moment.time_ms).mu_squared - moment.worst.mu_squared));
    return worst;
  }

  Ledger ledger;
  uint64_t commit = 0;
  std::vector<SpentMoment> truth;
};

TEST_F(SpentPathTest, NothingIsSpentBeforeTheFirstStep) {
  Declare(Unit::kEvent);
  EXPECT_TRUE(SpentPath(ledger.entries(), "ctr", 60).empty());
  EXPECT_TRUE(SpentAt({}, 5).empty());
  Step(3, 0, 10);
  const auto path = SpentPath(ledger.entries(), "ctr", 60);
  EXPECT_TRUE(SpentAt(path, 3 * kSpentDay - 1).empty());
  EXPECT_EQ(SpentAt(path, 3 * kSpentDay).mu_squared, 0.25);
  EXPECT_TRUE(SpentPath(ledger.entries(), "other", 60).empty());
}

// Records that are used once cost what the first of them did, however many follow.
TEST_F(SpentPathTest, FreshRecordsCostOnce) {
  Declare(Unit::kEvent);
  for (int i = 0; i < 40; ++i) Step(i, 10 * i, 10 * i + 10);
  ASSERT_EQ(ledger.entries().size(), 1u);
  const auto path = SpentPath(ledger.entries(), "ctr", 60);
  EXPECT_EQ(WorstError(path), 0);
  EXPECT_EQ(path.back().steps, 40u);
  EXPECT_EQ(path.back().time_ms, 39 * kSpentDay);
}

// A user pays for each step until the allowance is used: the curve rises, and is level then.
TEST_F(SpentPathTest, AUserPaysUntilTheAllowanceIsUsed) {
  Declare(Unit::kUser, 25);
  for (int i = 0; i < 40; ++i) Step(i, 0, 10);
  ASSERT_EQ(ledger.entries().size(), 1u);
  const auto path = SpentPath(ledger.entries(), "ctr", 60);
  EXPECT_LT(WorstError(path), 1e-12);
  EXPECT_EQ(path.back().worst.mu_squared, 25 * 0.25);
  // A straight line over the run, as an entry by itself would have it, is far from that.
  const std::vector<SpentMoment> line = {path.front(), path.back()};
  EXPECT_GT(WorstError(line), 1);
  // Fewer moments are never above what was spent.
  const auto few = SpentPath(ledger.entries(), "ctr", 6);
  EXPECT_LE(few.size(), 7u);
  for (const SpentMoment& moment : truth)
    EXPECT_LE(SpentAt(few, moment.time_ms).mu_squared, moment.worst.mu_squared + 1e-12);
  EXPECT_EQ(few.back().worst, path.back().worst);
}

// The second pass over the same records is an entry of its own, and costs at its beginning.
TEST_F(SpentPathTest, AnotherPassCostsWhenItBegins) {
  Declare(Unit::kEvent);
  for (int i = 0; i < 30; ++i) Step(i, 10 * (i % 10), 10 * (i % 10) + 10);
  const auto path = SpentPath(ledger.entries(), "ctr", 60);
  EXPECT_LT(WorstError(path), 1e-12);
  EXPECT_EQ(path.back().worst.mu_squared, 0.75);
  EXPECT_EQ(path.back().steps, 30u);
}

}  // namespace
}  // namespace tacit::privacy
