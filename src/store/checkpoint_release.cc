// A release checkpoint is a database with the same families and formats as a store's, in which
// - of `meta`, `release` is there, empty; `salt`, `user_key`, `term/`, `most_uses/`, `forgotten/`
//   and `known_time` are not; `source` is empty, and `ledger_state` has the promises and no
//   account;
// - rows and dense states have their served floats alone;
// - deltas, offsets, allowances and histories are empty.
#include "store/checkpoint_release.h"

#include <fmt/format.h>
#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "store/checkpoint_full.h"
#include "store/file_digest.h"
#include "store/fold.h"
#include "store/load.h"
#include "store/seal.h"

namespace tacit::store {
namespace {

constexpr uint64_t kReleaseMemory = uint64_t{32} << 20;
constexpr uint64_t kReleaseFileBytesMost = uint64_t{256} << 20;
constexpr uint64_t kRowsBetweenLooks = 4096;

// Writes sorted rows into files for the rows family, each of about the most bytes.
class ReleaseRows {
 public:
  ReleaseRows(const Rocks& rocks, std::string folder) : rocks_(rocks), folder_(std::move(folder)) {}

  Status Put(std::string_view key, std::string_view value) {
    if (!writer_) TACIT_RETURN_IF_ERROR(Begin());
    TACIT_RETURN_IF_ERROR(ToStatus(writer_->Put(AsSlice(key), AsSlice(value)), Doing()));
    return writer_->FileSize() < kReleaseFileBytesMost ? Status{} : End();
  }
  // Moves all files into the database.
  Status Ingest() {
    if (writer_) TACIT_RETURN_IF_ERROR(End());
    rocksdb::IngestExternalFileOptions& options = arg_.options;
    options.move_files = true;
    options.write_global_seqno = false;
    options.verify_file_checksum = false;
    arg_.column_family = rocks_.family(Family::kRows);
    return ToStatus(rocks_.db().IngestExternalFiles({arg_}), Doing());
  }

 private:
  std::string Doing() const { return "writing the rows of checkpoint " + folder_; }
  Status Begin() {
    writer_.emplace(rocksdb::EnvOptions(), RowsFileOptions(), rocks_.family(Family::kRows),
                    /*invalidate_page_cache=*/false);
    arg_.external_files.push_back(
        fmt::format("{}/rows-{}.tmp", folder_, arg_.external_files.size()));
    return ToStatus(writer_->Open(arg_.external_files.back()), Doing());
  }
  Status End() {
    rocksdb::ExternalSstFileInfo written;
    const Status finished = ToStatus(writer_->Finish(&written), Doing());
    writer_.reset();
    arg_.files_checksums.push_back(written.file_checksum);
    arg_.files_checksum_func_names.push_back(written.file_checksum_func_name);
    return finished;
  }

  const Rocks& rocks_;
  const std::string folder_;
  std::optional<rocksdb::SstFileWriter> writer_;
  rocksdb::IngestExternalFileArg arg_;
};

// Turns stored rows into served ones.
class ServedRows {
 public:
  ServedRows(const SnapshotImpl& snapshot, const LearnerDirectory& directory)
      : records_(directory.records()) {
    for (const LearnerRecord& record : records_) steps_.push_back(snapshot.StepOf(record));
  }

  // The bytes of the served row under this key; valid until the next call.
  Result<std::string_view> Serve(std::string_view key, std::string_view stored) {
    const bool is_row = key.size() == kRowKeyBytes;
    const auto learner = static_cast<uint16_t>(is_row ? SequenceOf(key.substr(1, 2)) : ~0u);
    const auto table = static_cast<uint32_t>(is_row ? SequenceOf(key.substr(3, 2)) : ~0u);
    if (learner >= records_.size() || table >= records_[learner].layout.space.tables().size() ||
        stored.size() != records_[learner].layout.RowFloats(table) * sizeof(float))
      return Fail(ErrorCode::kCorruption, fmt::format("a row of learner {} does not fit", learner));
    const RowLayout& layout = records_[learner].layout;
    const uint32_t dim = layout.space.tables()[table].dim;
    floats_.resize(layout.RowFloats(table));
    std::memcpy(floats_.data(), stored.data(), stored.size());
    served_.resize(dim);
    const std::span<const float> row(floats_);
    layout.average.Read(row.first(dim), row.subspan(dim), steps_[learner], served_);
    return std::string_view(reinterpret_cast<const char*>(served_.data()), dim * sizeof(float));
  }

 private:
  const std::vector<LearnerRecord>& records_;
  std::vector<uint32_t> steps_;  // by key
  std::vector<float> floats_, served_;
};

std::string_view BytesOf(std::span<const float> floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size_bytes()};
}

// Merges the folded rows with those of unfolded commits, which are newer.
Status CopyRows(const Rocks& from, const SnapshotImpl& snapshot, const ReleaseParts& parts,
                ReleaseRows* to) {
  const LearnerDirectory& directory = parts.directory;
  ServedRows served(snapshot, directory);
  uint64_t rows = 0;
  const auto put = [&](std::string_view key, std::string_view stored) -> Status {
    if (rows++ % kRowsBetweenLooks == 0) TACIT_RETURN_IF_ERROR(StillWanted(parts.request));
    TACIT_ASSIGN(const std::string_view row, served.Serve(key, stored));
    return to->Put(key, row);
  };
  const std::vector<FoldRow> overlay = *MergeOverlay(directory, snapshot.view());
  auto next = overlay.begin();
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.held();
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> it(
      from.db().NewIterator(options, from.family(Family::kRows)));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const std::string_view key = it->key().ToStringView();
    if (key == kRowsMarkerKey) break;  // the last key
    bool newer = false;
    for (; next != overlay.end(); ++next) {
      const RowKey other = EncodeRowKey(next->place);
      const std::string_view place(other.data(), other.size());
      if (place > key) break;
      newer = newer || place == key;
      TACIT_RETURN_IF_ERROR(put(place, BytesOf(next->floats)));
    }
    if (!newer) TACIT_RETURN_IF_ERROR(put(key, it->value().ToStringView()));
  }
  TACIT_RETURN_IF_ERROR(ToStatus(it->status(), "reading rows of store " + from.path()));
  for (; next != overlay.end(); ++next) {
    const RowKey key = EncodeRowKey(next->place);
    TACIT_RETURN_IF_ERROR(put({key.data(), key.size()}, BytesOf(next->floats)));
  }
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
    const LearnerValue& learner = snapshot.view().learners[record.key];
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
  ReleaseRows rows(*to, folder);
  TACIT_RETURN_IF_ERROR(CopyRows(from, snapshot, parts, &rows));
  TACIT_RETURN_IF_ERROR(rows.Ingest());
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
