#include "privacy/coverage.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <vector>

namespace tacit::privacy {
namespace {

// Every offset by itself. mu^2 in eighths, so that sums are exact.
struct NaiveCoverage {
  std::map<std::pair<std::string, int32_t>, std::map<uint64_t, double>> used;

  void Add(const std::string& topic, const std::vector<OffsetRange>& ranges, double mu_squared) {
    for (const OffsetRange& r : ranges)
      for (uint64_t o = r.begin; o < r.end; ++o) used[{topic, r.partition}][o] += mu_squared;
  }
  double Worst() const {
    double worst = 0;
    for (const auto& [place, offsets] : used)
      for (const auto& [offset, mu_squared] : offsets) worst = std::max(worst, mu_squared);
    return worst;
  }
};

Spending Mu(double mu_squared) { return {.mu_squared = mu_squared, .sampled = {}}; }

// The worst of spendings that are Gaussian only: there is at most one.
double Only(const std::vector<Spending>& worst) {
  EXPECT_LE(worst.size(), 1u);
  return worst.empty() ? 0 : worst[0].mu_squared;
}

struct RandomAdds {
  explicit RandomAdds(uint64_t seed) : generator(seed) {}
  uint64_t Below(uint64_t n) { return generator() % n; }
  std::string Topic() { return Below(4) == 0 ? "b" : "a"; }
  double MuSquared() { return static_cast<double>(Below(6)) / 8; }
  std::vector<OffsetRange> Ranges() {
    std::vector<OffsetRange> ranges(Below(4));
    for (OffsetRange& r : ranges) {
      r.partition = static_cast<int32_t>(Below(3)) - 1;
      r.begin = Below(100);
      r.end = r.begin + Below(30);
    }
    return ranges;
  }
  std::mt19937_64 generator;
};

TEST(Coverage, AgreesWithEveryOffsetByItself) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomAdds random(seed);
    Coverage coverage;
    NaiveCoverage naive;
    for (int i = 0; i < 40; ++i) {
      const std::string topic = random.Topic();
      const auto ranges = random.Ranges();
      const double mu_squared = random.MuSquared();
      NaiveCoverage after = naive;
      after.Add(topic, ranges, mu_squared);
      ASSERT_EQ(Only(coverage.WorstAfter(std::vector<Use>{{topic, ranges, Mu(mu_squared)}})),
                after.Worst());
      if (random.Below(4) == 0) continue;  // asking alone must change nothing
      coverage.Add({topic, ranges, Mu(mu_squared)});
      naive = after;
      ASSERT_EQ(Only(coverage.Worst()), naive.Worst());
    }
    auto decoded = Coverage::Decode(coverage.Encode());
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, coverage);
  }
}

TEST(Coverage, AddAllIsTheSumOffsetByOffset) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    RandomAdds random(seed);
    Coverage both[2];
    NaiveCoverage naive;
    for (int i = 0; i < 30; ++i) {
      const std::string topic = random.Topic();
      const auto ranges = random.Ranges();
      const double mu_squared = random.MuSquared();
      both[i % 2].Add({topic, ranges, Mu(mu_squared)});
      naive.Add(topic, ranges, mu_squared);
    }
    both[0].AddAll(both[1]);
    EXPECT_EQ(Only(both[0].Worst()), naive.Worst());
  }
}

TEST(Coverage, AContiguousStreamIsOneInterval) {
  Coverage coverage, once;
  const OffsetRange whole{0, 0, 2048 * 1000};
  once.Add({"t", {&whole, 1}, Mu(0.3)});
  for (uint64_t i = 0; i < 1000; ++i) {
    const OffsetRange step{0, 2048 * i, 2048 * (i + 1)};
    coverage.Add({"t", {&step, 1}, Mu(0.3)});
  }
  EXPECT_EQ(coverage, once);
  EXPECT_LT(coverage.Encode().size(), 100u);
}

TEST(Coverage, InfiniteStepsMerge) {
  Coverage coverage;
  const OffsetRange first{0, 0, 10}, second{0, 5, 20}, all{0, 0, 20};
  coverage.Add({"t", {&first, 1}, Mu(1)});
  coverage.Add({"t", {&second, 1}, Mu(2)});
  coverage.Add({"t", {&all, 1}, Mu(std::numeric_limits<double>::infinity())});
  auto decoded = Coverage::Decode(coverage.Encode());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, coverage);
}

TEST(Coverage, RefusesBytesThatAreNoCoverage) {
  Coverage coverage;
  const OffsetRange a{0, 3, 9}, b{1, 5, 7};
  coverage.Add({"topic", {&a, 1}, Mu(1)});
  coverage.Add({"topic", {&b, 1}, Mu(2)});
  const std::string bytes = coverage.Encode();
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(Coverage::Decode(std::string_view(bytes).substr(0, n))) << n;
  EXPECT_FALSE(Coverage::Decode(bytes + "x"));
  // The last step of a partition must be empty: its mu^2 is the 8 bytes before a count of 0.
  std::string open_end = bytes;
  open_end[open_end.size() - 6] = 0x10;
  EXPECT_FALSE(Coverage::Decode(open_end));
}

// The worse of two compositions depends on delta: neither is forgotten.
TEST(Coverage, KeepsEverySpendingThatNoOtherCovers) {
  Coverage coverage;
  const OffsetRange first{0, 0, 10}, second{0, 10, 20}, third{0, 20, 30}, both{0, 5, 15};
  const Spending often{.mu_squared = 0, .sampled = {{1.0, 0.01, 100}}};
  const Spending seldom{.mu_squared = 0, .sampled = {{1.0, 0.01, 40}}};
  const Spending other{.mu_squared = 0, .sampled = {{2.0, 0.5, 3}}};
  coverage.Add({"t", {&first, 1}, often});
  coverage.Add({"t", {&second, 1}, other});
  coverage.Add({"t", {&third, 1}, seldom});
  EXPECT_EQ(coverage.Worst().size(), 2u);
  EXPECT_EQ(coverage.WorstAfter(std::vector<Use>{{"t", {&second, 1}, other}}).size(), 2u);
  coverage.Add(
      {"t", {&both, 1}, seldom});  // 5-9: 140 of one kind; 10-14: 40 of it and 3 of the other
  ASSERT_EQ(coverage.Worst().size(), 2u);
  Spending most = often;
  most.Add(seldom);
  Spending mixed = other;
  mixed.Add(seldom);
  EXPECT_TRUE(coverage.Worst()[0] == most || coverage.Worst()[1] == most);
  EXPECT_TRUE(coverage.Worst()[0] == mixed || coverage.Worst()[1] == mixed);
  const auto decoded = Coverage::Decode(coverage.Encode());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, coverage);
  EXPECT_EQ(decoded->Worst().size(), 2u);
}

}  // namespace
}  // namespace tacit::privacy
