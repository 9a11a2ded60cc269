#include "base/threads/mutex.h"

// Faults that tools/locks has to find each time it runs, and nothing else.
namespace tacit::house {

class Planted {
 public:
  int Right() {
    MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return value_ > 0; });
    Advance();
    lock.Unlock();
    Outside();
    lock.Lock();
    return value_;
  }
  int ReadsWithout() { return value_; }  // fault
  void CallsWithout() { Advance(); }     // fault
  void WritesAfterwards() {
    MutexLock lock(mutex_);
    lock.Unlock();
    value_ = 1;  // fault
  }
  void WaitsWithout() {
    changed_.Wait(mutex_, [] { return true; });  // fault
  }
  void WaitsForWhatItMayNotRead() {
    const MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&] { return value_ > 0; });  // fault
  }
  void TakesItTwice() {
    const MutexLock lock(mutex_);
    Outside();  // fault
  }
  void TakesThemInTheWrongOrder() {
    const MutexLock lock(mutex_);
    const MutexLock first(first_);  // fault
  }
  void LeavesItUnlocked() TACIT_REQUIRES(mutex_) { mutex_.Unlock(); }  // fault

 private:
  void Advance() TACIT_REQUIRES(mutex_) { ++value_; }
  void Outside() TACIT_EXCLUDES(mutex_) {}

  Mutex first_ TACIT_ACQUIRED_BEFORE(mutex_);
  Mutex mutex_;
  Condition changed_;
  int value_ TACIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace tacit::house
