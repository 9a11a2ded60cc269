#include "store/care/reshard.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/crash_point.h"
#include "store/checkpoint/checkpoint.h"
#include "store/disk/folder.h"
#include "store/disk/rocks.h"
#include "store/disk/row_families.h"
#include "store/disk/seal.h"
#include "store/rows/row_files.h"
#include "store/store.h"
#include "store/view/fold.h"
#include "store/view/load.h"

namespace tacit::store {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFileBytesMost = uint64_t{64} << 20;
constexpr uint64_t kRowsBetweenAsks = 4096;

// All rows of a store, table by table and bucket by bucket, in all shards.
class RowsByBucket {
 public:
  RowsByBucket(const Rocks& rocks, uint32_t shards) : rocks_(rocks) {
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    for (uint32_t shard = 0; shard < shards; ++shard) {
      Source source{
          static_cast<char>(shard),
          std::unique_ptr<rocksdb::Iterator>(rocks.db().NewIterator(options, rocks.rows(shard)))};
      source.at->Seek({&source.shard, 1});
      Push(std::move(source));
    }
  }
  // The row's key without its shard, which is valid until Next; empty at the end.
  std::string_view key() const { return heap_.empty() ? std::string_view() : heap_[0].key(); }
  std::string_view value() const { return heap_[0].at->value().ToStringView(); }
  void Next() {
    std::ranges::pop_heap(heap_, After);
    Source source = std::move(heap_.back());
    heap_.pop_back();
    source.at->Next();
    Push(std::move(source));
  }
  const Status& status() const { return status_; }

 private:
  struct Source {
    char shard;
    std::unique_ptr<rocksdb::Iterator> at;
    std::string_view key() const { return at->key().ToStringView().substr(1); }
  };
  static bool After(const Source& a, const Source& b) { return a.key() > b.key(); }

  // Takes the source in, if it has a row left.
  void Push(Source source) {
    if (!source.at->status().ok())
      status_ = ToStatus(source.at->status(), "reading rows of store " + rocks_.path());
    if (!source.at->Valid() || source.at->key().size() != kRowKeyBytes ||
        source.at->key()[0] != source.shard)
      return;
    heap_.push_back(std::move(source));
    std::ranges::push_heap(heap_, After);
  }

