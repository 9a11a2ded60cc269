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
// The watch knows what is usual after some of its windows, of a second and 500 records at least.
constexpr int kWindowsBefore = 12;
constexpr double kSecondsOfAWindow = 1.1, kRecordsOfAWindow = 600, kSecondsOfATwin = 7;

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
  const auto reads_all = [&] {
    return static_cast<bool>(test::Eventually(
        "all is read", [&] { return scenario.RecordsRead() >= scenario.written(); }));
  };
  // A window ends with what is read, and a busy daemon reads late.
  outcome.read = true;
  for (int windows = 0; outcome.read && !outcome.early && windows < kWindowsBefore;) {
    const double before = scenario.written();
    outcome.early = scenario.Pass(kSecondsOfAWindow, false).has_value();
    outcome.read = reads_all();
    windows += scenario.written() - before >= kRecordsOfAWindow ? 1 : 0;
  }
  outcome.told = outcome.read && !outcome.early &&
                 (test::IsAccident(happening) ? scenario.PassUntilTold(test::kPatience)
                                              : scenario.Pass(kSecondsOfATwin, true).has_value());
  // Silence counts where the daemon has read what it should be silent about.
  outcome.read = outcome.read && reads_all();
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
