#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/files/unique_fd.h"
#include "base/result.h"

namespace tacit::console {

// A file that is there whole or not at all: it is written beside its place under another name, and
// gets its own with Commit. Without Commit nothing is left of it. Where a link has its name, the
// link's file is the one that is replaced. One thread.
class AtomicFile {
 public:
  // kInvalidArgument: it cannot be made there, or a device or pipe has its name. `mode` is a new
  // file's, before the umask; one that is replaced gives its own.
  static Result<std::unique_ptr<AtomicFile>> Create(const std::string& path, unsigned mode = 0644);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // kIo names the file.
  Status Write(std::string_view bytes);
  // For a library that writes by itself, before Commit.
  int fd() const { return fd_.get(); }
  // Puts it in its place, over an older file, once all bytes are on the disk.
  Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, UniqueFd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

  const std::string path_, temporary_;
  UniqueFd fd_;
};

// Writes a whole file, or nothing.
Status WriteAtomically(const std::string& path, std::string_view bytes);

}  // namespace tacit::console
