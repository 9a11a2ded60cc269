#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

namespace tacit::train {

// The parts of a private step: rows brought into memory; forward and backward passes up to clipped
// sums; selection and noise; the optimiser.
enum class StepPhase : size_t { kGather, kGradients, kRelease, kUpdate };
inline constexpr std::array<std::string_view, 4> kStepPhaseNames = {"gather", "gradients",
                                                                    "release", "update"};

// Seconds that a step's phases took. They depend on its records: operator-only.
using StepPhases = std::array<double, kStepPhaseNames.size()>;

// Measures the phases of a step, one reading of the clock at each border. Not thread-safe.
class PhaseTimer {
 public:
  // Begins a phase, and ends the one before.
  void Enter(StepPhase phase) {
    Stop();
    phase_ = static_cast<size_t>(phase);
  }
  // Ends the phase; no other begins.
  void Stop() {
    const Clock::time_point now = Clock::now();
    if (phase_ < seconds_.size())
      seconds_[phase_] += std::chrono::duration<double>(now - since_).count();
    since_ = now;
    phase_ = seconds_.size();
  }
  // Ends the phase and returns all that was measured since the last call.
  StepPhases Take() {
    Stop();
    return std::exchange(seconds_, {});
  }

 private:
  using Clock = std::chrono::steady_clock;
  StepPhases seconds_{};
  size_t phase_ = kStepPhaseNames.size();  // none
  Clock::time_point since_{};
};

}  // namespace tacit::train
