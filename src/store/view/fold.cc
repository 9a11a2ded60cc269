#include "store/view/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/crash_point.h"
#include "store/disk/row_families.h"
#include "store/disk/seal.h"
#include "store/rows/row_codec.h"
#include "store/rows/row_files.h"
#include "store/view/load.h"

namespace tacit::store {
namespace {

std::string FoldFolder(const std::string& store_path) { return store_path + "/fold"; }

constexpr size_t kRowsBetweenCalls = 4096;

Status GivenUp(const Rocks& rocks) {
  return Fail(ErrorCode::kUnavailable,
              fmt::format("folding rows of store {} was given up", rocks.path()));
}

std::string_view ValueOf(const FoldRow& row, std::string* scratch) {
  return EncodeRow(row.floats, row.dim, row.bf16, scratch);
}

std::string MarkerOf(CommitSeq seq) { return Seal(ByteWriter().Put(seq.value).bytes()); }

uint64_t ShardOf(const FoldRow& row) { return row.place.high >> 32; }

// The rows of each family, one after the other.
std::vector<std::span<const FoldRow>> PartByFamily(const Rocks& rocks,
                                                   std::span<const FoldRow> rows) {
  const size_t families = rocks.row_families().size();
  if (families == 1) return {rows};
  std::vector<std::span<const FoldRow>> parts;
  for (uint64_t shard = 0; shard < families; ++shard) {
    size_t end = 0;
    while (end < rows.size() && ShardOf(rows[end]) == shard) ++end;
    parts.push_back(rows.first(end));
    rows = rows.subspan(end);
  }
  return parts;
}

// Names the files of a family, on its own disk, until it takes them in.
std::string FilesOf(const Rocks& rocks, uint32_t shard) {
  if (rocks.row_generation() == 0) return FoldFolder(rocks.path()) + "/rows";
  return rocks.path() + "/" + RowFamily{rocks.row_generation(), shard}.Folder() + "/fold";
}

// Each family takes in one file, which ends with its marker.
Status IngestRows(const Rocks& rocks, std::span<const FoldRow> rows, CommitSeq seq,
                  const KeepFolding& keep) {
  std::error_code error;
  if (rocks.row_generation() == 0)
    std::filesystem::create_directories(FoldFolder(rocks.path()), error);
  std::vector<RowFiles> files;
  std::string value;
  uint64_t written = 0;
  uint32_t shard = 0;
  for (const std::span<const FoldRow> part : PartByFamily(rocks, rows)) {
    RowFiles& one = files.emplace_back(rocks, rocks.rows(shard), FilesOf(rocks, shard), UINT64_MAX);
    ++shard;
    for (const FoldRow& row : part) {
      if (written % kRowsBetweenCalls == 0 && keep && !keep(written, rows.size()))
        return GivenUp(rocks);
      ++written;
      const RowKey key = EncodeRowKey(row.place);
      TACIT_RETURN_IF_ERROR(one.Put({key.data(), key.size()}, ValueOf(row, &value)));
    }
    TACIT_RETURN_IF_ERROR(one.Put(kRowsMarkerKey, MarkerOf(seq)));
    TACIT_RETURN_IF_ERROR(one.Finish());
  }
  // Ingesting may switch memtables, and with them log files; that is not allowed after a log has
  // failed.
  const MutexLock lock(rocks.log_mutex());
  TACIT_RETURN_IF_ERROR(rocks.LogStatus());
  return ToStatus(RowFiles::Ingest(rocks, files), "folding rows of store " + rocks.path());
}

// Deletes the folded deltas. Later starts read no delta up to the view's tip, so the deltas' dense
// states are stored separately.
void PutTrim(const Rocks& rocks, const View& view, FoldedDeltas deltas, rocksdb::WriteBatch* to) {
  rocksdb::WriteBatch& batch = *to;
  FoldedRecord folded{view.tip.seq, {}};
  const CommitSeq first = view.overlay.front()->seq;
  for (size_t key = 0; key < view.learners.size(); ++key) {
    const LearnerState& learner = view.learners[key];
    if (!learner.dense) continue;
    folded.dense.emplace_back(static_cast<uint16_t>(key), learner.dense_seq);
    if (learner.dense_seq < first) continue;
    batch.Put(rocks.family(Family::kMeta),
              LearnerKey(meta::kDensePrefix, static_cast<uint16_t>(key)),
              Seal(EncodeDenseBase(learner.dense_seq, *learner.dense)));
  }
  batch.Put(rocks.family(Family::kMeta), AsSlice(meta::kFolded), Seal(EncodeFolded(folded)));
  if (deltas == FoldedDeltas::kKept) return;
  for (const auto& delta : view.overlay)
    batch.Delete(rocks.family(Family::kDeltas), SequenceKey(delta->seq.value));
}

}  // namespace

std::optional<std::vector<FoldRow>> MergeOverlay(const LearnerDirectory& directory,
                                                 const View& view, const KeepFolding& keep) {
  const auto before = [](const FoldRow& a, const FoldRow& b) { return a.place < b.place; };
  std::vector<FoldRow> merged, of_one, both;
  for (size_t age = view.overlay.size(); age-- > 0;) {
    if (keep && !keep(0, merged.size())) return std::nullopt;
    const OverlayDelta& delta = *view.overlay[age];
    of_one.clear();
    for (size_t key = 0; key < delta.rows.size(); ++key) {
      if (!delta.rows[key]) continue;
      const LearnerRecord& learner = directory.records()[key];
      const auto tables = learner.layout.space.tables();
      uint32_t table = 0;
      for (size_t i = 0; i < delta.rows[key]->size(); ++i) {
        const uint64_t row = delta.rows[key]->rows[i];
        while (row >= tables[table].first + tables[table].rows) ++table;
        of_one.push_back({directory.Place(learner, table, row), age, delta.rows[key]->Row(i),
                          tables[table].dim, learner.layout.bf16});
      }
    }
    if (!std::ranges::is_sorted(of_one, before)) std::ranges::sort(of_one, before);
    // A union takes equal places from the first list, which is newer.
    both.clear();
    std::ranges::set_union(merged, of_one, std::back_inserter(both), before);
    merged.swap(both);
  }
  return merged;
}

void PutRowsMarkers(const Rocks& rocks, CommitSeq seq, rocksdb::WriteBatch* batch) {
  for (auto* family : rocks.row_families())
    batch->Put(family, AsSlice(kRowsMarkerKey), MarkerOf(seq));
}

Result<uint64_t> FoldView(const Rocks& rocks, const LearnerDirectory& directory, const View& view,
                          uint64_t file_bytes_least, FoldedDeltas deltas, const KeepFolding& keep) {
  if (view.overlay.empty()) return 0;
  const auto rows = MergeOverlay(directory, view, keep);
  if (!rows) return Fail(GivenUp(rocks).error());
  uint64_t bytes = 0;
  for (const FoldRow& row : *rows) bytes += row.floats.size_bytes();
  rocksdb::WriteBatch batch;
  if (bytes < file_bytes_least * rocks.row_families().size()) {
    std::string value;
    for (const FoldRow& row : *rows) {
      const RowKey key = EncodeRowKey(row.place);
      batch.Put(rocks.rows(ShardOf(row)), {key.data(), key.size()}, AsSlice(ValueOf(row, &value)));
    }
    PutRowsMarkers(rocks, view.tip.seq, &batch);
  } else {
    TACIT_RETURN_IF_ERROR(IngestRows(rocks, *rows, view.tip.seq, keep));
  }
  CrashPoint("fold.ingested");
  PutTrim(rocks, view, deltas, &batch);
  TACIT_RETURN_IF_ERROR(rocks.WriteSynced(batch));
  CrashPoint("fold.trimmed");
  return rows->size();
}

Status IngestOverlay(const Rocks& rocks, const LearnerDirectory& directory, const View& view) {
  const auto rows = MergeOverlay(directory, view);
  return IngestRows(rocks, *rows, view.tip.seq, {});
}

Status ClearFoldFiles(const std::string& store_path) {
  std::error_code error;
  std::filesystem::remove_all(FoldFolder(store_path), error);
  if (error)
    return Fail(ErrorCode::kIo,
                fmt::format("clearing {}: {}", FoldFolder(store_path), error.message()));
  TACIT_ASSIGN(const auto folders, FoldersOf(store_path));
  for (const std::string& folder : folders) {
    if (folder.empty()) continue;
    for (std::filesystem::directory_iterator it(store_path + "/" + folder, error), end;
         !error && it != end; it.increment(error))
      if (it->path().extension() == ".tmp") std::filesystem::remove(it->path(), error);
    if (error)
      return Fail(ErrorCode::kIo,
                  fmt::format("clearing {}/{}: {}", store_path, folder, error.message()));
  }
  return {};
}

}  // namespace tacit::store
