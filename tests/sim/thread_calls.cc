// Birth, name and end of threads; clocks and sleep.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include "sim/native.h"
#include "sim/scheduler.h"

namespace tacit::sim {

int64_t StartOf(clockid_t clock) {
  constexpr int64_t kSecond = 1'000'000'000;
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  return (wall ? 2'000'000'000 : 1'000) * kSecond;
}

namespace {

timespec Time(int64_t nanoseconds) {
  return {.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
}

void Sleep(Scheduler& world, int64_t nanoseconds) {
  world.Point(Call::kSleep);
  world.Wait(WaitsFor::kTime, nullptr, world.now() + nanoseconds);
}

}  // namespace
}  // namespace tacit::sim

using tacit::sim::Scheduler;

// NOLINTBEGIN: the C library's names
extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_create)(thread, attributes, start, argument));
  return world->Create(thread, start, argument);
}

int pthread_join(pthread_t thread, void** result) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_join)(thread, result));
  world->Point(tacit::sim::Call::kJoin);
  tacit::sim::Thread* const joined = world->Find(thread);
  if (joined == nullptr) return ESRCH;
  if (joined->waits_for != tacit::sim::WaitsFor::kEnd)
    world->Wait(tacit::sim::WaitsFor::kThread, joined);
  if (result != nullptr) *result = joined->result;
  return 0;
}

// Each thread's end is seen by the scheduler, which joins it.
int pthread_detach(pthread_t thread) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_detach)(thread));
  world->Point(tacit::sim::Call::kDetach);
  return world->Find(thread) == nullptr ? ESRCH : 0;
}

int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_setname_np)(thread, name));
  tacit::sim::Thread* const named = world->Find(thread);
  if (named != nullptr) named->name = name + (" " + std::to_string(named->number));
  return 0;
}

int sched_yield() noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(sched_yield)());
  world->Point(tacit::sim::Call::kYield);
  return 0;
}

int sched_getcpu() noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(sched_getcpu)());
  return 0;
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(clock_gettime)(clock, time));
  *time = tacit::sim::Time(tacit::sim::StartOf(clock) + world->Read());
  return 0;
}

int gettimeofday(timeval* time, void* zone) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(gettimeofday)(time, zone));
  const timespec now = tacit::sim::Time(tacit::sim::StartOf(CLOCK_REALTIME) + world->Read());
  *time = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1'000};
  return 0;
}

time_t time(time_t* seconds) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(time)(seconds));
  const time_t now = tacit::sim::Time(tacit::sim::StartOf(CLOCK_REALTIME) + world->Read()).tv_sec;
  if (seconds != nullptr) *seconds = now;
  return now;
}

clock_t clock() noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(clock)());
  return world->Read() / (1'000'000'000 / CLOCKS_PER_SEC);
}

int nanosleep(const timespec* time, timespec* left) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(nanosleep)(time, left));
  tacit::sim::Sleep(*world, time->tv_sec * 1'000'000'000 + time->tv_nsec);
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(clock_nanosleep)(clock, flags, time, left));
  const int64_t nanoseconds = time->tv_sec * 1'000'000'000 + time->tv_nsec;
  const bool until = (flags & TIMER_ABSTIME) != 0;
  tacit::sim::Sleep(*world,
                    until ? nanoseconds - tacit::sim::StartOf(clock) - world->now() : nanoseconds);
  return 0;
}

int usleep(useconds_t microseconds) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(usleep)(microseconds));
  tacit::sim::Sleep(*world, int64_t{microseconds} * 1'000);
  return 0;
}

unsigned sleep(unsigned seconds) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(sleep)(seconds));
  tacit::sim::Sleep(*world, int64_t{seconds} * 1'000'000'000);
  return 0;
}

// SIGTERM alone reaches a simulated process (Scheduler::Terminate), at the end of a wait.
int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* time) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(sigtimedwait)(set, info, time));
  tacit::sim::Sleep(*world, time->tv_sec * 1'000'000'000 + time->tv_nsec);
  if (world->TakeTermination()) return SIGTERM;
  errno = EAGAIN;
  return -1;
}

}  // extern "C"
// NOLINTEND
