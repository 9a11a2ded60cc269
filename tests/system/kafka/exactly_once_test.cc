// The daemon beside a real broker, with everything going wrong: each event once, each bad one in
// the dead letters. The share of the campaign (tests/campaign/kafka) that a few minutes hold.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "system/kafka/violence.h"

namespace tacit {
namespace {

using test::Harm;
using test::Violence;

// A slow machine does all of it in this time, an idle one in a tenth.
constexpr std::chrono::seconds kTime(600);

void Suffer(const Harm& harm, std::chrono::seconds time, Violence::Options options) {
  const char* again = std::getenv("TACIT_TEST_VIOLENCE_SEED");  // of a run that failed
  const uint64_t seed = options.seed =
      again != nullptr ? std::stoull(again) : uint64_t{std::random_device{}()};
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Violence violence(options);
  if (testing::Test::HasFailure()) return;
  const Harm done = violence.Run(harm, std::chrono::steady_clock::now() + time);
  if (!testing::Test::HasFatalFailure()) violence.Finish();
  fmt::print("seed {}: {}\n{}\n", seed, done.Text(), violence.Figures());
  EXPECT_EQ(done.Text(), harm.Text());
}

TEST(ExactlyOnceTest, WhateverHappensToTheDaemon) {
  TACIT_NEED_BROKER(test::kDefaultVersion);
  Suffer({.daemon_kills = 12, .takeovers = 2, .refusals = 2, .growths = 1, .clock_steps = 1}, kTime,
         {.users = true});
}

TEST(ExactlyOnceTest, WhateverHappensToTheBroker) {
  TACIT_NEED_BROKER(test::kDefaultVersion);
  Suffer({.daemon_kills = 3, .broker_kills = 2, .broker_stops = 2, .cuts = 1}, kTime,
         {.dead_letter_topic = true});
}

}  // namespace
}  // namespace tacit
