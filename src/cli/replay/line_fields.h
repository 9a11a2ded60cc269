#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/config.h"

namespace tacit::cli {

// Reads the fields of a line that a replay needs besides its bytes. Not thread-safe.
class LineFields {
 public:
  virtual ~LineFields() = default;
  // Reads a line. The answers below are valid until the next Read, while the line's bytes exist.
  virtual void Read(std::string_view line) = 0;
  // The value that keys the line's record; nothing where the line has none, or it cannot be read.
  virtual std::optional<std::string_view> key() const = 0;
  // Returns true if lines of this format have times.
  virtual bool timed() const = 0;
  // The line's own time; nothing where it has none.
  virtual std::optional<int64_t> timestamp_ms() const = 0;
};

// `key` is "none" or a field: user, item, event_id or a feature's name for JSON lines, a feature's
// name for TSV lines. `timed` asks for the lines' times as well. kInvalidArgument where the format
// lacks one of them.
Result<std::unique_ptr<LineFields>> MakeLineFields(const config::Config& config,
                                                   const std::string& key, bool timed);

}  // namespace tacit::cli
