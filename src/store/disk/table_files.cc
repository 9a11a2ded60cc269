#include "store/disk/table_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/metadata.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/files/unique_fd.h"
#include "store/disk/file_digest.h"

namespace tacit::store {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

std::optional<Digest> DigestOf(std::string_view function, std::string_view value) {
  Digest digest;
  if (function != kFileDigestName || value.size() != digest.size()) return std::nullopt;
  std::copy(value.begin(), value.end(), digest.begin());
  return digest;
}

void AddBlobs(const Rocks& rocks, std::vector<TableFile>* files) {
  for (size_t i = 0; i < kFamilies; ++i) {
    rocksdb::ColumnFamilyMetaData family;
    rocks.db().GetColumnFamilyMetaData(rocks.family(static_cast<Family>(i)), &family);
    for (const rocksdb::BlobMetaData& blob : family.blob_files) {
      // RocksDB 7.8 has the two the wrong way round here.
      auto digest = DigestOf(blob.checksum_method, blob.checksum_value);
      if (!digest) digest = DigestOf(blob.checksum_value, blob.checksum_method);
      std::string name = blob.blob_file_name;
      name.erase(0, name.find_first_not_of('/'));
      files->push_back({rocks.path() + "/" + name, blob.blob_file_size, digest});
    }
  }
}

}  // namespace

std::vector<TableFile> ListTables(const Rocks& rocks) {
  std::vector<rocksdb::LiveFileMetaData> tables;
  rocks.db().GetLiveFilesMetaData(&tables);
  std::vector<TableFile> files;
  for (const rocksdb::LiveFileMetaData& table : tables)
    files.push_back({table.directory + "/" + table.relative_filename, table.size,
                     DigestOf(table.file_checksum_func_name, table.file_checksum)});
  AddBlobs(rocks, &files);
  std::ranges::sort(files, {}, &TableFile::path);
  return files;
}

Result<std::optional<Damage>> CheckTable(const TableFile& file,
                                         const std::function<bool(uint64_t)>& pace) {
  const UniqueFd fd(open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 && errno == ENOENT) return std::optional<Damage>{};
  if (fd.get() < 0)
    return Fail(ErrorCode::kIo, fmt::format("opening {}: {}", file.path, std::strerror(errno)));
  (void)posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  std::vector<char> piece(kPieceBytes);
  Sha256 hash;
  uint64_t done = 0;
  for (;;) {
    const ssize_t got = pread(fd.get(), piece.data(), piece.size(), static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    // The disk cannot read what it holds.
    if (got < 0)
      return std::optional(Damage{
          file.path, fmt::format("cannot be read at offset {}: {}", done, std::strerror(errno))});
    if (got == 0) break;
    hash.Update(std::string_view(piece.data(), static_cast<size_t>(got)));
    (void)posix_fadvise(fd.get(), static_cast<off_t>(done), got, POSIX_FADV_DONTNEED);
    done += static_cast<uint64_t>(got);
    if (pace && !pace(static_cast<uint64_t>(got))) return std::optional<Damage>{};
  }
  if (done != file.bytes)
    return std::optional(Damage{file.path, fmt::format("has {} bytes, not {}", done, file.bytes)});
  if (!file.sha256 || hash.Finish() == *file.sha256) return std::optional<Damage>{};
  return std::optional(Damage{file.path, "does not match the SHA-256 that it was written with"});
}

}  // namespace tacit::store
