#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

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
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> job_;  // empty: nothing is under way
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tacit
