#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/threads/worker_pool.h"
#include "bench/bench_data.h"
#include "train/click/memory_rows.h"
#include "train/learner/learner.h"

namespace tacit::bench {

// A learner with its rows in memory, ready to take the setup's steps over and over on one core, or
// on a GPU, and to time each. Not thread-safe.
class StepRig {
 public:
  // The assembly's first learner learns, on the GPU if there is one, which must outlive it.
  static Result<std::unique_ptr<StepRig>> Make(BenchSetup setup, train::Gpu* gpu = nullptr);

  Status Step();
  void ForgetTimes() { seconds_.clear(); }
  // The median of the steps that are not forgotten. REQUIRES one.
  double SecondsPerStep() const;
  double ExamplesPerSecond() const {
    return static_cast<double>(setup_.steps[0].examples.size()) / SecondsPerStep();
  }

  const BenchSetup& setup() const { return setup_; }
  ops::Backend& backend() { return *backend_; }

 private:
  BenchSetup setup_;
  WorkerPool workers_{{.workers = 1}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(workers_);
  std::unique_ptr<train::MemoryRows> rows_;
  std::unique_ptr<train::Learner> learner_;
  size_t next_ = 0;
  std::vector<double> seconds_;
};

// Has the rigs take turns, so that a noisy neighbour hits all of them, for `rounds` after one
// that warms up.
Status TakeTurns(const std::vector<StepRig*>& rigs, int rounds);

}  // namespace tacit::bench
