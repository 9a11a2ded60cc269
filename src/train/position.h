#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "stream/steps/participation.h"

namespace tacit::train {

// A learner's position as the store keeps it, in the notation of base/bytes.h:
//     position := format:u8 pass:u64 period:u64 step:u64 period_step:u64 [period_marks:u64]
//                 period_start:ranges next:ranges
//     format   := 2; 1 has no period_marks, and is still read
//     ranges   := count:u32 range*count
//     range    := partition:i32 begin:u64 end:u64
// An empty string is the position of a learner that never committed.
std::string EncodePosition(const stream::Position& position);
Result<stream::Position> DecodePosition(std::string_view bytes);

}  // namespace tacit::train
