#include "base/threads/paced_thread.h"

namespace tacit {

void PacedThread::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void PacedThread::Wake() {
  {
    const MutexLock lock(mutex_);
    woken_ = true;
  }
  changed_.NotifyAll();
}

bool PacedThread::Rest(Seconds time) {
  const MutexLock lock(mutex_);
  return !changed_.WaitFor(mutex_, time, [&] { return stopping_.load(); });
}

bool PacedThread::Await(std::optional<Seconds> at_most) {
  const MutexLock lock(mutex_);
  const auto ready = [&]() TACIT_REQUIRES(mutex_) { return woken_ || stopping_; };
  if (at_most) {
    changed_.WaitFor(mutex_, *at_most, ready);
  } else {
    changed_.Wait(mutex_, ready);
  }
  woken_ = false;
  return !stopping_;
}

}  // namespace tacit
