#pragma once

#include <memory>
#include <utility>

#include "noise/forwarded_noise.h"
#include "tape/run.h"

namespace tacit::tape {

// Stands between a learner and its tape; a fault spoils one of the draws.
class Spoilt : public noise::ForwardedNoise {
 public:
  explicit Spoilt(std::unique_ptr<noise::NoiseSource> inner) : inner_(std::move(inner)) {}
  // Draws go through this, and not to the inner source itself.
  void ForParts(size_t n, const Part& part) override {
    if (n > 0) part(0, n, *this);
  }

 protected:
  noise::NoiseSource& to() override { return *inner_; }

 private:
  const std::unique_ptr<noise::NoiseSource> inner_;
};

template <class Noise>
Planted With() {
  return {.noise = [](std::unique_ptr<noise::NoiseSource> inner) {
    return std::make_unique<Noise>(std::move(inner));
  }};
}

}  // namespace tacit::tape
