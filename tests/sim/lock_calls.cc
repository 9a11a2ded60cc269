// Mutexes, conditions, locks for readers and writers, once, and futexes. The C library's own state
// of a simulated lock never changes: the scheduler knows who holds it.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "sim/native.h"
#include "sim/scheduler.h"

namespace tacit::sim {
namespace {

int KindOf(const pthread_mutex_t* mutex) { return mutex->__data.__kind & 3; }

void Take(Scheduler& world, const void* mutex, uint32_t times = 1) {
  while (world.mutexes.contains(mutex)) world.Wait(WaitsFor::kMutex, mutex);
  world.mutexes[mutex] = {&Scheduler::self(), times};
}

int Lock(Scheduler& world, pthread_mutex_t* mutex) {
  world.Point(Call::kLock);
  const auto held = world.mutexes.find(mutex);
  if (held != world.mutexes.end() && held->second.owner == &Scheduler::self()) {
    if (KindOf(mutex) == PTHREAD_MUTEX_ERRORCHECK) return EDEADLK;
    if (KindOf(mutex) == PTHREAD_MUTEX_RECURSIVE) return ++held->second.times, 0;
  }
  Take(world, mutex);
  return 0;
}

int TryLock(Scheduler& world, pthread_mutex_t* mutex) {
  world.Point(Call::kTryLock);
  const auto held = world.mutexes.find(mutex);
  if (held == world.mutexes.end()) return Take(world, mutex), 0;
  if (held->second.owner != &Scheduler::self() || KindOf(mutex) != PTHREAD_MUTEX_RECURSIVE)
    return EBUSY;
  ++held->second.times;
  return 0;
}

int Unlock(Scheduler& world, pthread_mutex_t* mutex) {
  world.Point(Call::kUnlock);
  const auto held = world.mutexes.find(mutex);
  if (held == world.mutexes.end() || held->second.owner != &Scheduler::self())
    world.GiveUp(Scheduler::self().name + " unlocks a mutex that it does not hold");
  if (--held->second.times == 0) world.mutexes.erase(held);
  return 0;
}

int AwaitNotice(Scheduler& world, const void* condition, pthread_mutex_t* mutex,
                std::optional<int64_t> deadline = std::nullopt) {
  const uint64_t draw = world.Point(Call::kWait);
  const auto held = world.mutexes.find(mutex);
  if (held == world.mutexes.end() || held->second.owner != &Scheduler::self())
    world.GiveUp(Scheduler::self().name + " waits with a mutex that it does not hold");
  const uint32_t times = held->second.times;
  world.mutexes.erase(held);
  bool in_time = true;
  // POSIX lets a wait end without a notice.
  if (world.chaotic() && (draw >> 40) % 32 == 0)
    world.Yield(draw);
  else
    in_time = world.Wait(WaitsFor::kNotice, condition, deadline);
  Take(world, mutex, times);
  return in_time ? 0 : ETIMEDOUT;
}

int Tell(Scheduler& world, const void* condition, int most) {
  const uint64_t draw = world.Point(Call::kNotify);
  world.Notify(condition, most, draw);
  return 0;
}

int64_t Nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

constexpr int kAll = 1 << 30;

int Read(Scheduler& world, const void* lock, bool waits) {
  world.Point(Call::kReadLock);
  while (world.shared[lock].writer != nullptr) {
    if (!waits) return EBUSY;
    world.Wait(WaitsFor::kReading, lock);
  }
  ++world.shared[lock].readers;
  return 0;
}

int Write(Scheduler& world, const void* lock, bool waits) {
  world.Point(Call::kWriteLock);
  while (world.shared.contains(lock)) {
    if (!waits) return EBUSY;
    world.Wait(WaitsFor::kWriting, lock);
  }
  world.shared[lock].writer = &Scheduler::self();
  return 0;
}

int Release(Scheduler& world, const void* lock) {
  world.Point(Call::kUnlock);
  const auto held = world.shared.find(lock);
  if (held == world.shared.end())
    world.GiveUp(Scheduler::self().name + " unlocks a lock of readers that nobody holds");
  held->second.writer = nullptr;
  if (held->second.readers > 0) --held->second.readers;
  if (held->second.readers == 0) world.shared.erase(held);
  return 0;
}

// The C library's numbers for a call that is still to be made, or has been.
constexpr int kOnceDone = 2;

int Once(Scheduler& world, pthread_once_t* once, void (*call)()) {
  world.Point(Call::kOnce);
  if (*once == kOnceDone) return 0;
  Take(world, once);
  struct Given {
    Scheduler& world;
    const void* once;
    ~Given() { world.mutexes.erase(once); }  // also if the call throws
  } const given{world, once};
  if (*once == kOnceDone) return 0;
  call();
  *once = kOnceDone;
  return 0;
}

// Returns as the kernel does.
long Futex(Scheduler& world, const uint32_t* word, int operation, uint32_t value,
           const timespec* timeout) {
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
      const uint64_t draw = world.Point(Call::kFutexWake);
      return world.Notify(word, static_cast<int>(value), draw);
    }
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: {
      world.Point(Call::kFutexWait);
      if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) return -EAGAIN;
      std::optional<int64_t> deadline;
      if (timeout != nullptr) {
        deadline = Nanoseconds(*timeout);
        if ((operation & FUTEX_CMD_MASK) == FUTEX_WAIT)
          *deadline += world.now();
        else
          *deadline -=
              StartOf((operation & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC);
      }
      return world.Wait(WaitsFor::kNotice, word, deadline) ? 0 : -ETIMEDOUT;
    }
    default:
      std::abort();
  }
}

}  // namespace
}  // namespace tacit::sim

