#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "privacy/ledger.h"
#include "store/catalog.h"
#include "store/delta_codec.h"
#include "store/rocks.h"
#include "store/row_cache.h"
#include "store/row_reader.h"
#include "store/snapshot_impl.h"
#include "store/store.h"
#include "store/witness.h"

namespace tacit::store {

// What Open has put together: a store at rest, checked, with nothing left to fold.
struct OpenedStore {
  StoreOptions options;
  std::shared_ptr<FailureLatch> latch;
  std::shared_ptr<Rocks> rocks;
  std::shared_ptr<const Catalog> catalog;
  std::unique_ptr<WitnessFile> witness;  // null: none is kept
  privacy::Ledger ledger;
  Digest salt{};
  SipHash::Key user_key{};
  View view;
};

// Two locks, never held together but in this order: mutex_ (what the threads are to do), then
// view_mutex_ (the published snapshot). The ledger has its own, so that the budget's question waits
// for no disk.
class StoreImpl final : public EmbeddingStore {
 public:
  explicit StoreImpl(OpenedStore opened);
  ~StoreImpl() override;

  LearnerState State(LearnerIndex learner) const override;
  std::string source_identity() const override;
  std::string lineage() const override;
  SipHash::Key user_key() const override { return parts_.user_key; }
  Result<uint64_t> ReadAllowances(LearnerIndex learner, std::span<UserUses> users) const override;
  Result<uint64_t> ReadHistories(LearnerIndex learner, std::span<UserHistory> users) const override;
  WorkingRows& working_rows(LearnerIndex learner) override;
  double EpsilonAfter(std::span<const privacy::CommitCharge> charges) const override;
  double TotalEpsilonAfter(std::span<const privacy::CommitCharge> charges,
                           std::optional<Delta> delta) const override;
  Status Commit(CommitRequest request, std::function<void(Status)> done) override;
  Status Flush() override;
  std::shared_ptr<const Snapshot> Latest() const override { return Published(); }
  Stats stats() const override;

 private:
  class LearnerBacking;

  // A commit on its way: what it changes, and the ledger as it leaves it.
  struct Job {
    DeltaRecord record;
    std::string ledger_state;
    std::function<void(Status)> done;
  };

  std::shared_ptr<const SnapshotImpl> Published() const;
  bool MustWait() const;
  Job MakeJob(CommitRequest request, std::function<void(Status)> done);
  void ChargeLedger(std::vector<privacy::CommitCharge> charges, Job& job);

  void CommitLoop();
  Status RunCommit(const Job& job);
  Status FillBatch(const Job& job);
  void Publish(const DeltaRecord& record);

  bool FoldIsDue() const;
  void FoldLoop();
  Status FoldPublished();
  void RequestFold(CommitSeq seq);
  void FoldThrough(CommitSeq seq);

  const OpenedStore parts_;
  rocksdb::WriteBatch batch_;  // of the commit thread; keeps its memory
  std::vector<std::unique_ptr<LearnerBacking>> backings_;
  std::vector<std::unique_ptr<RowCache>> rows_;

  mutable std::mutex ledger_mutex_;
  privacy::Ledger ledger_;
  CommitTip enqueued_;  // where the chain stands once everything enqueued is committed

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // any of the following
  std::optional<Job> slot_;
  bool in_flight_ = false;
  bool stopping_ = false;
  CommitSeq published_seq_, fold_through_;
  uint64_t unfolded_ = 0, unfolded_bytes_ = 0;
  Stats stats_;

  std::atomic<uint64_t> folded_;
  mutable std::mutex view_mutex_;
  std::shared_ptr<const SnapshotImpl> published_;

  std::thread commit_thread_, fold_thread_;
};

}  // namespace tacit::store
