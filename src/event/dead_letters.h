#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "event/codec.h"

namespace tacit::event {

// A place that keeps dead letters. Write returns once they are durable: only then may the caller
// let its offset advance. Not thread-safe except where a comment says so.
class DeadLetterSink {
 public:
  virtual ~DeadLetterSink() = default;
  // Waits while the place is out of reach: nothing is lost, and reading stops meanwhile.
  // kUnavailable: interrupted; some letters may have been written.
  virtual Status Write(std::span<const DeadLetter> letters) = 0;
  // Ends a waiting Write and every later one. May be called from any thread.
  virtual void Interrupt() {}
  // Returns the reason why Write waits, or "". May be called from any thread.
  virtual std::string trouble() const { return ""; }
};

struct DeadLetterFileOptions {
  std::string path;
  uint64_t max_bytes = 64u << 20;  // per file; a full one becomes PATH.1, that one PATH.2, ...
  uint32_t files = 4;              // kept in all, REQUIRES at least 2; the oldest is removed
};

// Appends JSON lines to `path`: {"file","line","partition","offset","reason"}. A letter whose
// offset these files already hold for its partition is not written again, so that records re-read
// after a crash appear once. This covers the files that are kept, of each its last max_bytes, and
// as many offsets as RecentOffsets has room for.
//
// If the file cannot be written (a full disk), Write tries again until it can. If the file was
// moved away, as log rotation does, the next Write creates a new one. Lines that are no dead
// letters are skipped and reported in the log. Operator-only: the file shows which records were
// bad.
Result<std::unique_ptr<DeadLetterSink>> OpenDeadLetterFile(DeadLetterFileOptions options);

}  // namespace tacit::event
