#include "store/disk/file_digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string_view>
#include <vector>

#include "base/files/unique_fd.h"
#include "store/disk/folder.h"

namespace tacit::store {
namespace {

class DigestGenerator final : public rocksdb::FileChecksumGenerator {
 public:
  void Update(const char* data, size_t n) override { hash_.Update(std::string_view(data, n)); }
  void Finalize() override {
    const Digest digest = hash_.Finish();
    checksum_.assign(digest.begin(), digest.end());
  }
  std::string GetChecksum() const override { return checksum_; }
  const char* Name() const override { return kFileDigestName; }

 private:
  Sha256 hash_;
  std::string checksum_;
};

class DigestFactory final : public rocksdb::FileChecksumGenFactory {
 public:
  // OpenSSL sets itself up in the thread that hashes first, and frees what it then keeps for that
  // thread where the thread ends. RocksDB's threads outlive main, so it is the caller's.
  DigestFactory() { Sha256(); }

  std::unique_ptr<rocksdb::FileChecksumGenerator> CreateFileChecksumGenerator(
      const rocksdb::FileChecksumGenContext& context) override {
    const std::string& wanted = context.requested_checksum_func_name;
    if (!wanted.empty() && wanted != kFileDigestName) return nullptr;
    return std::make_unique<DigestGenerator>();
  }
  const char* Name() const override { return "tacit.sha256_factory"; }
};

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Fail(FolderError(errno, "writing", path));
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

Result<UniqueFd> CreateNew(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return Fail(FolderError(errno, "creating", path));
  return file;
}

Status SyncOpenFile(int fd, const std::string& path) {
  if (fsync(fd) != 0) return Fail(FolderError(errno, "syncing", path));
  return {};
}

}  // namespace

Result<Digest> ReadPieces(const std::string& path, uint64_t bytes,
                          const std::function<Status(std::string_view)>& take) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Fail(FolderError(errno, "opening", path));
  std::vector<char> piece(std::clamp<uint64_t>(bytes, 1, 1 << 20));
  Sha256 hash;
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t got = read(file.get(), piece.data(), std::min(bytes - done, piece.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(FolderError(errno, "reading", path));
    if (got == 0)
      return Fail(ErrorCode::kCorruption,
                  fmt::format("{} has {} bytes, not {}", path, done, bytes));
    const std::string_view read(piece.data(), static_cast<size_t>(got));
    hash.Update(read);
    if (take) TACIT_RETURN_IF_ERROR(take(read));
    done += read.size();
  }
  return hash.Finish();
}

Result<Digest> WritePieces(const std::string& path,
                           const std::function<Result<std::string_view>()>& next) {
  TACIT_ASSIGN(const UniqueFd file, CreateNew(path));
  Sha256 hash;
  for (;;) {
    TACIT_ASSIGN(const std::string_view piece, next());
    if (piece.empty()) break;
    hash.Update(piece);
    TACIT_RETURN_IF_ERROR(WriteAll(file.get(), piece, path));
  }
  TACIT_RETURN_IF_ERROR(SyncOpenFile(file.get(), path));
  return hash.Finish();
}

std::shared_ptr<rocksdb::FileChecksumGenFactory> MakeFileDigests() {
  return std::make_shared<DigestFactory>();
}

Result<Digest> DigestOfFile(const std::string& path, uint64_t bytes) {
  return ReadPieces(path, bytes, {});
}

Result<Digest> CopyFile(const std::string& from, const std::string& to, uint64_t bytes) {
  TACIT_ASSIGN(const UniqueFd file, CreateNew(to));
  TACIT_ASSIGN(const Digest digest, ReadPieces(from, bytes, [&](std::string_view piece) {
                 return WriteAll(file.get(), piece, to);
               }));
  TACIT_RETURN_IF_ERROR(SyncOpenFile(file.get(), to));
  return digest;
}

Status WriteNewFile(const std::string& path, std::string_view bytes) {
  TACIT_ASSIGN(const UniqueFd file, CreateNew(path));
  TACIT_RETURN_IF_ERROR(WriteAll(file.get(), bytes, path));
  return SyncOpenFile(file.get(), path);
}

Status SyncFolder(const std::string& path) {
  const UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return Fail(FolderError(errno, "opening", path));
  return SyncOpenFile(folder.get(), path);
}

}  // namespace tacit::store
