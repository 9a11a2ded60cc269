// A process that follows script.h on a disk that fails, or loses its power, at a chosen write. It
// commits, folds, makes full checkpoints and cuts shards anew.
//   store_faulty_child ROOT full|broken|power|torn WRITE SEED
//   store_faulty_child ROOT first-full|first-broken WRITE SEED    one commit, and no more
// Exits with 0 if all went well, and with 3 if the disk failed and every failure was reported.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "faulty_disk.h"
#include "script.h"
#include "store/care/reshard.h"

namespace tacit::store {
namespace {

constexpr uint64_t kCommits = 9;

// Returns the first failure.
Status Work(const std::string& root) {
  StoreOptions options = TestOptionsAt(root);
  options.shards = 0;
  options.memory_bytes = uint64_t{32} << 20;
  for (uint32_t life = 0; life < 3; ++life) {
    // Folds write files in one life, and go through the log in the next.
    options.fold_file_bytes = life == 1 ? 1 << 20 : 0;
    {
      TACIT_ASSIGN(const auto store, Store::Open(options));
      while (store->Latest()->version().value < (life + 1) * kCommits / 3)
        TACIT_RETURN_IF_ERROR(Script::Step(*store));
      const auto made = store->MakeCheckpoint(
          {.kind = CheckpointKind::kFull, .parent = root + "/checkpoints", .schema = ""});
      if (!made) return Fail(made.error());
      if (life != 1) TACIT_RETURN_IF_ERROR(store->Settle());
    }
    const auto cut = Reshard({.path = options.path, .shards = 2 + life, .paths = {}});
    if (!cut) return Fail(cut.error());
  }
  return {};
}

Status FirstCommit(const std::string& root) {
  TACIT_ASSIGN(const auto store, Store::Open(TestOptionsAt(root)));
  return Script::Step(*store);
}

int Main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string root = argv[1], words = argv[2];
  const bool first = words.starts_with("first-");
  const std::string kind = first ? words.substr(6) : words;
  test::DiskFault fault{.kind = test::DiskFault::Kind::kPowerLoss,
                        .folder = root,
                        .write = std::strtoull(argv[3], nullptr, 10),
                        .torn = kind == "torn",
                        .seed = std::strtoull(argv[4], nullptr, 10)};
  if (kind == "full") fault.kind = test::DiskFault::Kind::kFull;
  if (kind == "broken") fault.kind = test::DiskFault::Kind::kBroken;
  test::BreakDisk(fault);
  const Status status = first ? FirstCommit(root) : Work(root);
  std::printf("%llu writes%s%s\n", static_cast<unsigned long long>(test::DiskWrites()),
              status ? "" : ": ", status ? "" : status.error().message.c_str());
  std::fflush(stdout);
  return status ? 0 : 3;
}

}  // namespace
}  // namespace tacit::store

int main(int argc, char** argv) { return tacit::store::Main(argc, argv); }
