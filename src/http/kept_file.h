#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"

// Files that decide who is let in, and what is signed with.
namespace tacit::http {

// The figures that tell one content of a file from the next.
struct FileStamp {
  dev_t device = 0;
  ino_t file = 0;
  off_t bytes = 0;
  int64_t changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

// The stamp of a file as it is now; all zero where there is none.
FileStamp StampOfFile(const std::string& path);

// The text of a file. kInvalidArgument names `key`, the file and what is wrong.
Result<std::string> ReadOpenFile(const std::string& key, const std::string& path);

// The same of one that nobody but root and the daemon's user may change, and only they and a group
// may read. Fills in `stamp` as soon as the file is there.
Result<std::string> ReadKeptFile(const std::string& key, const std::string& path, FileStamp* stamp);

}  // namespace tacit::http
