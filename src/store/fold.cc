#include "store/fold.h"

#include <fmt/format.h>
#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/crash_point.h"
#include "store/load.h"
#include "store/seal.h"

namespace tacit::store {
namespace {

std::string FoldFolder(const std::string& store_path) { return store_path + "/fold"; }

constexpr size_t kRowsBetweenCalls = 4096;

Status GivenUp(const Rocks& rocks) {
  return Fail(ErrorCode::kUnavailable,
              fmt::format("folding rows of store {} was given up", rocks.path()));
}

rocksdb::Status WriteFile(const Rocks& rocks, const std::string& file,
                          const std::vector<FoldRow>& rows, CommitSeq seq, const KeepFolding& keep,
                          rocksdb::ExternalSstFileInfo* written) {
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), RowsFileOptions(),
                                rocks.family(Family::kRows), /*invalidate_page_cache=*/false);
  rocksdb::Status status = writer.Open(file);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % kRowsBetweenCalls == 0 && keep && !keep(i, rows.size()))
      return rocksdb::Status::Incomplete();
    if (!status.ok()) return status;
    const FoldRow& row = rows[i];
    const RowKey key = EncodeRowKey(row.place);
    status = writer.Put({key.data(), key.size()}, {reinterpret_cast<const char*>(row.floats.data()),
                                                   row.floats.size_bytes()});
  }
  if (!status.ok()) return status;
  ByteWriter marker;
  marker.Put(seq.value);
  status = writer.Put(AsSlice(kRowsMarkerKey), Seal(marker.bytes()));
  return status.ok() ? writer.Finish(written) : status;
}

Status Ingest(const Rocks& rocks, const std::vector<FoldRow>& rows, CommitSeq seq,
              const KeepFolding& keep) {
  const std::string folder = FoldFolder(rocks.path());
  const std::string file = fmt::format("{}/{}.sst", folder, seq.value);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  rocksdb::ExternalSstFileInfo written;
  rocksdb::Status status = WriteFile(rocks, file, rows, seq, keep, &written);
  if (status.ok()) {
    rocksdb::IngestExternalFileArg arg;
    arg.column_family = rocks.family(Family::kRows);
    arg.external_files = {file};
    arg.files_checksums = {written.file_checksum};
    arg.files_checksum_func_names = {written.file_checksum_func_name};
    rocksdb::IngestExternalFileOptions& options = arg.options;
    options.move_files = true;
    options.write_global_seqno = false;
    // Published snapshots must not see rows of later commits.
    options.snapshot_consistency = true;
    options.verify_file_checksum = false;  // the file would be read for it once more
    // Ingesting may switch memtables, and with them log files; that is not allowed after a log has
    // failed.
    const auto lock = rocks.LockLog();
    TACIT_RETURN_IF_ERROR(rocks.LogStatus());
    status = rocks.db().IngestExternalFiles({arg});
  }
  std::filesystem::remove(file, error);
  if (status.IsIncomplete()) return GivenUp(rocks);
  return ToStatus(status, "folding rows of store " + rocks.path());
}

// Deletes the folded deltas. Later starts read no delta up to the view's tip, so the deltas' dense
// states are stored separately.
Status Trim(const Rocks& rocks, const View& view) {
  rocksdb::WriteBatch batch;
  FoldedRecord folded{view.tip.seq, {}};
  const CommitSeq first = view.overlay.front()->seq;
  for (size_t key = 0; key < view.learners.size(); ++key) {
    const LearnerValue& learner = view.learners[key];
    if (!learner.dense) continue;
    folded.dense.emplace_back(static_cast<uint16_t>(key), learner.dense_seq);
    if (learner.dense_seq < first) continue;
    batch.Put(rocks.family(Family::kMeta),
              LearnerKey(meta::kDensePrefix, static_cast<uint16_t>(key)),
              Seal(EncodeDenseBase(learner.dense_seq, *learner.dense)));
  }
  batch.Put(rocks.family(Family::kMeta), AsSlice(meta::kFolded), Seal(EncodeFolded(folded)));
  for (const auto& delta : view.overlay)
    batch.Delete(rocks.family(Family::kDeltas), SequenceKey(delta->seq.value));
  return rocks.WriteSynced(batch);
}

}  // namespace

std::optional<std::vector<FoldRow>> MergeOverlay(const LearnerDirectory& directory,
                                                 const View& view, const KeepFolding& keep) {
  std::vector<FoldRow> merged;
  for (size_t age = 0; age < view.overlay.size(); ++age) {
    if (keep && !keep(0, merged.size())) return std::nullopt;
    const OverlayDelta& delta = *view.overlay[age];
    for (size_t key = 0; key < delta.rows.size(); ++key) {
      if (!delta.rows[key]) continue;
      const LearnerRecord& learner = directory.records()[key];
      const auto tables = learner.layout.space.tables();
      uint32_t table = 0;
      for (size_t i = 0; i < delta.rows[key]->size(); ++i) {
        const uint64_t row = delta.rows[key]->rows[i];
        while (row >= tables[table].first + tables[table].rows) ++table;
        merged.push_back({directory.Place(learner, table, row), age, delta.rows[key]->Row(i)});
      }
    }
  }
  std::sort(merged.begin(), merged.end(), [](const FoldRow& a, const FoldRow& b) {
    return a.place != b.place ? a.place < b.place : a.age > b.age;
  });
  const auto last =
      std::unique(merged.begin(), merged.end(),
                  [](const FoldRow& a, const FoldRow& b) { return a.place == b.place; });
  merged.erase(last, merged.end());
  return merged;
}

Result<uint64_t> FoldView(const Rocks& rocks, const LearnerDirectory& directory, const View& view,
                          const KeepFolding& keep) {
  if (view.overlay.empty()) return 0;
  const auto merged = MergeOverlay(directory, view, keep);
  if (!merged) return Fail(GivenUp(rocks).error());
  const std::vector<FoldRow>& rows = *merged;
  TACIT_RETURN_IF_ERROR(Ingest(rocks, rows, view.tip.seq, keep));
  CrashPoint("fold.ingested");
  TACIT_RETURN_IF_ERROR(Trim(rocks, view));
  CrashPoint("fold.trimmed");
  return rows.size();
}

Status ClearFoldFiles(const std::string& store_path) {
  std::error_code error;
  std::filesystem::remove_all(FoldFolder(store_path), error);
  if (error)
    return Fail(ErrorCode::kIo,
                fmt::format("clearing {}: {}", FoldFolder(store_path), error.message()));
  return {};
}

}  // namespace tacit::store
