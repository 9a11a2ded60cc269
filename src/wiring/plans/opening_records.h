#pragma once

#include <cstdint>

namespace tacit::wiring {

// Returns the records of a linear model's very first period, which finds the click rate and nothing
// else, where other periods have `period`. Shorter, it finds the rate less well; longer, more
// records are predicted by nothing. `clicks_noise`, `events_noise`: deviations of the noise on both
// numbers.
uint64_t OpeningRecords(uint64_t period, double clicks_noise, double events_noise);

}  // namespace tacit::wiring
