#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tape/seeds.h"

namespace tacit::sim {

// The first seed of a run: a new one each time, or the one that --gtest_random_seed names. Printed,
// so that it can be repeated.
inline uint64_t FirstSeed() {
  static const uint64_t first = [] {
    const uint64_t seed = tape::FirstSeed();
    std::printf("--gtest_random_seed=%d\n", static_cast<int>(seed));
    return seed;
  }();
  return first;
}

// The runs of each kind: as many as TACIT_TEST_RUNS says, or the usual number.
inline uint64_t Runs(uint64_t usual) {
  const char* const runs = std::getenv("TACIT_TEST_RUNS");
  return runs == nullptr ? usual : std::strtoull(runs, nullptr, 10);
}

}  // namespace tacit::sim
