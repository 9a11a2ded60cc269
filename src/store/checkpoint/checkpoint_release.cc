// A release checkpoint is a database with the same families and formats as a store's, in which
// - of `meta`, `release` is there, empty; `salt`, `user_key`, `term/`, `forgotten/` and
// `known_time`
//   are not; `source` is empty, and `ledger_state` has the promises and no account;
// - rows and dense states have their served floats alone;
// - deltas, offsets, allowances and histories are empty.
#include "store/checkpoint/checkpoint_release.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <utility>

#include "base/bytes.h"
#include "store/checkpoint/checkpoint_full.h"
#include "store/disk/file_digest.h"
#include "store/disk/format.h"
#include "store/disk/seal.h"
#include "store/rows/row_files.h"
#include "store/view/load.h"
#include "store/view/stored_rows.h"

namespace tacit::store {
namespace {

constexpr uint64_t kReleaseMemory = uint64_t{32} << 20;
constexpr uint64_t kReleaseFileBytesMost = uint64_t{256} << 20;
constexpr uint64_t kRowsBetweenLooks = 4096;

// Writes every row as it is served.
Status CopyRows(const Rocks& from, const SnapshotImpl& snapshot, const ReleaseParts& parts,
                RowFiles* to) {
  const LearnerDirectory& directory = parts.directory;
  std::vector<uint32_t> steps;  // by key
  for (const LearnerRecord& record : directory.records()) steps.push_back(snapshot.StepOf(record));
  StoredRowParser parser(directory);
  std::vector<float> served;
  uint64_t rows = 0;
  TACIT_RETURN_IF_ERROR(ForStoredRows(
      from, snapshot, directory, [&](std::string_view key, std::string_view stored) -> Status {
        if (rows++ % kRowsBetweenLooks == 0) TACIT_RETURN_IF_ERROR(StillWanted(parts.request));
        TACIT_ASSIGN(const StoredRowParser::Row row, parser.Parse(key, stored));
        served.resize(row.dim);
        row.learner->layout.average.Read(row.floats.first(row.dim), row.floats.subspan(row.dim),
                                         steps[row.learner->key], served);
        return to->Put(
            key, {reinterpret_cast<const char*>(served.data()), served.size() * sizeof(float)});
      }));
  ByteWriter marker;
  marker.Put(snapshot.version().value);
  return to->Put(kRowsMarkerKey, Seal(marker.bytes()));
}

// A ledger's state with these promises and nothing spent: it holds no offsets.
Result<std::string> StateOfPromises(const privacy::Ledger::Promises& promises) {
  privacy::Ledger ledger;
  for (const privacy::Promise& promise : promises.learners)
    TACIT_RETURN_IF_ERROR(ledger.Declare(promise));
  if (promises.total) TACIT_RETURN_IF_ERROR(ledger.DeclareTotal(*promises.total));
  return ledger.EncodeState();
}

void PutIdentity(const Rocks& to, const SnapshotImpl& snapshot, const ReleaseParts& parts,
                 std::string_view ledger_state, rocksdb::WriteBatch* batch) {
  const auto put = [&](std::string_view key, std::string_view value) {
    batch->Put(to.family(Family::kMeta), AsSlice(key), Seal(value));
  };
  const auto put_number = [&](std::string_view key, uint32_t number) {
    put(key, ByteWriter().Put(number).bytes());
  };
  put(meta::kRelease, "");
  put_number(meta::kFormat, kStoreFormat);
  put_number(meta::kShards, parts.shards);
  put(meta::kLineage, snapshot.lineage());
  for (const LearnerRecord& record : parts.directory.records())
    put(LearnerKey(meta::kLearnerPrefix, record.key), EncodeLearner(record));
  put(meta::kTip, EncodeTip(snapshot.view().tip));
  put(meta::kLedgerState, ledger_state);
  put(meta::kSource, "");
}

void PutLearners(const Rocks& to, const SnapshotImpl& snapshot, const ReleaseParts& parts,
                 rocksdb::WriteBatch* batch) {
  const auto put = [&](std::string_view key, std::string_view value) {
    batch->Put(to.family(Family::kMeta), AsSlice(key), Seal(value));
  };
  FoldedRecord folded{snapshot.version(), {}};
  for (const LearnerRecord& record : parts.directory.records()) {
    const LearnerState& learner = snapshot.view().learners[record.key];
    if (learner.dense) {
      const std::span<const float> served = snapshot.ServedDenseOf(record);
      folded.dense.emplace_back(record.key, learner.dense_seq);
      put(LearnerKey(meta::kDensePrefix, record.key),
          EncodeDenseBase(learner.dense_seq, {{served.begin(), served.end()}, {}}));
    }
    if (learner.released && learner.released_seq <= snapshot.version()) {
      put(LearnerKey(meta::kReleasedPrefix, record.key), *learner.released);
      put(LearnerKey(meta::kMechanismCommitPrefix, record.key),
          ByteWriter().Put(learner.released_seq.value).bytes());
    }
  }
  put(meta::kFolded, EncodeFolded(folded));
}

Status CopyLedger(const Rocks& to, const SnapshotImpl& snapshot, rocksdb::WriteBatch* batch) {
  TACIT_ASSIGN(const auto entries, snapshot.LedgerEntries(0, snapshot.ledger_entries()));
  for (size_t i = 0; i < entries.size(); ++i)
    batch->Put(to.family(Family::kLedger), SequenceKey(i), Seal(entries[i]));
  return {};
}

using Digests = std::map<std::string, Digest>;

// Writes everything, and returns the digests of tables.
Result<Digests> FillDatabase(const Rocks& from, const SnapshotImpl& snapshot,
                             const ReleaseParts& parts, const std::string& folder) {
  TACIT_ASSIGN(const auto to,
               Rocks::Open(folder, kReleaseMemory, std::make_shared<FailureLatch>()));
  std::vector<RowFiles> rows;
  rows.emplace_back(*to, to->rows(0), folder + "/rows", kReleaseFileBytesMost);
  TACIT_RETURN_IF_ERROR(CopyRows(from, snapshot, parts, &rows[0]));
  TACIT_RETURN_IF_ERROR(rows[0].Finish());
  TACIT_RETURN_IF_ERROR(
      ToStatus(RowFiles::Ingest(*to, rows), "writing the rows of checkpoint " + folder));
  TACIT_ASSIGN(const std::string state, StateOfPromises(parts.promises));
  rocksdb::WriteBatch batch;
  PutIdentity(*to, snapshot, parts, state, &batch);
  PutLearners(*to, snapshot, parts, &batch);
  TACIT_RETURN_IF_ERROR(CopyLedger(*to, snapshot, &batch));
  TACIT_RETURN_IF_ERROR(to->WriteSynced(batch));
  TACIT_RETURN_IF_ERROR(to->EmptyLog());
  TACIT_ASSIGN(const LiveFiles files, ListLiveFiles(*to));
  Digests digests;
  for (const auto& file : files)
    if (const auto digest = RecordedDigest(file)) digests[file.relative_filename] = *digest;
  return digests;
}

// A reader needs the list of tables and the tables. The log is empty; RocksDB's options name
// folders of this machine.
bool IsNeeded(const std::string& name) {
  return name.ends_with(".sst") || name.ends_with(".blob") || name.starts_with("MANIFEST-") ||
         name == "CURRENT";
}

}  // namespace

Result<std::vector<CheckpointFile>> WriteRelease(const Rocks& rocks, const SnapshotImpl& snapshot,
                                                 const ReleaseParts& parts,
                                                 const std::string& folder) {
  namespace fs = std::filesystem;
  TACIT_ASSIGN(const Digests digests, FillDatabase(rocks, snapshot, parts, folder));
  std::vector<CheckpointFile> files;
  std::vector<fs::path> needless;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (!IsNeeded(name)) {
      needless.push_back(it->path());
      continue;
    }
    CheckpointFile& file = files.emplace_back();
    file.name = name;
    file.bytes = it->file_size();
    const auto known = digests.find(name);
    if (known != digests.end()) {
      file.sha256 = known->second;
    } else {
      TACIT_ASSIGN(file.sha256, DigestOfFile(it->path(), file.bytes));
    }
  }
  for (const fs::path& path : needless)
    if (!error) fs::remove_all(path, error);
  if (error) return Fail(ErrorCode::kIo, fmt::format("writing {}: {}", folder, error.message()));
  return files;
}

}  // namespace tacit::store
