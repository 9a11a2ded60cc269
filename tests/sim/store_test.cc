// A store with all of RocksDB's threads under the simulation: one seed, one trace, one set of
// files.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "support/process.h"

namespace tacit::store {
namespace {

test::Ended RunChild(uint64_t seed, std::vector<std::string> before = {}) {
  before.insert(before.end(), {TACIT_SIM_STORE_CHILD, std::to_string(seed)});
  return test::Run(before);
}

TEST(SimulatedStore, OneSeedGivesOneTraceAndTheSameFilesWhereverTheProgramLies) {
  std::set<std::string> traces;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const test::Ended first = RunChild(seed);
    ASSERT_EQ(first.exit_code, 0) << "seed " << seed << ": " << first.out << first.err;
    // Another environment moves the stack, and the system moves the rest.
    const std::string padding = "PADDING=" + std::string(5000, 'x');
    EXPECT_EQ(first.out, RunChild(seed, {"/usr/bin/env", padding}).out) << "seed " << seed;
    traces.insert(first.out);
  }
  EXPECT_EQ(traces.size(), 8);
}

}  // namespace
}  // namespace tacit::store
