#pragma once

#include <span>
#include <vector>

#include "bench/suite.h"
#include "config/config.h"
#include "model/histories.h"

namespace tacit::bench {

// Appends private steps of the sequence model with each of these carriers over steps without, in
// turns on one core.
Status AddSequenceCarriers(std::span<const config::Carriers> settings, bool quick,
                           std::vector<BenchRow>* rows);

// The time with carriers over the time without that both models are held to.
inline constexpr double kMostCarrierTimes = 1.3;

// Users of one full window each, who take popular items often.
model::Histories FullWindows(uint32_t catalogue, uint32_t length, uint32_t users);

}  // namespace tacit::bench
