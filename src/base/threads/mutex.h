#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

// Clang's attributes of thread safety, which tools/locks checks. For other compilers they are
// empty. https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#if defined(__clang__)
#define TACIT_LOCK_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define TACIT_LOCK_ATTRIBUTE(attribute)
#endif
// On a member: it is read and written only while the mutex is held. On a function or lambda: its
// caller holds the mutex, or must not hold it.
#define TACIT_GUARDED_BY(mutex) TACIT_LOCK_ATTRIBUTE(guarded_by(mutex))
#define TACIT_REQUIRES(...) TACIT_LOCK_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define TACIT_EXCLUDES(...) TACIT_LOCK_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// On a function: it returns a reference to this mutex.
#define TACIT_RETURNS_MUTEX(mutex) TACIT_LOCK_ATTRIBUTE(lock_returned(mutex))
// On a mutex: where both are held, this one was taken first.
#define TACIT_ACQUIRED_BEFORE(...) TACIT_LOCK_ATTRIBUTE(acquired_before(__VA_ARGS__))
// On a function: clang cannot follow it, and a comment says why it is right.
#define TACIT_UNCHECKED_LOCKS TACIT_LOCK_ATTRIBUTE(no_thread_safety_analysis)

namespace tacit {

// A mutex whose owner's members and functions say what it guards.
template <typename StdMutex>
class TACIT_LOCK_ATTRIBUTE(capability("mutex")) BasicMutex {
 public:
  BasicMutex() = default;
  BasicMutex(const BasicMutex&) = delete;
  BasicMutex& operator=(const BasicMutex&) = delete;

  // For a function that REQUIRES the mutex and gives it up meanwhile; MutexLock is for all others.
  void Lock() TACIT_LOCK_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void Unlock() TACIT_LOCK_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  template <typename>
  friend class MutexLock;
  friend class Condition;
  StdMutex mutex_;
};
using Mutex = BasicMutex<std::mutex>;
using RecursiveMutex = BasicMutex<std::recursive_mutex>;

// Holds a mutex for as long as it lives, except between Unlock and Lock.
template <typename StdMutex>
class TACIT_LOCK_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(BasicMutex<StdMutex>& mutex) TACIT_LOCK_ATTRIBUTE(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~MutexLock() TACIT_LOCK_ATTRIBUTE(release_capability()) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() TACIT_LOCK_ATTRIBUTE(release_capability()) { lock_.unlock(); }
  void Lock() TACIT_LOCK_ATTRIBUTE(acquire_capability()) { lock_.lock(); }

 private:
  std::unique_lock<StdMutex> lock_;
};

// A condition variable. It calls `ready`, which must not throw, with the mutex held.
class Condition {
 public:
  template <typename Ready>
  void Wait(Mutex& mutex, Ready ready) TACIT_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock, std::move(ready));
    lock.release();
  }
  // Returns after this time at most, with the last answer of `ready`.
  template <typename Time, typename Ready>
  bool WaitFor(Mutex& mutex, Time time, Ready ready) TACIT_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool is_ready = changed_.wait_for(lock, time, std::move(ready));
    lock.release();
    return is_ready;
  }
  template <typename Clock, typename Duration, typename Ready>
  bool WaitUntil(Mutex& mutex, std::chrono::time_point<Clock, Duration> until, Ready ready)
      TACIT_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool is_ready = changed_.wait_until(lock, until, std::move(ready));
    lock.release();
    return is_ready;
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace tacit
