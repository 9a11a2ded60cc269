#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "stream/steps/participation.h"

namespace tacit::train {

// A learner's position as the store keeps it, in the notation of base/bytes.h:
//     position := format:u8 pass:u64 period:u64 step:u64 period_step:u64 period_cuts:u64
//                 begun_anew:u64 longest_period:u64 reading:u64 reading_since:u64
//                 period_start:ranges next:ranges
//     format   := 1
//     ranges   := count:u32 range*count
//     range    := partition:i32 begin:u64 end:u64
// An empty string is the position of a learner that never committed. The allocation of the period
// is not in it: positions are witnessed, and that one is secret.
std::string EncodePosition(const stream::Position& position);
Result<stream::Position> DecodePosition(std::string_view bytes);

// The allocation of an unfinished period as the store keeps it, apart from the position:
//     allocation := format:u8 key:byte*16 block_steps:u64 period_steps:u64 noise_multiplier:f64
//     format     := 1
// The period was charged for steps with this noise. Empty if there is none.
std::string EncodeAllocation(const std::optional<stream::PeriodAllocation>& allocation,
                             double noise_multiplier);
// Returns nothing if there is none, or if steps with this noise were not what was charged.
Result<std::optional<stream::PeriodAllocation>> DecodeAllocation(std::string_view bytes,
                                                                 double noise_multiplier);

}  // namespace tacit::train
