#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "stream/participation.h"

namespace tacit::train {

// A learner's position as the store keeps it (format 2, little-endian): u8 format, u64 pass, u64
// period, u64 step, u64 period_step, u64 period_marks (not in format 1, which is still read), u32
// count and that many {i32 partition, u64 begin, u64 end} of
// period_start, the same of next. An empty string is the position of a learner that never
// committed.
std::string EncodePosition(const stream::Position& position);
Result<stream::Position> DecodePosition(std::string_view bytes);

}  // namespace tacit::train
