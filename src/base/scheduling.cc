#include "base/scheduling.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace tacit {
namespace {

// As linux/sched/types.h has it; that header and <sched.h> cannot both be included.
struct SchedAttributes {
  uint32_t size = sizeof(SchedAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;  // of a turn
  uint64_t deadline_ns = 0, period_ns = 0;
};

constexpr uint64_t kShortTurnNs = 200'000;

}  // namespace

bool SetIdlePriority() {
  sched_param param{};
  return pthread_setschedparam(pthread_self(), SCHED_IDLE, &param) == 0;
}

bool AskForShortTurns() {
  if (getenv("TACIT_NO_SHORT") != nullptr) return false;
  SchedAttributes now;
  if (syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0) != 0 || now.policy != SCHED_OTHER)
    return false;
  now.runtime_ns = kShortTurnNs;
  return syscall(SYS_sched_setattr, 0, &now, 0) == 0;
}

}  // namespace tacit
