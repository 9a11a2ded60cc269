#include "mechanism/ascending.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace tacit::mechanism {
namespace {

// Short lists asked for many rows and long ones for few; rows asked for twice; empty lists.
TEST(AscendingLookup, FindsWhatASetFinds) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 2000; ++round) {
    const uint64_t range = 1 + random() % 200;
    std::set<uint64_t> rows;
    std::multiset<uint64_t> asked;
    for (uint64_t i = random() % 100; i > 0; --i) rows.insert(random() % range);
    for (uint64_t i = random() % 100; i > 0; --i) asked.insert(random() % range);
    const std::vector<uint64_t> list(rows.begin(), rows.end());
    AscendingLookup lookup(list);
    for (uint64_t row : asked) {
      ASSERT_EQ(lookup.Contains(row), rows.contains(row)) << round;
      ASSERT_EQ(lookup.place(),
                static_cast<size_t>(std::distance(rows.begin(), rows.lower_bound(row))));
    }
  }
}

}  // namespace
}  // namespace tacit::mechanism
