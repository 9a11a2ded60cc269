#include "base/threads/side_thread.h"

#include <utility>

#include "base/threads/named_thread.h"

namespace tacit {

SideThread::~SideThread() {
  if (!thread_.joinable()) return;
  Wait();
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void SideThread::Start(std::function<void()> job) {
  Wait();
  {
    const MutexLock lock(mutex_);
    job_ = std::move(job);
    busy_ = true;
  }
  changed_.NotifyAll();
  if (!thread_.joinable()) thread_ = ThreadOfName(name_, [this] { Run(); });
}

void SideThread::Wait() {
  MutexLock lock(mutex_);
  changed_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return !busy_; });
}

void SideThread::Run() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return stopping_ || job_; });
    if (stopping_) return;
    std::function<void()> job = std::exchange(job_, nullptr);
    lock.Unlock();
    job();
    job = nullptr;
    lock.Lock();
    busy_ = false;
    changed_.NotifyAll();
  }
}

}  // namespace tacit
