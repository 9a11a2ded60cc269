// The crash tests' CrashPoint: TACIT_TEST_CRASH_AT=NAME:N kills the process, as if the power went,
// the N-th time (from 1) it comes to that point.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/crash_point.h"

namespace tacit {

void CrashPoint(const char* name) {
  static const char* const wanted = getenv("TACIT_TEST_CRASH_AT");
  if (wanted == nullptr) return;
  static const std::string wanted_name(wanted, std::strcspn(wanted, ":"));
  static const int wanted_hit = std::atoi(wanted + wanted_name.size() + 1);
  static std::atomic<int> hits = 0;
  if (wanted_name != name || ++hits != wanted_hit) return;
  kill(getpid(), SIGKILL);
  pause();
}

}  // namespace tacit
