#include "base/radix_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace tacit {
namespace {

TEST(RadixSortTest, SortsAsTheLibraryDoes) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto key = [](const std::pair<uint64_t, size_t>& one) { return one.first; };
  std::vector<std::pair<uint64_t, size_t>> work;
  for (const size_t n : {0, 1, 2, 700, 5000}) {
    for (const uint64_t most : {uint64_t{1}, uint64_t{2048}, uint64_t{2049}, uint64_t{1} << 22,
                                uint64_t{1} << 32, UINT64_MAX}) {
      std::vector<std::pair<uint64_t, size_t>> values;
      for (size_t i = 0; i < n; ++i) values.emplace_back(random() % most, i);
      std::vector<std::pair<uint64_t, size_t>> sorted = values;
      std::ranges::stable_sort(sorted, {}, key);
      RadixSort(&values, &work, key);
      EXPECT_EQ(values, sorted) << n << " values below " << most;
    }
  }
}

}  // namespace
}  // namespace tacit
