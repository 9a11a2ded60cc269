#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>

#include "support/silent_noise.h"

namespace tacit::noise {

// Noise that fails the test where it is asked for before it was given a new key.
class KeyWatch final : public SilentNoise {
 public:
  void Rekey() override { fresh_ = true; }
  void AddGridGaussian(double, std::span<int64_t>) override {
    EXPECT_TRUE(fresh_) << "noise of a key that another release may have used";
    ++asked;
  }
  int asked = 0;

 private:
  bool fresh_ = false;
};

}  // namespace tacit::noise
