#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/files/unique_fd.h"
#include "base/result.h"
#include "event/dead_letters.h"
#include "event/letter_line.h"

namespace tacit::event {

// The file that letters are appended to, and the older ones beside it: PATH.1 is the last full one,
// PATH.2 the one before. Other programs may use PATH too: what they append stays, and if they move
// it away the next Append creates a new file. Not thread-safe.
class LetterFile {
 public:
  // Opens or creates PATH and cuts off a letter that a crash left unfinished. Passes every kept
  // letter to `note`; of a file above max_bytes only those in its last max_bytes. Skips lines that
  // are no letters and reports them in the log. kInvalidArgument for what is there and is no
  // regular file.
  static Result<LetterFile> Open(DeadLetterFileOptions options,
                                 const std::function<void(const LetterPlace&)>& note);

  // Appends whole lines durably. Moves a file aside first if it would grow past max_bytes. kIo:
  // none of `lines` is in the file; try again.
  Status Append(std::string_view lines);

 private:
  explicit LetterFile(DeadLetterFileOptions options) : options_(std::move(options)) {}

  std::string PathOf(uint32_t age) const;
  Status Attach();
  bool IsMovedAway() const;
  Status CutTornEnd();
  Status Rotate();
  Status FindEnd(std::string* before);
  Status Write(std::string_view bytes);
  Status CutBack();

  DeadLetterFileOptions options_;
  UniqueFd fd_;
  uint64_t size_ = 0;  // as this process left it
};

}  // namespace tacit::event
