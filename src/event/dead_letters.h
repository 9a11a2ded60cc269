#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "event/codec.h"

namespace tacit::event {

// Where dead letters are kept. Write returns once they are durable: the caller lets its offset
// advance only then. Not thread-safe.
class DeadLetterSink {
 public:
  virtual ~DeadLetterSink() = default;
  virtual Status Write(std::span<const DeadLetter> letters) = 0;
};

// Appends JSON lines to `path`: {"file","line","partition","offset","reason"}. A letter whose
// offset the file already holds for its partition is not written again, so that records re-read
// after a crash appear once. Operator-only: it tells which records were bad.
Result<std::unique_ptr<DeadLetterSink>> OpenDeadLetterFile(const std::string& path);

}  // namespace tacit::event
