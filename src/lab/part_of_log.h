#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "stream/source.h"

namespace tacit::lab {

// The records of a log with offsets in [from, to), as a source that ends there, and where the end
// of a file is told if none is there; offsets stay. The log is a source of one partition that ends,
// with at least `to` records.
std::unique_ptr<stream::Source> PartOfLog(std::unique_ptr<stream::Source> log, uint64_t from,
                                          uint64_t to);

// Reads a log to its end, and counts its offsets. `files`: how many of its files have a line.
Result<uint64_t> CountOffsets(stream::Source& log, uint64_t* files);

}  // namespace tacit::lab
