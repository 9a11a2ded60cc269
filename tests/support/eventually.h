#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace tacit::test {

// The time that a test waits for a state before it fails. An idle machine needs a fraction of it; a
// busy one stalls for seconds at any point, and sanitizers slow everything down.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::seconds kPatience{180};
#else
inline constexpr std::chrono::seconds kPatience{60};
#endif

// Looks at `holds` again and again until it returns true. Fails when `patience` is over and enough
// looks were taken, so that a machine that stood still does not fail the test; the failure names
// the state that was waited for.
template <class Condition>
[[nodiscard]] testing::AssertionResult Eventually(const std::string& state, const Condition& holds,
                                                  std::chrono::milliseconds patience = kPatience) {
  using std::chrono::milliseconds;
  constexpr int kLooksLeast = 5;
  const auto begun = std::chrono::steady_clock::now();
  milliseconds pause(1);
  for (int looks = 1;; ++looks) {
    if (holds()) return testing::AssertionSuccess();
    const auto waited = std::chrono::steady_clock::now() - begun;
    if (looks >= kLooksLeast && waited > patience)
      return testing::AssertionFailure()
             << "waited " << std::chrono::duration<double>(waited).count()
             << " s in vain: " << state;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, milliseconds(20));
  }
}

}  // namespace tacit::test
