#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/threads/worker_pool.h"
#include "bench/bench_data.h"
#include "store/store.h"
#include "train/learner/learner.h"
#include "wiring/assembly.h"

namespace tacit::bench {

// The private step with a real store in a temporary folder, which the rig removes when it is
// destroyed. Not thread-safe, except store().
class TrainingRig {
 public:
  struct Options {
    std::string name;            // distinguishes the folders of one process
    bool idle_priority = false;  // of the extra workers; the thread that takes steps sets its own
    train::Gpu* gpu = nullptr;   // takes the steps, if there is one; must outlive the rig
    // Learners of the store besides the trained one, which has place 0.
    std::vector<store::LearnerLayout> more_learners = {};
  };

  TrainingRig(BenchSetup setup, Options options);
  ~TrainingRig();
  TrainingRig(const TrainingRig&) = delete;
  TrainingRig& operator=(const TrainingRig&) = delete;

  Status Open();
  // Takes one of the setup's steps, over and over; adds to `examples`.
  Status Step(uint64_t* examples);
  // Commits the steps taken since the last commit; does nothing if there are none.
  Status Commit();

  const wiring::Assembly& assembly() const { return setup_.assembly; }
  store::Store& store() { return *store_; }
  double RowsPerStep() const;

 private:
  BenchSetup setup_;
  const Options options_;
  const std::filesystem::path folder_;
  WorkerPool workers_;
  std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<train::Learner> learner_;
  stream::Position position_;
  uint64_t committed_steps_ = 0, rows_written_ = 0;
};

}  // namespace tacit::bench
