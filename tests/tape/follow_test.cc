// Lives of learners that have nothing in common but the public frame of their records: the second
// follows the tape of the first, and all that it shows is the same to the last bit. The bill covers
// what was asked, over starts at any step, and where training ends early.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "tape/life.h"
#include "tape/seeds.h"

namespace tacit::tape {
namespace {

using testing::HasSubstr;

constexpr uint64_t kLives = 2;  // of each case

// Two lives that show the same, and pay for what they ask.
void ExpectSame(const Subject& subject, const Records& one, const Records& other,
                Circumstances circumstances, const std::string& end) {
  SCOPED_TRACE(fmt::format("{}, seed {}", subject.tried().name(), circumstances.seed));
  const Life led = Live(subject, one, circumstances);
  circumstances.leads = &led;
  EXPECT_EQ(Difference(led, Live(subject, other, circumstances)), "");
  EXPECT_EQ(led.unpaid, "");
  EXPECT_THAT(led.end, HasSubstr(end));
  EXPECT_FALSE(led.commits.empty());
}

TEST(Follow, AnyTwoStreamsShowTheSameOnOneTape) {
  const uint64_t first = FirstSeed();
  for (const Case& tried : AllCases()) {
    const Subject subject(tried);
    for (uint64_t seed = first; seed < first + kLives; ++seed) {
      const Records one(subject, seed);
      ExpectSame(subject, one, one.Beside(seed + 1'000'000), {.seed = seed}, "");
    }
  }
}

TEST(Follow, AStreamShowsTheSameOnATapeOfNoiseAroundNothing) {
  const uint64_t first = FirstSeed();
  for (const Case& tried : AllCases()) {
    const Subject subject(tried);
    for (uint64_t seed = first; seed < first + kLives; ++seed) {
      const Records one(subject, seed);
      ExpectSame(subject, one.Nothing(), one, {.seed = seed}, "");
    }
  }
}

// Each of the two worlds cuts its own steps: nobody else is in another step because of the unit.
// (Samples are drawn in the order of records, so that one coin fewer is another sample.)
TEST(Follow, AUnitMovesNothingBeyondItsBoundWhereEachWorldCutsItsSteps) {
  const uint64_t first = FirstSeed();
  std::map<std::string, double> most;
  for (const Case& tried : AllCases()) {
    if (tried.mode == privacy::ParticipationMode::kPoisson ||
        tried.query == privacy::Query::kRepresentation)
      continue;
    const Subject subject(tried);
    for (uint64_t seed = first; seed < first + kLives; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", tried.name(), seed));
      const Records with(subject, seed);
      const Life led = Live(subject, with, {.seed = seed});
      const Life followed = Live(subject, with.WithoutUnit(), {.seed = seed, .leads = &led});
      EXPECT_EQ(Difference(led, followed), "");
      for (const auto& [query, moved] : followed.moved) {
        EXPECT_LE(moved, 1 + 1e-12) << query;
        most[query] = std::max(most[query], moved);
      }
    }
  }
  for (const char* query : {"gradient", "histogram", "sums", "threshold", "clip"})
    EXPECT_GT(most[query], 0.5) << query;
}

TEST(Follow, ABudgetEndsBothLivesAtOneStep) {
  const uint64_t seed = FirstSeed();
  for (const Case& tried : AllCases()) {
    const Subject subject(tried);
    const Records one(subject, seed);
    const double all = Live(subject, one, {.seed = seed}).commits.back().mu_squared;
    ExpectSame(subject, one, one.Beside(seed + 1'000'000), {.seed = seed, .budget = 0.7 * all},
               "the budget is spent");
  }
}

TEST(Follow, AModelThatStopsBeingNumbersEndsBothLivesAtOneStep) {
  const uint64_t seed = FirstSeed();
  for (const auto mode :
       {privacy::ParticipationMode::kOnce, privacy::ParticipationMode::kPoisson}) {
    Case tried = CaseOf(privacy::Query::kGradient, mode);
    tried.model = "{kind: pctr, hidden: [12, 12]}";
    tried.mechanism = "{kind: dp-sgd, gradient_clip: 1.0e6}";
    tried.more = "optimizer: {kind: sgd, learning_rate: 1.0e6}, ";
    const Subject subject(tried);
    const Records one(subject, seed);
    ExpectSame(subject, one, one.Beside(seed + 1'000'000), {.seed = seed}, "number");
    ExpectSame(subject, one.Nothing(), one, {.seed = seed}, "number");
  }
}

}  // namespace
}  // namespace tacit::tape
