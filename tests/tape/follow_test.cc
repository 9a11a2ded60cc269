// Lives of learners that have nothing in common but the public frame of their records: the second
// follows the tape of the first, and all that it shows is the same to the last bit. The bill covers
// what was asked, over starts at any step, and where training ends early.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tape/life.h"
#include "tape/seeds.h"

namespace tacit::tape {
namespace {

using testing::HasSubstr;

constexpr uint64_t kLives = 3;  // of each case

// Two lives that show the same, and pay for what they ask.
void ExpectSame(const Subject& subject, const Records& one, const Records& other,
                Circumstances circumstances, const std::string& end) {
  SCOPED_TRACE(fmt::format("{}, seed {}", subject.tried().name(), circumstances.seed));
  const Life led = Live(subject, one, circumstances);
  circumstances.leads = &led;
  EXPECT_EQ(Difference(led, Live(subject, other, circumstances)), "");
  EXPECT_EQ(Unpaid(led), "");
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
