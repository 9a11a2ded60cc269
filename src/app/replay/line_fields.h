#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/config.h"

namespace tacit::app {

// What a replay wants to know of a line besides its bytes. Not thread-safe.
class LineFields {
 public:
  virtual ~LineFields() = default;
  // Turns to a line. What it says is good for as long as its bytes are, until the next one.
  virtual void Read(std::string_view line) = 0;
  // The value that the line's record is keyed by; nothing where it has none, or cannot be read.
  virtual std::optional<std::string_view> key() const = 0;
  // Whether lines of this format tell their times.
  virtual bool timed() const = 0;
  // The line's own time; nothing where it tells none.
  virtual std::optional<int64_t> timestamp_ms() const = 0;
};

// `key` is "none" or a field: of a JSON line user, item, event_id or a feature's name; of a TSV
// line a feature's name. `timed`: their times are wanted as well. kInvalidArgument where the format
// has no such field.
Result<std::unique_ptr<LineFields>> MakeLineFields(const config::Config& config,
                                                   const std::string& key, bool timed);

}  // namespace tacit::app
