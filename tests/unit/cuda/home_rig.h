#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "base/threads/worker_pool.h"
#include "cuda/device/device.h"
#include "cuda/rows/whole_rows.h"
#include "store/rows/row_cache.h"
#include "train/engines/gpu.h"
#include "wiring/plans/model_plan.h"

namespace tacit::cuda::testing {

// The faults of deltas whose rows came home beside later steps, counted.
struct HomeFindings {
  uint64_t checked = 0;     // rows of deltas, and rows that were gathered
  uint64_t left_out = 0;    // rows that were written and are in no delta of their commit
  uint64_t not_asked = 0;   // rows of a delta that were not written
  uint64_t wrong_rows = 0;  // rows of a delta that are not as of their commit's step
  uint64_t stale = 0;       // rows of a Gather that are not as of the last Settle
  uint64_t failed = 0;      // calls

  uint64_t wrong() const { return left_out + not_asked + wrong_rows + stale + failed; }
};

// A store in memory, whose folds the rig asks for. It keeps a delta until it is folded.
class HomeStore final : public store::RowBacking {
 public:
  explicit HomeStore(const store::RowLayout& layout);
  Status Read(std::span<const uint64_t> rows, std::span<float* const> out) override;
  CommitSeq next() const override { return CommitSeq(enqueued_ + 1); }
  CommitSeq folded() const override { return CommitSeq(folded_); }
  void RequestFold() override {}
  void FoldThrough(CommitSeq seq) override {
    while (folded_ < seq.value) Fold();
  }
  CommitSeq Enqueue(std::shared_ptr<const store::RowDelta> delta);
  void Fold();
  bool has_unfolded() const { return folded_ < enqueued_; }

  std::vector<std::vector<float>> rows;

 private:
  uint64_t folded_ = 0, enqueued_ = 0;
  std::map<uint64_t, std::shared_ptr<const store::RowDelta>> deltas_;
};

// A click model's learner with its engine on a GPU, made as a program makes it, in front of a store
// in memory. `model` and `gpu` must outlive it.
struct LearnerRig {
  LearnerRig(const wiring::ModelPlan& model, train::Gpu& gpu)
      : layout(model.Rows()),
        store(layout),
        cache(layout, 1 << 24, store),
        learner(model.Make({.noise = noise::MakeNoiseSource(workers),
                            .backend = [&]() -> ops::Backend& { return *backend; },
                            .workers = workers,
                            .rows = cache,
                            .gpu = &gpu})) {}

  const store::RowLayout layout;
  HomeStore store;
  store::RowCache cache;
  WorkerPool workers{WorkerPool::Options{}};
  std::unique_ptr<ops::Backend> backend = ops::MakeReferenceBackend();
  Result<std::unique_ptr<train::Learner>> learner;
};

// Whole tables on a device in front of a row cache, and beside them the truth. A step writes some
// rows by a kernel of the test, in FinishRows' place. Deltas arrive on another thread while later
// steps write.
class HomeRig {
 public:
  // `late`, where it is given, is called behind the step after a commit, for planted faults.
  HomeRig(Device& device, uint64_t seed, std::function<void()> late = {});

  void Run(int steps);
  const HomeFindings& findings() const { return findings_; }
  // Commits whose rows were on their way when it was taken.
  uint64_t on_their_way() const { return on_their_way_; }
  // From here on a row of each step is not marked as changed.
  void LoseAFlag() { loses_a_flag_ = true; }
  // Writes this number into a row, settles, and tells what the tables say of it.
  bool SettlesAsNumbers(float number);
  // Writes a row and takes the delta; tells how its rows arrived once `before` was called. Where
  // they did not, they do not at the next call either, and nothing more is settled.
  Status ArriveBehind(const std::function<void()>& before);

 private:
  using Rows = std::map<uint64_t, std::vector<float>>;
  bool Ok(const Status& status);
  void Write();
  void WriteRows(const Rows& rows);
  std::shared_ptr<const store::RowDelta> Commit(Rows* written);
  void Check(const store::RowDelta& delta, const Rows& written);
  void Gather();

  std::mt19937_64 random_;
  store::RowLayout layout_;
  std::function<void()> late_;
  HomeStore store_;
  std::unique_ptr<store::RowCache> cache_;
  std::vector<std::vector<float>> truth_, settled_;
  Rows written_;  // since the last Settle
  HomeFindings findings_;
  uint64_t on_their_way_ = 0;
  bool loses_a_flag_ = false;
  float next_number_ = 10'000;
  Stream compute_;
  std::unique_ptr<WholeRows> whole_;  // before the cache, which brings its rows
};

}  // namespace tacit::cuda::testing
