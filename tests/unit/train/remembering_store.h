#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "privacy/ledger.h"
#include "store/committer.h"
#include "train/click/memory_rows.h"

namespace tacit::train {

class EmptySnapshot final : public store::Snapshot {
 public:
  explicit EmptySnapshot(const privacy::Ledger& ledger)
      : learners_(ledger.Learners()), total_(ledger.Total()), head_(ledger.head()) {}
  CommitSeq version() const override { return CommitSeq(0); }
  const Digest& head() const override { return head_; }
  std::string lineage() const override { return ""; }
  const std::vector<privacy::LedgerTotal>& learners() const override { return learners_; }
  const privacy::LedgerTotal& total() const override { return total_; }
  uint64_t ledger_entries() const override { return 0; }
  Result<std::vector<std::string>> LedgerEntries(uint64_t, uint64_t) const override {
    return std::vector<std::string>();
  }
  std::shared_ptr<const store::DenseState> Dense(LearnerIndex) const override { return nullptr; }
  Status Rows(LearnerIndex, std::span<const uint64_t>, std::span<float>) const override {
    return {};
  }

 private:
  std::vector<privacy::LedgerTotal> learners_;
  privacy::LedgerTotal total_;
  Digest head_;
};

// A store that keeps in memory what it was asked to commit.
class RememberingStore : public store::Committer {
 public:
  void Add(const std::string& learner, store::RowLayout layout) {
    rows_.push_back(std::make_unique<MemoryRows>(std::move(layout)));
    EXPECT_TRUE(ledger_.Declare({.learner = learner, .epsilon = 8, .delta = 1e-6}));
  }
  store::WorkingRows& working_rows(LearnerIndex learner) override { return *rows_[learner.value]; }
  double EpsilonAfter(std::span<const privacy::CommitCharge> charges) const override {
    return ledger_.EpsilonAfter(charges);
  }
  double TotalEpsilonAfter(std::span<const privacy::CommitCharge> charges,
                           std::optional<Delta> delta) const override {
    return ledger_.TotalAfter(charges, delta);
  }
  Status Commit(store::CommitRequest request, std::function<void(Status)> done) override {
    if (fails) return Fail(ErrorCode::kIo, "no space left on device");
    for (const auto& learner : request.learners)
      ledger_.Append(CommitSeq(commits.size() + 1), 0, learner.charges, Digest{}, "test");
    commits.push_back(std::move(request));
    done({});
    return {};
  }
  Status Flush() override { return {}; }
  std::shared_ptr<const store::Snapshot> Latest() const override {
    return std::make_shared<EmptySnapshot>(ledger_);
  }
  Stats stats() const override { return {}; }

  std::vector<store::CommitRequest> commits;
  bool fails = false;

 private:
  std::vector<std::unique_ptr<MemoryRows>> rows_;
  privacy::Ledger ledger_;
};

}  // namespace tacit::train
