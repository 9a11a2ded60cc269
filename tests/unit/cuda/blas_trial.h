#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "unit/cuda/blas_stand_in.h"

namespace tacit::cuda::testing {

// Tells whether this program must have a library, as one for the emulated device has: its loader
// finds the stand-in from then on. A real device's has what the machine has.
bool LibraryMustBeThere();

// The stand-in, which is loaded once for the process, without faults and with its counts at 0. From
// then on the loader gives it to callers that ask for cuBLAS by name.
BlasStandIn& FreshStandIn();

// A clock by which launches of our own products take a second together, and those of the stand-in a
// second and `more` for each product.
class StandInClock final : public Clock {
 public:
  StandInClock(const BlasStandIn& stand_in, std::chrono::microseconds more)
      : stand_in_(stand_in), more_(more) {}
  TimePoint Now() const override {
    return TimePoint(std::chrono::seconds(++looks_) + static_cast<int64_t>(stand_in_.done) * more_);
  }
  int64_t UnixMillis() const override { return 0; }

 private:
  const BlasStandIn& stand_in_;
  const std::chrono::microseconds more_;
  mutable int64_t looks_ = 0;
};

}  // namespace tacit::cuda::testing
