// Learners of random sizes, clips and optimisers, on all tapes: of two worlds that differ in a
// unit, of two that differ in everything, and of noise around nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "tape/life.h"
#include "tape/seeds.h"

namespace tacit::tape {
namespace {

constexpr uint64_t kRandomCases = 60;

bool IsAccepted(const Case& tried) {
  const test::TempDir dir;
  auto config = Configure(tried, dir.path());
  return config && wiring::Assemble(*std::move(config));
}

void ExpectNothingWrong(const Case& tried, uint64_t seed) {
  const Subject subject(tried);
  EXPECT_THAT(ReadTape(subject, seed).wrong, testing::IsEmpty());
  const Records one(subject, seed);
  for (const Records& leads : {one.Beside(seed + 1'000'000), one.Nothing()}) {
    const Life led = Live(subject, leads, {.seed = seed});
    EXPECT_EQ(Difference(led, Live(subject, one, {.seed = seed, .leads = &led})), "");
    EXPECT_EQ(led.unpaid, "");
  }
}

TEST(RandomCases, KeepToAllTapes) {
  const uint64_t first = FirstSeed();
  uint64_t tried = 0, refused = 0;
  for (uint64_t seed = first; tried < kRandomCases; ++seed) {
    const Case made = RandomCase(seed);
    if (!IsAccepted(made)) {
      ASSERT_LT(++refused, 2 * kRandomCases) << "most are refused";
      continue;
    }
    ++tried;
    SCOPED_TRACE(fmt::format("{}, {}, seed {}", made.name(), made.more, seed));
    ExpectNothingWrong(made, seed);
  }
  std::cout << fmt::format("{} configurations from seed {}, and {} were refused\n", tried, first,
                           refused);
}

}  // namespace
}  // namespace tacit::tape
