#include "base/threads/side_thread.h"

#include <utility>

#include "base/threads/named_thread.h"

namespace tacit {

SideThread::~SideThread() {
  if (!thread_.joinable()) return;
  Wait();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SideThread::Start(std::function<void()> job) {
  Wait();
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
  }
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = ThreadOfName(name_, [this] { Run(); });
}

void SideThread::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !job_; });
}

void SideThread::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || job_; });
    if (stopping_) return;
    lock.unlock();
    job_();
    lock.lock();
    job_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace tacit
