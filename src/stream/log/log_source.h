#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "stream/source.h"

namespace tacit::event {
class AvroSchemas;
}  // namespace tacit::event

namespace tacit::stream {

struct LogSourceOptions {
  // Read in this order; plain, gzip or zstd. Or kStandardInput alone.
  std::vector<std::string> files;
  size_t max_record_bytes = 1 << 20;
  size_t records_per_poll = kRecordsPerPoll;
  // Waits for the rest of a packed file that is cut, and says so in health(). Else Poll fails
  // there.
  bool waits_for_rest = false;
  // One of the files, if it is cut for good: the cut is damage like any other. Else empty.
  std::string past_cut = {};
  // Files are Avro's object container files, whose schemas go here. Without it, they have lines.
  std::shared_ptr<event::AvroSchemas> avro = {};
};

// Log files as one topic with one partition, 0: the offset of a record is its line number across
// the files, from 0. Each file end is a public cut. The source ends after the last file; Seek({0,
// 0}) reads everything again.
//
// The records of Avro's container files are counted in the place of lines.
//
// A corrupt packed file gives every line that can be read and then one faulty record; a line that
// is too long is a faulty record as well. Neither stops the stream.
//
// A packed file that is cut, ending within a gzip member or a zstd frame, is not at its end: no
// public cut, no fault and no later file comes before the rest is there, be it appended or with the
// whole file put in its place, now or at another start.
//
// Records that were read must not change. A file is identified by its name, the SHA-256 of its
// first MiB and, once its end was seen, its size and its number of lines. Files may be added after
// the last one; a changed, grown, removed or moved file is refused by name. A change that keeps the
// size and the first MiB goes unseen.
//
// kStandardInput is a log of its own. A start with a store that has read some of it skips that
// much, and refuses other first bytes, or more than there were when its end was seen.
//
// Fails when a file is missing, unreadable, a directory, or there twice, or past_cut is none of
// them.
Result<std::unique_ptr<Source>> OpenLogSource(LogSourceOptions options);

}  // namespace tacit::stream