using tacit::sim::Scheduler;

// NOLINTBEGIN: the C library's names
extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_mutex_lock)(mutex));
  return tacit::sim::Lock(*world, mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_mutex_trylock)(mutex));
  return tacit::sim::TryLock(*world, mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_mutex_unlock)(mutex));
  return tacit::sim::Unlock(*world, mutex);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_cond_wait)(condition, mutex));
  return tacit::sim::AwaitNotice(*world, condition, mutex);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_cond_clockwait)(condition, mutex, clock, until));
  return tacit::sim::AwaitNotice(*world, condition, mutex,
                                 tacit::sim::Nanoseconds(*until) - tacit::sim::StartOf(clock));
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_cond_timedwait)(condition, mutex, until));
  // The C library keeps the condition's clock there.
  const bool monotonic = (condition->__data.__wrefs & 2) != 0;
  return tacit::sim::AwaitNotice(
      *world, condition, mutex,
      tacit::sim::Nanoseconds(*until) -
          tacit::sim::StartOf(monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME));
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_cond_signal)(condition));
  return tacit::sim::Tell(*world, condition, 1);
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_cond_broadcast)(condition));
  return tacit::sim::Tell(*world, condition, tacit::sim::kAll);
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_rwlock_rdlock)(lock));
  return tacit::sim::Read(*world, lock, true);
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_rwlock_tryrdlock)(lock));
  return tacit::sim::Read(*world, lock, false);
}

int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_rwlock_wrlock)(lock));
  return tacit::sim::Write(*world, lock, true);
}

int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_rwlock_trywrlock)(lock));
  return tacit::sim::Write(*world, lock, false);
}

int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_rwlock_unlock)(lock));
  return tacit::sim::Release(*world, lock);
}

int pthread_once(pthread_once_t* once, void (*call)()) {
  TACIT_SIMULATED_OR(TACIT_NATIVE(pthread_once)(once, call));
  return tacit::sim::Once(*world, once, call);
}

// libstdc++ asks the kernel itself for futexes (std::atomic::wait, futures, guards of statics).
long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  Scheduler* const world = Scheduler::current();
  const long result = number == SYS_futex && world != nullptr
                          ? tacit::sim::Futex(*world, reinterpret_cast<const uint32_t*>(a[0]),
                                              static_cast<int>(a[1]), static_cast<uint32_t>(a[2]),
                                              reinterpret_cast<const timespec*>(a[3]))
                          : tacit::sim::RawCall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // extern "C"
// NOLINTEND
