// The product's crash points, in a simulated process.
#include "base/crash_point.h"

#include "sim/disk.h"
#include "sim/scheduler.h"

namespace tacit {

void CrashPoint(const char* name) {
  const sim::Scheduler* const world = sim::Scheduler::current();
  if (world != nullptr && world->disk() != nullptr) world->disk()->Pass(name);
}

}  // namespace tacit
