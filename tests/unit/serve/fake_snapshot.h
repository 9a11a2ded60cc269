#pragma once

#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/threads/worker_pool.h"
#include "serve/scoring/click_scorer.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

// Two numbers and three categories, one of them multi-hot.
inline event::FeatureSchema SmallSchema() {
  event::FeatureSchema schema;
  schema.dense = {{"I1", event::DenseTransform::kSignedLog1p},
                  {"I2", event::DenseTransform::kIdentity}};
  schema.categorical = {{"C1", 100, 4}, {"C2", 50, 3}, {"tags", 30, 5, true, 3}};
  return schema;
}

// A small network over them.
inline model::PctrOptions SmallNetwork() {
  model::PctrOptions options;
  options.space = event::FeatureTransform(SmallSchema()).row_space();
  options.dense_width = 2;
  options.hidden = {8, 6};
  return options;
}

inline ScoringModel SmallModel(const std::string& name = "ctr", double epsilon = 4) {
  ScoringModel model;
  model.promise.learner = name;
  model.promise.epsilon = epsilon;
  model.promise.delta = 1e-6;
  model.transform = std::make_shared<event::FeatureTransform>(SmallSchema());
  model.model = MakeClickModel(model.index, name, model.transform, SmallNetwork());
  return model;
}

inline size_t DenseSizeOf(const model::PctrOptions& options) {
  WorkerPool workers(WorkerPool::Options{.workers = 1});
  const auto backend = ops::MakeReferenceBackend();
  return model::Pctr(options, *backend).dense_size();
}

// A commit that exists in memory only. Every number of it is a function of its version.
class FakeSnapshot : public store::Snapshot {
 public:
  FakeSnapshot(uint64_t version, const ScoringModel& model, size_t dense_size)
      : version_(version), space_(SmallNetwork().space) {
    head_.fill(static_cast<uint8_t>(version));
    const double epsilon =
        std::isfinite(model.promise.epsilon) ? 0.25 * static_cast<double>(version) : INFINITY;
    learners_ = {
        {model.promise.learner, model.promise.unit, epsilon, model.promise.delta, 3 * version}};
    total_ = learners_[0];
    total_.learner.clear();
    if (version == 0) return;
    auto dense = std::make_shared<store::DenseState>();
    dense->parameters.resize(dense_size);
    InitialRow(version, uint64_t{1} << 62, 0.5f, dense->parameters);
    dense_ = std::move(dense);
  }

  CommitSeq version() const override { return CommitSeq(version_); }
  const Digest& head() const override { return head_; }
  std::string lineage() const override { return "line-1"; }
  const std::vector<privacy::LedgerTotal>& learners() const override { return learners_; }
  const privacy::LedgerTotal& total() const override { return total_; }
  uint64_t ledger_entries() const override { return version_; }
  // Entry i is that many bytes of i.
  static constexpr size_t kEntryBytes = 1000;
  Result<std::vector<std::string>> LedgerEntries(uint64_t from, uint64_t count) const override {
    std::vector<std::string> entries;
    for (uint64_t i = from; i < version_ && entries.size() < count; ++i)
      entries.emplace_back(kEntryBytes, static_cast<char>(i));
    return entries;
  }
  std::shared_ptr<const store::DenseState> Dense(LearnerIndex) const override { return dense_; }
  std::span<const float> ServedDense(LearnerIndex) const override {
    return dense_ ? std::span<const float>(dense_->parameters) : std::span<const float>();
  }
  // The error of reading rows.
  std::optional<Error> broken;
  Status Rows(LearnerIndex, std::span<const uint64_t> rows, std::span<float> out) const override {
    if (broken) return Fail(Error(*broken));
    size_t at = 0;
    for (const uint64_t row : rows) {
      const uint32_t dim = space_.tables()[space_.TableOf(row)].dim;
      InitialRow(version_, row, 1.0f, out.subspan(at, dim));
      at += dim;
    }
    return {};
  }

 private:
  const uint64_t version_;
  const RowSpace space_;
  Digest head_{};
  std::vector<privacy::LedgerTotal> learners_;
  privacy::LedgerTotal total_;
  std::shared_ptr<const store::DenseState> dense_;
};

// The published snapshot, swapped while others read it.
class FakeStore {
 public:
  explicit FakeStore(const ScoringModel& model)
      : model_(model), dense_size_(DenseSizeOf(SmallNetwork())) {
    Commit(0);
  }
  std::shared_ptr<const store::Snapshot> Make(uint64_t version) const {
    return std::make_shared<FakeSnapshot>(version, model_, dense_size_);
  }
  // A commit whose rows cannot be read.
  void CommitBroken(uint64_t version, Error error) {
    auto snapshot = std::make_shared<FakeSnapshot>(version, model_, dense_size_);
    snapshot->broken = std::move(error);
    const std::lock_guard lock(mutex_);
    latest_ = std::move(snapshot);
  }
  void Commit(uint64_t version) {
    auto snapshot = Make(version);
    const std::lock_guard lock(mutex_);
    latest_ = std::move(snapshot);
  }
  std::shared_ptr<const store::Snapshot> Latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
  }

 private:
  const ScoringModel model_;
  const size_t dense_size_;
  mutable std::mutex mutex_;
  std::shared_ptr<const store::Snapshot> latest_;
};

}  // namespace tacit::serve
