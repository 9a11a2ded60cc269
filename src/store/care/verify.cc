#include "store/care/verify.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "store/checkpoint/checkpoint.h"
#include "store/disk/folder.h"
#include "store/disk/log_damage.h"
#include "store/disk/table_files.h"
#include "store/store.h"
#include "store/users/allowance.h"
#include "store/users/forgotten.h"
#include "store/users/history_table.h"
#include "store/view/load.h"
#include "store/witness/witness.h"

namespace tacit::store {
namespace {

// A check of one store; collects what it finds.
class Verifier {
 public:
  Verifier(std::string path, const VerifyOptions& options)
      : path_(std::move(path)), options_(options) {}

  Result<StoreCheck> Run() {
    TACIT_RETURN_IF_ERROR(CheckTheLogs());
    const auto rocks = Rocks::OpenDamaged(path_);
    if (!rocks) {
      Add(path_, rocks.error().message);
      return Finish();
    }
    TACIT_RETURN_IF_ERROR(CheckTables(**rocks));
    TACIT_RETURN_IF_ERROR(CheckValues(**rocks));
    return Finish();
  }

 private:
  void Add(std::string file, std::string what) {
    check_.damage.push_back({std::move(file), std::move(what)});
  }
  void Note(const Status& status) {
    if (!status) Add(path_, status.error().message);
  }

  Status CheckTheLogs() {
    TACIT_ASSIGN(auto logs, CheckLogs(path_));
    for (LogDamage& damage : logs) {
      if (damage.torn) {
        torn_.push_back(std::move(damage));
      } else {
        Add(damage.file, Describe(damage));
      }
    }
    return {};
  }

  Status CheckTables(const Rocks& rocks) {
    bool all_have_checksums = true;
    for (const TableFile& file : ListTables(rocks)) {
      std::error_code error;
      if (!std::filesystem::exists(file.path, error)) {
        Add(file.path, "is missing");
        continue;
      }
      TACIT_ASSIGN(auto damage, CheckTable(file, {}));
      if (damage) Add(damage->file, damage->what);
      all_have_checksums &= file.sha256.has_value();
      check_.files += 1;
      check_.bytes += file.bytes;
    }
    if (!all_have_checksums)  // then those of their blocks
      Note(ToStatus(rocks.db().VerifyChecksum({}), "reading the blocks of store " + path_));
    return {};
  }

  // Another format is no damage.
  Status CheckValues(const Rocks& rocks) {
    const auto loaded = Load(rocks);
    if (!loaded && loaded.error().code == ErrorCode::kRefused) return Fail(loaded.error());
    if (!loaded) {
      Note(Fail(loaded.error()));
      return {};
    }
    check_.commits = loaded->tip.seq.value;
    check_.ledger_entries = loaded->entries.size();
    if (loaded->fresh()) return {};
    CheckLedger(*loaded);
    for (size_t key = 0; key < loaded->records.size(); ++key)
      CheckUsers(rocks, static_cast<uint16_t>(key));
    if (const auto forgotten = ReadForgotten(rocks); !forgotten) Note(Fail(forgotten.error()));
    CheckTheWitness(*loaded);
    return {};
  }

  void CheckLedger(const Loaded& loaded) {
    if (loaded.tip.seq.value == 0) return;
    if (!loaded.release && !loaded.replica) {
      const auto ledger = privacy::Ledger::Restore(loaded.entries, loaded.ledger_state);
      if (!ledger) Note(Fail(ledger.error()));
    }
    if (options_.check_entries) Note(options_.check_entries(loaded.entries));
  }

  void CheckUsers(const Rocks& rocks, uint16_t key) {
    const auto counts = CheckCounts(rocks, key);
    if (!counts) {
      Note(Fail(counts.error()));
      return;
    }
    check_.users += counts->users;
    Note(CheckHistories(rocks, key));
  }

  void CheckTheWitness(const Loaded& loaded) {
    if (options_.witness.empty()) return;
    const auto sight = WitnessFile::Read(options_.witness);
    if (!sight) {
      Add(options_.witness, sight.error().message);
      return;
    }
    if (!*sight) return;
    check_.witnessed = true;
    const WitnessPlace place{options_.witness};
    if (!loaded.Chain().Continues((*sight)->record))
      Note(CheckDamage(**sight, loaded.tip.seq, place, path_));
    Note(CheckWitness((*sight)->record, loaded.Chain(), place, path_));
    if (!(*sight)->whole) Add(options_.witness, "one of its copies is damaged; a start mends it");
  }

  // A torn end of a log is a sign of damage only where something is missing.
  StoreCheck Finish() {
    if (!check_.damage.empty())
      for (const LogDamage& torn : torn_) Add(torn.file, Describe(torn));
    return std::move(check_);
  }

  const std::string path_;
  const VerifyOptions& options_;
  std::vector<LogDamage> torn_;
  StoreCheck check_;
};

}  // namespace

Result<StoreCheck> VerifyStore(const std::string& path, const VerifyOptions& options) {
  std::error_code error;
  if (IsCheckpoint(path))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is a checkpoint: tacit checkpoint verify checks it", path));
  TACIT_ASSIGN(const bool there, Rocks::Exists(path));
  // A start that was refused may have left an empty folder.
  if (!there &&
      (!std::filesystem::is_directory(path, error) || std::filesystem::is_empty(path, error)))
    return Fail(ErrorCode::kNotFound, fmt::format("there is no store at {}", path));
  TACIT_ASSIGN(const bool held, IsHeldByAnother(path));
  if (held)
    return Fail(ErrorCode::kUnavailable,
                fmt::format("a process has store {} open. tacitd looks for damage itself "
                            "(store.scrub_days); a checkpoint of it can be verified at any time",
                            path));
  return Verifier(path, options).Run();
}

}  // namespace tacit::store
