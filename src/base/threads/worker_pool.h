#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace tacit {

// The trainer's worker threads. Run splits [0, n) into one contiguous part per worker, the same way
// every time, so that sums are reproducible; the caller's thread is worker 0. Libraries that a part
// calls must be single-threaded. One Run at a time.
class WorkerPool {
 public:
  struct Options {
    size_t workers = 1;
    bool idle_priority = false;  // the extra threads run under SCHED_IDLE; the caller sets its own
  };
  // part(begin, end, worker)
  using Part = std::function<void(size_t begin, size_t end, size_t worker)>;

  explicit WorkerPool(Options options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  size_t workers() const;
  // Returns when every part is done. Part boundaries are multiples of `grain`.
  void Run(size_t n, const Part& part, size_t grain = 1);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

// Puts the calling thread under SCHED_IDLE: it runs when no other thread wants the core. Returns
// false when the system refuses.
bool SetIdlePriority();

}  // namespace tacit
