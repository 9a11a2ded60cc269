#pragma once

#include <functional>
#include <thread>

#include "base/threads/mutex.h"

namespace tacit {

// A thread that does one job at a time beside its owner. The system's thread begins with the first
// job, and has the scheduling of who starts that. Start and Wait belong to one thread.
class SideThread {
 public:
  // `name` has at most 15 letters and lives as long (named_thread.h).
  explicit SideThread(const char* name) : name_(name) {}
  // Waits for the job under way.
  ~SideThread();
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // Waits for the job under way, and hands over the next one.
  void Start(std::function<void()> job);
  // Returns when nothing is under way; what the job wrote can be read then.
  void Wait();

 private:
  void Run();

  const char* const name_;
  Mutex mutex_;
  Condition changed_;
  std::function<void()> job_ TACIT_GUARDED_BY(mutex_);  // if empty, none waits to begin
  bool busy_ TACIT_GUARDED_BY(mutex_) = false;          // with one that waits or is under way
  bool stopping_ TACIT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tacit