  const Rocks& rocks_;
  std::vector<Source> heap_;
  Status status_;
};

// Tells whether all shards are where MakeRowFolder would put them.
bool ArePlaced(const Rocks& rocks, uint32_t shards, const std::vector<std::string>& paths) {
  if (rocks.row_generation() == 0) return false;
  for (uint32_t shard = 0; shard < shards; ++shard) {
    const fs::path folder =
        fs::path(rocks.path()) / RowFamily{rocks.row_generation(), shard}.Folder();
    std::error_code error;
    const bool link = fs::is_symlink(folder, error);
    if (link == paths.empty()) return false;
    if (link &&
        fs::read_symlink(folder, error).parent_path() != fs::absolute(paths[shard % paths.size()]))
      return false;
  }
  return true;
}

Status CheckSpace(const Rocks& rocks, const std::vector<std::string>& paths) {
  uint64_t bytes = uint64_t{16} << 20;
  for (auto* family : rocks.row_families()) {
    rocksdb::ColumnFamilyMetaData data;
    rocks.db().GetColumnFamilyMetaData(family, &data);
    bytes += data.size;
  }
  std::vector<std::string> places = paths;
  if (places.empty()) places.push_back(rocks.path());
  for (const std::string& place : places) {
    std::error_code error = MakeFolders(place);
    const auto disk = fs::space(place, error);
    const uint64_t needed = bytes / places.size();
    if (!error && disk.available < needed)
      return Fail(ErrorCode::kIo,
                  fmt::format("{}: its disk has {} MiB left, and the rows may take {} there", place,
                              disk.available >> 20, needed >> 20));
  }
  return {};
}

Status AskToKeepOn(const ReshardRequest& request, uint64_t copied) {
  if (!request.keep || request.keep(copied)) return {};
  return Fail(ErrorCode::kUnavailable,
              fmt::format("cutting store {} into shards was given up", request.path));
}

// Writes each row under the key of its new shard, and has the new families take the rows in.
Result<uint64_t> CopyRowsTo(const Rocks& rocks, const ReshardRequest& request, uint32_t before,
                            const std::vector<rocksdb::ColumnFamilyHandle*>& to,
                            uint32_t generation) {
  std::vector<RowFiles> files;
  for (uint32_t shard = 0; shard < to.size(); ++shard)
    files.emplace_back(rocks, to[shard],
                       rocks.path() + "/" + RowFamily{generation, shard}.Folder() + "/reshard",
                       kFileBytesMost);
  uint64_t copied = 0;
  TACIT_RETURN_IF_ERROR(AskToKeepOn(request, copied));  // also where no row is folded yet
  RowsByBucket rows(rocks, before);
  for (; !rows.key().empty(); rows.Next()) {
    const std::string_view place = rows.key();
    const uint64_t bucket = SequenceOf(place.substr(place.size() - sizeof(uint64_t)));
    std::string key(1, static_cast<char>(bucket % to.size()));
    key += place;
    TACIT_RETURN_IF_ERROR(files[bucket % to.size()].Put(key, rows.value()));
    if (++copied % kRowsBetweenAsks == 0) TACIT_RETURN_IF_ERROR(AskToKeepOn(request, copied));
  }
  TACIT_RETURN_IF_ERROR(rows.status());
  for (RowFiles& one : files) TACIT_RETURN_IF_ERROR(one.Finish());
  TACIT_RETURN_IF_ERROR(ToStatus(RowFiles::Ingest(rocks, files),
                                 "taking rows into the shards of store " + rocks.path()));
  return copied;
}

// Decides: from here on the store has these shards.
Status Switch(const Rocks& rocks, const Loaded& loaded, uint32_t shards, uint32_t generation,
              const std::vector<rocksdb::ColumnFamilyHandle*>& to) {
  rocksdb::WriteBatch batch;
  const auto put = [&](std::string_view key, uint32_t number) {
    batch.Put(rocks.family(Family::kMeta), AsSlice(key), Seal(ByteWriter().Put(number).bytes()));
  };
  put(meta::kShards, shards);
  put(meta::kRows, generation);
  if (loaded.folded.value > 0)
    for (auto* family : to)
      batch.Put(family, AsSlice(kRowsMarkerKey),
                Seal(ByteWriter().Put(loaded.folded.value).bytes()));
  return rocks.WriteSynced(batch);
}

Status CheckMayReshard(const ReshardRequest& request) {
  if (IsCheckpoint(request.path))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is a checkpoint, which never changes", request.path));
  TACIT_ASSIGN(const bool there, Rocks::Exists(request.path));
  if (!there)
    return Fail(ErrorCode::kNotFound, fmt::format("there is no store at {}", request.path));
  if (request.shards > 128)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("shards must be 1 to 128, not {}", request.shards));
  return {};
}

}  // namespace

Result<Resharded> Reshard(const ReshardRequest& request) {
  TACIT_RETURN_IF_ERROR(CheckMayReshard(request));
  TACIT_ASSIGN(const auto rocks,
               Rocks::Open(request.path, request.memory_bytes, std::make_shared<FailureLatch>()));
  TACIT_ASSIGN(const Loaded loaded, Load(*rocks));
  if (loaded.fresh())
    return Fail(ErrorCode::kNotFound, fmt::format("store {} holds nothing yet", request.path));
  if (loaded.release)
    return Fail(
        ErrorCode::kRefused,
        fmt::format("{} was a release checkpoint: its rows are in no shards", request.path));
  if (loaded.replica)
    return Fail(ErrorCode::kRefused,
                fmt::format("store {} is a replica's: remove it, and it begins anew from its feed",
                            request.path));
  TACIT_RETURN_IF_ERROR(ClearFoldFiles(request.path));
  const uint32_t shards = request.shards == 0 ? loaded.shards : request.shards;
  Resharded resharded{.before = loaded.shards, .after = shards};
  if (shards == loaded.shards && ArePlaced(*rocks, shards, request.paths)) return resharded;
  TACIT_RETURN_IF_ERROR(CheckSpace(*rocks, request.paths));
  const uint32_t generation = rocks->row_generation() + 1;
  TACIT_ASSIGN(const auto families, rocks->MakeRows(generation, shards, request.paths));
  CrashPoint("reshard.begun");
  TACIT_ASSIGN(resharded.rows, CopyRowsTo(*rocks, request, loaded.shards, families, generation));
  CrashPoint("reshard.copied");
  TACIT_RETURN_IF_ERROR(Switch(*rocks, loaded, shards, generation, families));
  CrashPoint("reshard.switched");
  TACIT_RETURN_IF_ERROR(rocks->UseRows(generation, shards));
  TACIT_RETURN_IF_ERROR(rocks->RemoveUnusedRows());
  TACIT_RETURN_IF_ERROR(rocks->EmptyLog());
  resharded.done = true;
  return resharded;
}

}  // namespace tacit::store
