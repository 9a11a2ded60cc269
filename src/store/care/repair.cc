#include "store/care/repair.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/crash_point.h"
#include "base/text.h"
#include "store/disk/file_digest.h"
#include "store/disk/folder.h"
#include "store/disk/log_damage.h"
#include "store/disk/seal.h"
#include "store/store.h"
#include "store/view/fold.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMemoryBytes = uint64_t{64} << 20;

// The one list of tables in the folder; a failure if there are none or several, or it is damaged.
Result<std::string> OnlyListOfTables(const std::string& path) {
  std::vector<std::string> lists;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
    if (entry.path().filename().string().starts_with("MANIFEST-"))
      lists.push_back(entry.path().filename());
  if (lists.size() != 1)
    return Fail(ErrorCode::kCorruption,
                fmt::format("{}/CURRENT names no list of tables, and there are {} of them: which "
                            "one is in force cannot be told",
                            path, lists.size()));
  TACIT_ASSIGN(const auto damage, FindLogDamage(path + "/" + lists[0]));
  if (damage) return Fail(ErrorCode::kCorruption, Describe(*damage));
  return lists[0];
}

Status WriteCurrent(const std::string& path, const std::string& list) {
  std::error_code error;
  const std::string fresh = path + "/CURRENT.dbtmp";  // RocksDB removes what a crash leaves of it
  fs::remove(fresh, error);
  TACIT_RETURN_IF_ERROR(WriteNewFile(fresh, list + "\n"));
  CrashPoint("repair.current");
  fs::rename(fresh, path + "/CURRENT", error);
  if (error) return Fail(ErrorCode::kIo, fmt::format("renaming {}: {}", fresh, error.message()));
  return SyncFolder(path);
}

// The last known time is damaged; the next start finds it anew.
bool IsKnownTimeDamaged(const Rocks& rocks) {
  const auto read = rocks.Get(Family::kMeta, meta::kKnownTime);
  return !read && read.error().code == ErrorCode::kCorruption;
}

Status DropKnownTime(const std::string& path) {
  TACIT_ASSIGN(const auto rocks, Rocks::Open(path, kMemoryBytes, std::make_shared<FailureLatch>()));
  rocksdb::WriteBatch batch;
  batch.Delete(rocks->family(Family::kMeta), AsSlice(meta::kKnownTime));
  TACIT_RETURN_IF_ERROR(rocks->WriteSynced(batch));
  return rocks->EmptyLog();
}

Status RefuseToGuess(const StoreCheck& check) {
  return Fail(
      ErrorCode::kCorruption,
      fmt::format(
          "{} {}. Nothing in the store tells what was there, so that it is not "
          "repaired{}. docs/operating/restore.md, \"When the store is lost\", says how "
          "to go on",
          check.damage[0].file, check.damage[0].what,
          check.damage.size() > 1 ? fmt::format(" ({} more)", check.damage.size() - 1) : ""));
}

}  // namespace

Result<Repair> RepairStore(const std::string& path, const VerifyOptions& options) {
  TACIT_RETURN_IF_ERROR(CheckClosed(path));
  Repair repair;
  std::optional<std::string> list;
  if (CheckCurrent(path)) {
    TACIT_ASSIGN(list, OnlyListOfTables(path));
    TACIT_RETURN_IF_ERROR(WriteCurrent(path, *list));
    repair.done.push_back(fmt::format("{}/CURRENT was made anew: it names {}", path, *list));
  }
  TACIT_RETURN_IF_ERROR(ClearFoldFiles(path));
  TACIT_ASSIGN(const StoreCheck before, VerifyStore(path, options));
  for (const Damage& damage : before.damage)
    if (damage.file != path && damage.file != options.witness)
      return Fail(RefuseToGuess(before).error());
  bool damaged_time = false;
  {
    const auto rocks = Rocks::OpenDamaged(path);
    damaged_time = rocks && IsKnownTimeDamaged(**rocks);
  }
  if (damaged_time) {
    TACIT_RETURN_IF_ERROR(DropKnownTime(path));
    repair.done.push_back("the last known time was dropped; the next start finds it anew");
  }
  TACIT_ASSIGN(repair.after, VerifyStore(path, options));
  if (!repair.after.damage.empty()) return Fail(RefuseToGuess(repair.after).error());
  return repair;
}

}  // namespace tacit::store
