#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace tacit::stream {

// The error of a log file that another program did this to while it was read, with what to do.
tl::unexpected<Error> ChangedWhileRead(const std::string& path, std::string_view how);

// The bytes of one log file from front to back, unpacked if the file is gzip or zstd (recognised by
// its first bytes, not by its name). The file may grow meanwhile. Not thread-safe.
class InputFile {
 public:
  // Fails for a file that is missing, not readable or not regular.
  static Result<std::unique_ptr<InputFile>> Open(const std::string& path);
  virtual ~InputFile() = default;

  // Reads the next bytes; returns 0 at the end, or where damage stops reading: then fault() says
  // why. The same file gives the same bytes and the same fault every time. Fails, in place of
  // giving bytes, once the file was cut short or begins with other bytes than when it was opened.
  virtual Result<size_t> Read(std::span<char> out) = 0;

  // "truncated gzip data at byte 1234 of PATH"; empty for a sound file, and until a damaged file's
  // end is reached.
  const std::string& fault() const { return fault_; }
  // Bytes of the file itself; packed bytes if it is packed.
  uint64_t raw_size() const { return opened_.raw_size; }  // when it was opened
  uint64_t raw_read() const { return raw_read_; }         // so far

  // Device and inode: two names of one file compare equal.
  struct Inode {
    uint64_t device = 0, number = 0;
    friend auto operator<=>(const Inode&, const Inode&) = default;
  };
  Inode inode() const { return opened_.inode; }

  // Returns the SHA-256 of the first `bytes` bytes of the file itself. REQUIRES bytes <=
  // raw_size().
  Result<Digest> HashPrefix(uint64_t bytes) const;

 protected:
  struct Opened {
    UniqueFd fd;
    std::string path;
    uint64_t raw_size = 0;
    Inode inode;
    std::string head;  // its first bytes
  };
  explicit InputFile(Opened opened) : opened_(std::move(opened)) {}

  // Calls read(2), looks whether the file is still the one that was opened, and counts the bytes.
  Result<size_t> ReadRaw(std::span<char> out);
  // Ends the file early; adds the place to `how`.
  void SetFault(std::string_view how, uint64_t raw_offset);

 private:
  Status CheckUntouched(uint64_t read) const;

  const Opened opened_;
  uint64_t raw_read_ = 0;
  std::string fault_;
};

}  // namespace tacit::stream
