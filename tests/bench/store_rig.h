#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "store/store.h"

namespace tacit::store {

using Seconds = std::chrono::duration<double>;

inline double Time(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return Seconds(std::chrono::steady_clock::now() - start).count();
}

// CPU time of the whole process: the commit runs on another thread.
inline double CpuTime(const std::function<void()>& work) {
  const auto start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

inline constexpr uint64_t kRows = 2'000'000;

// A store of one learner with one table, and commits of it.
class Bench {
 public:
  Bench(const std::string& folder, uint32_t floats, uint32_t fold_after_commits)
      : Bench(folder, DefaultOptions(fold_after_commits), kRows, floats, 0) {}
  // Sets the paths and the learner.
  Bench(const std::string& folder, StoreOptions options, uint64_t rows, uint32_t floats,
        uint32_t state)
      : Bench(std::move(options), NewFolder(folder), rows, floats, state) {}
  // A store that may be there already. It is removed in the end.
  Bench(StoreOptions options, std::string root, uint64_t rows, uint32_t floats, uint32_t state)
      : root_(std::move(root)) {
    options.path = root_ + "/store";
    options.witness = root_ + "/witness";
    LearnerLayout learner;
    learner.name = learner.promise.learner = "bench";
    learner.promise.epsilon = 8;
    learner.promise.delta = 1e-6;
    learner.rows.space.AddTable("rows", rows, floats);
    learner.rows.state_floats = {state};
    learner.rows.initial_scale = {0.1f};
    options.learners = {learner};
    options_ = std::move(options);
    Open();
  }
  ~Bench() {
    store_.reset();
    std::filesystem::remove_all(root_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  static std::string NewFolder(const std::string& folder) {
    std::string name = folder + "/tacit-store-bench-XXXXXX";
    TACIT_CHECK(mkdtemp(name.data()) != nullptr, "the folder cannot be written");
    return name;
  }
  static StoreOptions DefaultOptions(uint32_t fold_after_commits) {
    StoreOptions options;
    options.memory_bytes = uint64_t{256} << 20;
    options.row_cache_bytes = uint64_t{1} << 30;
    options.fold_after_commits = fold_after_commits;
    return options;
  }
  StoreOptions& options() { return options_; }
  // Opens it again, as the options are now.
  void Open() {
    store_.reset();
    auto store = Store::Open(options_);
    TACIT_CHECK(store.has_value(), "opening failed");
    store_ = *std::move(store);
  }

  // Leaves it closed.
  void Close() { store_.reset(); }

  Store& store() { return *store_; }
  const std::string& root() const { return root_; }
  std::string path() const { return root_ + "/store"; }
  WorkingRows& rows() { return store_->working_rows(LearnerIndex(0)); }

  std::vector<uint64_t> Draw(size_t count, uint64_t below = kRows) {
    std::vector<uint64_t> rows(count);
    for (uint64_t& row : rows) row = random_() % below;
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
  }
  // Gathers the rows, and changes one of this many.
  void Change(const std::vector<uint64_t>& rows, size_t one_of = 1) {
    std::vector<float*> places(rows.size());
    TACIT_CHECK(this->rows().Gather(rows, places).has_value());
    std::vector<uint64_t> changed;
    for (size_t i = 0; i < rows.size(); i += one_of) {
      places[i][0] += 1;
      changed.push_back(rows[i]);
    }
    this->rows().MarkChanged(changed);
  }
  void Commit(std::shared_ptr<const DenseState> dense) {
    CommitRequest request;
    privacy::CommitCharge charge;
    charge.learner = "bench";
    charge.charge.mechanism = privacy::MechanismKind::kDpSgd;
    charge.charge.noise_multiplier = charge.charge.sigma_gradient = 1;
    charge.charge.clip_gradient = 1;
    charge.steps = 1;
    charge.topic = "t";
    charge.ranges = {{0, next_ * 10, next_ * 10 + 10}};
    ++next_;
    request.learners.push_back(
        {LearnerIndex(0), rows().TakeDelta(), std::move(dense), "p", {std::move(charge)}});
    TACIT_CHECK(store_->Commit(std::move(request), {}).has_value());
    TACIT_CHECK(store_->Flush().has_value());
  }

 private:
  const std::string root_;
  StoreOptions options_;
  std::mt19937_64 random_{1};
  uint64_t next_ = 0;
  std::unique_ptr<Store> store_;
};

}  // namespace tacit::store
