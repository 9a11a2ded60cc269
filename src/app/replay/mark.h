#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What a replayed record says of itself, so that a replay that was cut off goes on behind the last
// record of each partition, with neither a gap nor a record twice.
namespace tacit::app {

inline constexpr std::string_view kReplayHeader = "tacit-replay";

// The header's value: NAME:LINE, ID, RUN, PARTITIONS and KEY with tabs between them.
struct ReplayMark {
  std::string name;   // of the file, without folders
  uint64_t line = 0;  // in the file, from 1
  std::string id;     // of the file's contents
  uint64_t run = 1;   // how often the log has been replayed into the topic, this time included
  int32_t partitions = 0;
  std::string key;  // what records are keyed by: it says which partition a line goes to
};
std::string ReplayMarkText(const ReplayMark& mark);
// Nothing for a text that is no mark.
std::optional<ReplayMark> ParseReplayMark(std::string_view text);

// One of the files to be replayed.
struct ReplayFile {
  std::string path;
  std::string name;
  std::string id;          // hexadecimal: a part of the SHA-256 of its first MiB
  uint64_t raw_bytes = 0;  // as it lies there, packed or not
};
// Fails where one cannot be read or is there twice.
Result<std::vector<ReplayFile>> LookAtFiles(std::span<const std::string> paths);

// A line's place in the replay.
struct ReplayPlace {
  size_t file = 0;
  uint64_t line = 0;  // 0: before the first
  friend auto operator<=>(const ReplayPlace&, const ReplayPlace&) = default;
};

// What is in the topic already, told by its records' marks.
class ReplayHistory {
 public:
  explicit ReplayHistory(std::span<const ReplayFile> files) : files_(files) {}

  // In any order. Marks of other logs are passed over.
  void Note(int32_t partition, const ReplayMark& mark);

  // kRefused where the rest could not be sent to the partitions that the first part went to:
  // the topic has grown, records were keyed by something else, a file has changed.
  Status Check(int32_t partitions, const std::string& key) const;

  // The last run; 0: there was none.
  uint64_t run() const { return run_; }
  // The last line that the partition holds of that run.
  ReplayPlace Last(int32_t partition) const;

 private:
  const std::span<const ReplayFile> files_;
  uint64_t run_ = 0;
  std::map<int32_t, ReplayPlace> last_;  // of run_
  std::optional<ReplayMark> any_;        // of run_
  std::optional<std::string> changed_;   // a file that was another one
};

}  // namespace tacit::app
