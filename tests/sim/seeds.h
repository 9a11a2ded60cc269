#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tape/seeds.h"

namespace tacit::sim {

// The first seed of a run: 1, so that a run is the one before; a new one in a campaign
// (TACIT_SIM_RUNS), and the one that --gtest_random_seed names. Printed, so that it can be
// repeated.
inline uint64_t FirstSeed() {
  static const uint64_t first = [] {
    const bool same = std::getenv("TACIT_SIM_RUNS") == nullptr && GTEST_FLAG_GET(random_seed) == 0;
    const uint64_t seed = same ? 1 : tape::FirstSeed();
    std::printf("--gtest_random_seed=%d\n", static_cast<int>(seed));
    return seed;
  }();
  return first;
}

}  // namespace tacit::sim
