#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "stream/source.h"

namespace tacit::stream {

struct LogSourceOptions {
  std::vector<std::string> files;  // read in this order; plain, gzip or zstd
  size_t max_record_bytes = 1 << 20;
  size_t records_per_poll = kRecordsPerPoll;
};

// Log files as one topic with one partition, 0: the offset of a record is its line number across
// the files, from 0. Each file end is a public mark. The source ends after the last file; Seek({0,
// 0}) reads everything again.
//
// A damaged packed file gives every line that can be read and then one faulty record; a line that
// is too long is a faulty record as well. Neither stops the stream.
//
// Records that were read must not change. A file is identified by its name, the SHA-256 of its
// first MiB and, once its end was seen, its size and its number of lines. Files may be added after
// the last one; a changed, grown, removed or moved file is refused by name. A change that keeps the
// size and the first MiB goes unseen.
//
// Fails when a file is missing, unreadable, a directory, or there twice.
Result<std::unique_ptr<Source>> OpenLogSource(LogSourceOptions options);

}  // namespace tacit::stream
