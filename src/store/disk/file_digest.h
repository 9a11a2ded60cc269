#pragma once

#include <rocksdb/file_checksum.h>

#include <memory>
#include <string>

#include "base/hash.h"
#include "base/result.h"

namespace tacit::store {

// The name under which RocksDB records our checksum of a file.
inline constexpr char kFileDigestName[] = "tacit.sha256";

// Makes RocksDB compute the SHA-256 of each table and blob file while it writes the file, and keep
// it with the file's other data. A checkpoint then reads none of them.
std::shared_ptr<rocksdb::FileChecksumGenFactory> MakeFileDigests();

// The SHA-256 of a file's first `bytes` bytes. kCorruption: the file is shorter. kIo: the disk.
Result<Digest> DigestOfFile(const std::string& path, uint64_t bytes);

// Reads the first `bytes` bytes of a file, passes each piece to `take` (which may be empty), and
// returns their SHA-256. kCorruption: the file is shorter.
Result<Digest> ReadPieces(const std::string& path, uint64_t bytes,
                          const std::function<Status(std::string_view)>& take);

// Writes a new file of the pieces that `next` returns, up to an empty one; syncs it and returns
// their SHA-256. kIo: the disk, or a file of this name exists.
Result<Digest> WritePieces(const std::string& path,
                           const std::function<Result<std::string_view>()>& next);

// Copies the first `bytes` bytes of a file into a new file, syncs it and returns their SHA-256.
// kCorruption: the file is shorter. kIo: the disk, or a file of the new name exists.
Result<Digest> CopyFile(const std::string& from, const std::string& to, uint64_t bytes);

// Writes a new file and syncs it. kIo: the disk, or a file of this name exists.
Status WriteNewFile(const std::string& path, std::string_view bytes);

// Syncs a folder, so that the names in it are on disk.
Status SyncFolder(const std::string& path);

}  // namespace tacit::store
