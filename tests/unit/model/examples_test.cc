#include "model/examples.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace tacit::model {
namespace {

struct Input {
  std::vector<uint64_t> row;
  std::vector<uint32_t> slot_end, unit_of;
  size_t slots = 1, units = 0;
};

Input RandomInput(std::mt19937_64& random) {
  Input in;
  in.slots = random() % 5;
  // From a handful of rows to ids that need all digits of the sort.
  const uint64_t id_space = uint64_t{1} << (1 + random() % 63);
  for (size_t i = random() % 60; i > 0; --i) {
    const uint32_t last = in.unit_of.empty() ? 0 : in.unit_of.back();
    in.unit_of.push_back(last + random() % 3);
    for (size_t s = 0; s < in.slots; ++s) {
      for (size_t k = random() % 4; k > 0; --k) in.row.push_back(random() % id_space);
      in.slot_end.push_back(static_cast<uint32_t>(in.row.size()));
    }
  }
  in.units = (in.unit_of.empty() ? 0 : in.unit_of.back() + 1) + random() % 3;
  return in;
}

void ExpectMatchesMap(const Input& in, const Activations& out) {
  std::map<uint64_t, uint32_t> place;
  for (uint64_t row : in.row) place[row] = 0;
  std::vector<uint64_t> rows;
  for (auto& [row, at] : place) {
    at = static_cast<uint32_t>(rows.size());
    rows.push_back(row);
  }
  ASSERT_EQ(out.rows, rows);
  ASSERT_EQ(out.slot_row.size(), in.row.size());
  for (size_t e = 0; e < in.row.size(); ++e) ASSERT_EQ(out.slot_row[e], place[in.row[e]]);

  std::vector<std::set<uint32_t>> of_unit(in.units);
  for (size_t i = 0, e = 0; i < in.unit_of.size() && in.slots > 0; ++i)
    for (; e < in.slot_end[(i + 1) * in.slots - 1]; ++e)
      of_unit[in.unit_of[i]].insert(place[in.row[e]]);
  ASSERT_EQ(out.units(), in.units);
  for (size_t u = 0; u < in.units; ++u) {
    const auto found = out.UnitRows(u);
    ASSERT_EQ(std::set<uint32_t>(found.begin(), found.end()), of_unit[u]);
    ASSERT_EQ(found.size(), of_unit[u].size()) << "a row twice in unit " << u;
  }
}

TEST(ActivationIndexer, MatchesMapsOnRandomBatches) {
  std::mt19937_64 random(99);
  ActivationIndexer indexer;  // reused, as is `out`: nothing of an earlier step may remain
  Activations out;
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE(round);
    const Input in = RandomInput(random);
    indexer.Index(in.row, in.slot_end, in.slots, in.unit_of, in.units, &out);
    ExpectMatchesMap(in, out);
    if (HasFatalFailure()) return;
  }
}

TEST(ActivationIndexer, HoldsAnEmptyBatch) {
  Activations out;
  ActivationIndexer().Index({}, {}, 26, {}, 0, &out);
  EXPECT_TRUE(out.rows.empty());
  EXPECT_EQ(out.units(), 0u);
}

}  // namespace
}  // namespace tacit::model
