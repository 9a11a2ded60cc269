// Tests a store on disks that fail, fill up or lose their power at a random write: no commit that a
// reader could have seen is lost, and none is torn. The number of runs is TACIT_FAULT_RUNS of each
// kind, or a few; a failure prints its seed.
#include <gmock/gmock.h>
#include <signal.h>

#include <array>
#include <cstdlib>
#include <random>

#include "recovered.h"
#include "support/process.h"

namespace tacit::store {
namespace {

using test::Ended;

Ended RunChild(const TestFolder& folder, const std::string& kind, uint64_t write, uint64_t seed) {
  return test::Run(
      {TACIT_FAULTY_CHILD, folder.root(), kind, std::to_string(write), std::to_string(seed)});
}

uint64_t Runs() {
  const char* const runs = std::getenv("TACIT_FAULT_RUNS");
  return runs == nullptr ? 8 : std::strtoull(runs, nullptr, 10);
}

// The writes of a run without a fault.
uint64_t AllWrites() {
  const TestFolder folder;
  const Ended whole = RunChild(folder, "power", 0, 0);
  EXPECT_EQ(whole.exit_code, 0) << whole.out << whole.err;
  ExpectRecovered(folder.root());
  const uint64_t writes = std::strtoull(whole.out.c_str(), nullptr, 10);
  EXPECT_GT(writes, 200u) << whole.out;
  return writes;
}

class FaultyDiskTest : public testing::TestWithParam<const char*> {};

TEST_P(FaultyDiskTest, LosesNothingThatWasSeen) {
  const std::string kind = GetParam();
  const uint64_t writes = AllWrites(), first = std::random_device()();
  uint64_t aborted = 0;
  for (uint64_t seed = first; seed < first + Runs(); ++seed) {
    const uint64_t write = 1 + std::mt19937_64(seed)() % writes;
    SCOPED_TRACE(kind + " at write " + std::to_string(write) + " with seed " +
                 std::to_string(seed));
    const TestFolder folder;
    const Ended ended = RunChild(folder, kind, write, seed);
    const bool power = kind == "power" || kind == "torn";
    // Threads write in another order each time, so that the last writes may not be reached.
    if (ended.exit_code != 0 || ended.signal != 0) {
      if (power) {
        ASSERT_EQ(ended.signal, SIGKILL) << ended.out << ended.err;
      } else if (ended.signal != 0) {
        // Debian's RocksDB has assertions where the disk fails while it opens or closes.
        ASSERT_EQ(ended.signal, SIGABRT) << ended.out << ended.err;
        ++aborted;
      } else {
        ASSERT_EQ(ended.exit_code, 3) << ended.out << ended.err;
      }
    }
    ExpectRecovered(folder.root());
    if (HasFatalFailure()) return;
  }
  RecordProperty("aborted", std::to_string(aborted));
}

// The making of a store and its first commit, with a disk that fails at the first write, at the
// second, and so on until there are no more.
TEST(FirstCommitTest, MeetsAFailureAtEveryWrite) {
  for (const std::string kind : {"first-full", "first-broken"}) {
    uint64_t write = 1;
    for (bool reached = true; reached; ++write) {
      SCOPED_TRACE(kind + " at write " + std::to_string(write));
      const TestFolder folder;
      const Ended ended = RunChild(folder, kind, write, write);
      // RocksDB goes on after some failures, such as one of its own log for people.
      reached = ended.exit_code != 0 || std::strtoull(ended.out.c_str(), nullptr, 10) >= write;
      if (ended.signal != 0) {
        ASSERT_EQ(ended.signal, SIGABRT) << ended.out << ended.err;
      } else {
        ASSERT_TRUE(ended.exit_code == 0 || ended.exit_code == 3) << ended.out << ended.err;
      }
      ExpectRecovered(folder.root());
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(write, 20u) << kind;
    RecordProperty(kind, std::to_string(write));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FaultyDiskTest, testing::Values("full", "broken", "power", "torn"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace tacit::store
