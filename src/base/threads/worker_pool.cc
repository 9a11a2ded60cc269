#include "base/threads/worker_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/threads/mutex.h"
#include "base/threads/named_thread.h"

namespace tacit {

bool SetIdlePriority() {
  sched_param param{};
  return pthread_setschedparam(pthread_self(), SCHED_IDLE, &param) == 0;
}

struct WorkerPool::Shared {
  Options options;
  Mutex mutex;
  Condition start, done;
  uint64_t round TACIT_GUARDED_BY(mutex) = 0;
  size_t running TACIT_GUARDED_BY(mutex) = 0;
  bool stopping TACIT_GUARDED_BY(mutex) = false;
  // Set before a round, and the same until all parts of it are done.
  const Part* part = nullptr;
  size_t n = 0, grain = 1;
  std::vector<std::thread> threads;

  void RunPart(size_t worker) const {
    const size_t grains = (n + grain - 1) / grain;
    const size_t begin = std::min(n, grains * worker / options.workers * grain);
    const size_t end = std::min(n, grains * (worker + 1) / options.workers * grain);
    if (begin < end) (*part)(begin, end, worker);
  }

  void Loop(size_t worker) {
    if (options.idle_priority) SetIdlePriority();
    uint64_t seen = 0;
    while (true) {
      {
        const MutexLock lock(mutex);
        start.Wait(mutex, [&]() TACIT_REQUIRES(mutex) { return stopping || round != seen; });
        if (stopping) return;
        seen = round;
      }
      RunPart(worker);
      const MutexLock lock(mutex);
      if (--running == 0) done.NotifyOne();
    }
  }
};

WorkerPool::WorkerPool(Options options) : shared_(std::make_unique<Shared>()) {
  TACIT_CHECK(options.workers >= 1);
  shared_->options = options;
  for (size_t worker = 1; worker < options.workers; ++worker)
    shared_->threads.push_back(
        NamedThread("tacit-work", [shared = shared_.get(), worker] { shared->Loop(worker); }));
}

WorkerPool::~WorkerPool() {
  {
    const MutexLock lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->start.NotifyAll();
  for (std::thread& thread : shared_->threads) thread.join();
}

size_t WorkerPool::workers() const { return shared_->options.workers; }

void WorkerPool::Run(size_t n, const Part& part, size_t grain) {
  // The caller runs a single grain alone, without waking a worker.
  if (shared_->threads.empty() || n <= grain) {
    if (n > 0) part(0, n, 0);
    return;
  }
  {
    const MutexLock lock(shared_->mutex);
    shared_->part = &part;
    shared_->n = n;
    shared_->grain = grain;
    shared_->running = shared_->threads.size();
    ++shared_->round;
  }
  shared_->start.NotifyAll();
  shared_->RunPart(0);
  const MutexLock lock(shared_->mutex);
  shared_->done.Wait(shared_->mutex,
                     [&]() TACIT_REQUIRES(shared_->mutex) { return shared_->running == 0; });
}

}  // namespace tacit
