// A store of one process under the simulation: it follows script.h in a few lives, with readers
// beside it, folds, a checkpoint and a settling.
//   sim_store_child SEED
// Prints the trace of the run and a digest of its disk; exits with 0 if all was as the script says,
// and with 3 if the run could not go on.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "../unit/store/script.h"
#include "sim/border.h"
#include "sim/disk.h"
#include "sim/simulation.h"

namespace tacit::store {
namespace {

constexpr uint64_t kCommits = 12, kLives = 2;

void Live(const StoreOptions& options, uint64_t last) {
  auto store = Store::Open(options);
  ASSERT_TRUE(store) << store.error().message;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      Script::ExpectSnapshot(*(*store)->Latest());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  while ((*store)->Latest()->version().value < last) {
    const Status stepped = Script::Step(**store);
    EXPECT_TRUE(stepped) << stepped.error().message;
    if (!stepped) break;
  }
  const auto made = (*store)->MakeCheckpoint(
      {.kind = CheckpointKind::kFull, .parent = options.path + "/../checkpoints", .schema = ""});
  EXPECT_TRUE(made) << made.error().message;
  const Status settled = (*store)->Settle();
  EXPECT_TRUE(settled) << settled.error().message;
  done = true;
  reader.join();
  Script::ExpectSnapshot(*(*store)->Latest());
  EXPECT_EQ((*store)->Latest()->version().value, last);
}

int Main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const std::string& complaint : sim::CheckBorder(TACIT_SOURCE_DIR "/tests/sim/calls.txt"))
    ADD_FAILURE() << complaint;
  StoreOptions options = TestOptionsAt("/root");
  const sim::Disk::Owned disk = sim::Disk::Make();
  const sim::Options run{.seed = std::strtoull(argv[1], nullptr, 10),
                         .disk = disk.get(),
                         .time_most = std::chrono::minutes(2)};
  const auto outcome = sim::Simulate(run, [&] {
    for (uint64_t life = 1; life <= kLives; ++life) {
      options.fold_file_bytes = life == 1 ? 1 << 20 : 0;
      Live(options, life * kCommits / kLives);
    }
  });
  std::printf("trace %016llx, disk %016llx, %llu calls, %llu turns, %llu threads, %lld us\n%s",
              static_cast<unsigned long long>(outcome.trace),
              static_cast<unsigned long long>(disk->Digest()),
              static_cast<unsigned long long>(outcome.calls),
              static_cast<unsigned long long>(outcome.turns),
              static_cast<unsigned long long>(outcome.threads),
              static_cast<long long>(outcome.time.count() / 1000), outcome.finding.c_str());
  std::fflush(stdout);
  if (!outcome.finding.empty()) return 3;
  return ::testing::Test::HasFailure() ? 1 : 0;
}

}  // namespace
}  // namespace tacit::store

// RocksDB's threads stay, so nothing that they stand on may be taken down.
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  std::_Exit(tacit::store::Main(argc, argv));
}
