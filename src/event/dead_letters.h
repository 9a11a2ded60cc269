#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "event/codec.h"

namespace tacit::event {

// Where dead letters are kept. Write returns once they are durable: the caller lets its offset
// advance only then. Not thread-safe but where it says so.
class DeadLetterSink {
 public:
  virtual ~DeadLetterSink() = default;
  // Where the place is out of reach for a time, waits: nothing is lost, and nothing goes on.
  // kUnavailable: interrupted; some may have been written.
  virtual Status Write(std::span<const DeadLetter> letters) = 0;
  // Ends a Write that waits, and every later one. From any thread.
  virtual void Interrupt() {}
  // Why Write waits, or "". From any thread.
  virtual std::string trouble() const { return ""; }
};

// Appends JSON lines to `path`: {"file","line","partition","offset","reason"}. A letter whose
// offset the file already holds for its partition is not written again, so that records re-read
// after a crash appear once. Operator-only: it tells which records were bad.
Result<std::unique_ptr<DeadLetterSink>> OpenDeadLetterFile(const std::string& path);

}  // namespace tacit::event
