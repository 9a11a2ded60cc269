// Lives in the product's own store, over a log of files, with what operators do in between: the
// second has other records, follows the tape of the first, and shows the same.
#include "tape/disk_life.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tape/seeds.h"

namespace tacit::tape {
namespace {

using privacy::Query;

void ExpectSame(const Case& tried, const Acts& acts, uint64_t seed) {
  SCOPED_TRACE(fmt::format("{}, seed {}", tried.name(), seed));
  const Subject subject(tried);
  const Records one(subject, seed), other = one.Beside(seed + 1'000'000);
  const Life led = LiveOnDisk(tried, one, {.seed = seed}, acts);
  const Life followed = LiveOnDisk(tried, other, {.seed = seed, .leads = &led}, acts);
  EXPECT_EQ(Difference(led, followed), "");
  EXPECT_EQ(led.unpaid, "");
  EXPECT_GT(led.commits.size(), 2u);
}

TEST(DiskLife, ARestoreOfACheckpointShowsTheSame) {
  const Acts acts{.restore = Acts::Restore::kCheckpoint};
  ExpectSame(CaseOf(Query::kGradient), acts, FirstSeed());
  ExpectSame(CaseOf(Query::kPeriodSums), acts, FirstSeed());
}

TEST(DiskLife, ARestoreOfAnOlderCopyShowsTheSame) {
  const Acts acts{.restore = Acts::Restore::kOlderCopy};
  ExpectSame(CaseOf(Query::kGradient), acts, FirstSeed());
  ExpectSame(CaseOf(Query::kSequenceGradient), acts, FirstSeed());
}

TEST(DiskLife, ARenamedLearnerShowsTheSame) {
  ExpectSame(CaseOf(Query::kSequenceGradient), {.renames = true}, FirstSeed());
}

TEST(DiskLife, AModelThatGrowsShowsTheSame) {
  ExpectSame(CaseOf(Query::kGradient), {.grows = true}, FirstSeed());
  ExpectSame(CaseOf(Query::kRowThreshold), {.grows = true}, FirstSeed());
}

}  // namespace
}  // namespace tacit::tape
