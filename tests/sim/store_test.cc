// A store with all of RocksDB's threads under the simulation: one seed, one trace, one set of
// files.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "../unit/store/script.h"
#include "support/files_below.h"
#include "support/process.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

struct Life {
  test::Ended ended;
  std::map<std::string, std::string> files;  // by path
};

Life Live(const std::string& root, uint64_t seed, const std::vector<std::string>& before = {}) {
  for (const auto& entry : fs::directory_iterator(root)) fs::remove_all(entry);
  std::vector<std::string> command = before;
  command.insert(command.end(), {TACIT_SIM_STORE_CHILD, root, std::to_string(seed)});
  Life life{.ended = test::Run(command), .files = {}};
  for (const fs::path& path : test::FilesBelow(root)) life.files[path] = test::ReadFile(path);
  return life;
}

TEST(SimulatedStore, OneSeedGivesOneTraceAndTheSameFilesWhereverTheProgramLies) {
  const TestFolder folder;
  std::set<std::string> traces;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Life first = Live(folder.root(), seed);
    ASSERT_EQ(first.ended.exit_code, 0)
        << "seed " << seed << ": " << first.ended.out << first.ended.err;
    // Another environment moves the stack, and the system moves the rest.
    const Life second =
        Live(folder.root(), seed, {"/usr/bin/env", "PADDING=" + std::string(5000, 'x')});
    EXPECT_EQ(first.ended.out, second.ended.out) << "seed " << seed;
    EXPECT_GT(first.files.size(), 50);
    EXPECT_EQ(first.files.size(), second.files.size());
    for (const auto& [path, bytes] : first.files)
      EXPECT_TRUE(second.files.contains(path) && second.files.at(path) == bytes)
          << "seed " << seed << ": " << path;
    traces.insert(first.ended.out);
  }
  EXPECT_EQ(traces.size(), 8);
}

}  // namespace
}  // namespace tacit::store
