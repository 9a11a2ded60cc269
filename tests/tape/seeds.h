#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace tacit::tape {

// A new one each time; --gtest_random_seed repeats one.
inline uint64_t FirstSeed() {
  const int32_t told = GTEST_FLAG_GET(random_seed);
  return told > 0 ? static_cast<uint64_t>(told) : 1 + std::random_device()() % 99'000;
}

}  // namespace tacit::tape
