// Producers' accidents are told by a daemon to its operator, and days like any other are not: one
// small stream of each kind that is told whenever it happens. tests/campaign/accidents has twenty
// of each, and counts the seconds.
#include <gtest/gtest.h>

#include <thread>

#include "system/accidents/scenario.h"

namespace tacit {
namespace {

using test::Happening;
using test::Scenario;

constexpr uint64_t kSeed = 20261125;
constexpr double kRecordsASecond = 1500;
// Windows of the watch have a second each, so it knows after some of them what is usual.
constexpr double kSecondsBefore = 13, kSecondsOfATwin = 7;

struct Outcome {
  bool began = false, early = false, told = false, read = false;
  std::string words;
};

Outcome Live(Happening happening) {
  Outcome outcome;
  Scenario scenario({.seed = kSeed + static_cast<uint64_t>(happening),
                     .happening = happening,
                     .records_a_second = kRecordsASecond,
                     .size = {.least = 100, .most = 200, .value_bits = 7}});
  outcome.began = scenario.Begin();
  if (!outcome.began) {
    outcome.words = scenario.log();
    return outcome;
  }
  // The watch's windows begin with what is read, and a busy daemon begins late.
  const testing::AssertionResult reads = test::Eventually("it reads", [&] {
    outcome.early = scenario.Pass(0.5, false).has_value();
    return outcome.early || scenario.RecordsRead() > 0;
  });
  outcome.early = outcome.early || (reads && scenario.Pass(kSecondsBefore, false).has_value());
  outcome.told = !outcome.early &&
                 (test::IsAccident(happening) ? scenario.PassUntilTold(test::kPatience)
                                              : scenario.Pass(kSecondsOfATwin, true).has_value());
  // Silence counts where the daemon has read what it should be silent about.
  outcome.read = static_cast<bool>(test::Eventually(
      "all is read", [&] { return scenario.RecordsRead() >= scenario.written(); }));
  outcome.words = scenario.ready() + scenario.log();
  return outcome;
}

// Two kinds of accident are left to the campaign: they are told once most users and values have
// come, which takes longer than a test should.
bool IsAlwaysTold(Happening happening) {
  return happening != Happening::kHalfOfTheUsersGone && happening != Happening::kAnotherTopic;
}

// All at a time: each waits for its own stream most of the while.
TEST(AccidentTest, AccidentsAreToldAndTheirTwinsAreNot) {
  std::vector<Happening> happenings;
  for (const Happening happening : test::kHappenings)
    if (IsAlwaysTold(happening)) happenings.push_back(happening);
  std::vector<Outcome> outcomes(happenings.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < outcomes.size(); ++i)
    threads.emplace_back([&, i] { outcomes[i] = Live(happenings[i]); });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    SCOPED_TRACE(test::NameOf(happenings[i]));
    EXPECT_TRUE(outcome.began) << outcome.words;
    EXPECT_TRUE(outcome.read) << outcome.words;
    EXPECT_FALSE(outcome.early) << "before anything happened: " << outcome.words;
    EXPECT_EQ(outcome.told, test::IsAccident(happenings[i])) << outcome.words;
  }
}

}  // namespace
}  // namespace tacit
