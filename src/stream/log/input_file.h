#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/unique_fd.h"
#include "base/hash.h"
#include "base/result.h"
#include "stream/log/standard_input.h"

namespace tacit::stream {

// The error of a log file that another program did this to while it was read, with what to do.
tl::unexpected<Error> ChangedWhileRead(const std::string& path, std::string_view how);

// The bytes of one log file from front to back, unpacked if the file is gzip or zstd (recognised by
// its first bytes, not by its name). The file may grow meanwhile. Not thread-safe.
class InputFile {
 public:
  // A packed file that ends within a member or frame: the rest is yet to be written, or never will
  // be.
  enum class CutIs { kUnfinished, kDamage };

  // Fails for a file that is missing, not readable or not regular. kStandardInput opens that.
  static Result<std::unique_ptr<InputFile>> Open(const std::string& path,
                                                 CutIs cut = CutIs::kUnfinished);
  virtual ~InputFile() = default;

  // Reads the next bytes; returns 0 at the end, at a cut, or where damage stops reading: cut() or
  // fault() then say so. The same file gives the same bytes and the same fault every time. Fails,
  // in place of giving bytes, once the file became shorter or begins with other bytes than when it
  // was opened.
  virtual Result<size_t> Read(std::span<char> out) = 0;

  // "corrupt gzip data (REASON) at byte 1234 of PATH"; empty for a sound file, and until the damage
  // is reached.
  const std::string& fault() const { return fault_; }
  // "truncated gzip data at byte 1234 of PATH" if the last Read came to the end of an unfinished
  // file; else empty. The next Read goes on with bytes that were written meanwhile.
  const std::string& cut() const { return cut_; }
  // The cut is one of standard input, which has not ended: more bytes come.
  bool waiting() const { return waiting_; }
  // For messages.
  const std::string& path() const { return opened_.path; }
  CutIs cut_is() const { return opened_.cut; }
  bool is_standard_input() const { return opened_.input != nullptr; }
  // Bytes of the file itself; packed bytes if it is packed.
  uint64_t raw_size() const { return opened_.raw_size; }  // when it was opened, as far as known
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
    CutIs cut = CutIs::kUnfinished;
    StandardInput* input = nullptr;  // in place of a file
  };
  explicit InputFile(Opened opened) : opened_(std::move(opened)) {}

  // Calls read(2), looks whether the file is still the one that was opened, and counts the bytes.
  Result<size_t> ReadRaw(std::span<char> out);
  // Ends the file early; adds the place to `how`.
  void SetFault(std::string_view how, uint64_t raw_offset);
  // Says that the file's end lies within a member or frame, or forgets it.
  void SetCut(std::string_view how);
  void ForgetCut() {
    cut_.clear();
    waiting_ = false;
  }
  bool stopped() const { return !fault_.empty() || !cut_.empty(); }

 private:
  static Result<Opened> OpenBytes(const std::string& path, CutIs cut);
  Status CheckUntouched(uint64_t read) const;

  const Opened opened_;
  uint64_t raw_read_ = 0;
  std::string fault_, cut_;
  bool waiting_ = false;
};

}  // namespace tacit::stream
