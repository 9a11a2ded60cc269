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

// The header of a replayed record. With it, an interrupted replay resumes after the last record of
// each partition, without a gap or a duplicate.
namespace tacit::cli {

inline constexpr std::string_view kReplayHeaderName = "tacit-replay";

// The header's value: NAME:LINE, ID, RUN, PARTITIONS and KEY with tabs between them.
struct ReplayHeader {
  std::string name;   // the file's, without folders
  uint64_t line = 0;  // in the file, from 1
  std::string id;     // a digest of the file's contents
  uint64_t run = 1;   // the number of replays of the log into the topic so far, this one included
  int32_t partitions = 0;
  std::string key;  // the field that records are keyed by, which decides a line's partition
};
std::string ReplayHeaderText(const ReplayHeader& header);
// Returns nothing for a text that is not a header.
std::optional<ReplayHeader> ParseReplayHeader(std::string_view text);

// A file to replay.
struct ReplayFile {
  std::string path;
  std::string name;
  std::string id;          // hexadecimal: a part of the SHA-256 of its first MiB
  uint64_t raw_bytes = 0;  // size on disk, compressed or not
};
// Fails where a file cannot be read or is given twice, or is a cut packed one of less than 1 MiB.
Result<std::vector<ReplayFile>> LookAtFiles(std::span<const std::string> paths);

// A line's place in the replay.
struct ReplayPlace {
  size_t file = 0;
  uint64_t line = 0;  // 0: before the first
  friend auto operator<=>(const ReplayPlace&, const ReplayPlace&) = default;
};

// The records already in the topic, known by their headers.
class ReplayHistory {
 public:
  explicit ReplayHistory(std::span<const ReplayFile> files) : files_(files) {}

  // Notes the header of a record; records may come in any order. Ignores headers of other logs.
  void Note(int32_t partition, const ReplayHeader& header);

  // kRefused where the remaining lines could not go to the same partitions as the first ones: the
  // number of partitions or the key has changed, or a file is no longer the same.
  Status Check(int32_t partitions, const std::string& key) const;

  // The last run; 0 if there was none.
  uint64_t run() const { return run_; }
  // The last line of that run in the partition.
  ReplayPlace Last(int32_t partition) const;

 private:
  const std::span<const ReplayFile> files_;
  uint64_t run_ = 0;
  std::map<int32_t, ReplayPlace> last_;  // in run_
  std::optional<ReplayHeader> any_;      // the header noted last, of run_
  std::optional<std::string> changed_;   // a file with the same name but other contents
};

}  // namespace tacit::cli
