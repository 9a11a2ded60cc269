#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/threads/mutex.h"
#include "privacy/ledger.h"
#include "store/checkpoint/checkpoint_draft.h"
#include "store/disk/rocks.h"
#include "store/outbox.h"
#include "store/rows/learner_directory.h"
#include "store/rows/row_cache.h"
#include "store/rows/row_fetcher.h"
#include "store/rows/row_reader.h"
#include "store/store.h"
#include "store/users/forgotten.h"
#include "store/view/delta_codec.h"
#include "store/view/snapshot_impl.h"
#include "store/witness/price_tally.h"
#include "store/witness/witness.h"

namespace tacit::store {

// The result of Open: a store at rest, checked, with nothing left to fold.
struct OpenedStore {
  StoreOptions options;
  std::shared_ptr<FailureLatch> latch;
  std::shared_ptr<Rocks> rocks;
  std::shared_ptr<const LearnerDirectory> directory;
  std::vector<std::unique_ptr<WitnessFile>> witnesses;  // witness and mark, if configured
  TermId term = kNoTerm;                                // for all commits of this run
  bool term_begun = false;                              // a commit of this run is there
  std::vector<ForgottenUser> forgotten;
  privacy::Ledger ledger;
  Digest salt{};
  SipHash::Key user_key{};
  View view;
  Outbox outbox = {};
};

// mutex_ is for the threads' work, view_mutex_ for the published snapshot. The ledger has a lock of
// its own, so that a budget check waits for no disk.
class StoreImpl final : public Store {
 public:
  explicit StoreImpl(OpenedStore opened);
  ~StoreImpl() override;

  LearnerState State(LearnerIndex learner) const override;
  std::string source_identity() const override;
  Terms terms() const override { return *Published()->view().terms; }
  SipHash::Key user_key() const override { return parts_.user_key; }
  Result<uint64_t> ReadAllowances(LearnerIndex learner, std::span<UserUses> users) const override;
  Result<UsersByUses> CountUsers(LearnerIndex learner,
                                 const std::function<bool()>& keep) const override;
  Result<std::string> ReadAllocation(LearnerIndex learner) const override;
  Result<uint64_t> ReadHistories(LearnerIndex learner, std::span<UserHistory> users) const override;
  WorkingRows& working_rows(LearnerIndex learner) override;
  Status ForgetUsers(std::span<const Hash128> users) override;
  std::optional<ForgottenUser> Forgotten(const Hash128& user) const override {
    return forgotten_.Find(user);
  }
  Result<uint64_t> EraseForgotten(const std::string& checkpoints,
                                  const std::atomic<bool>* given_up) override;
  double EpsilonAfter(std::span<const privacy::CommitCharge> charges) const override;
  double TotalEpsilonAfter(std::span<const privacy::CommitCharge> charges,
                           std::optional<Delta> delta) const override;
  Status Commit(CommitRequest request, std::function<void(Status)> done) override;
  Status Flush() override;
  Status Settle() override;
  Result<CheckpointMade> MakeCheckpoint(const CheckpointRequest& request) override;
  Result<std::vector<Damage>> FindDamage(const Pace& pace) const override;
  std::shared_ptr<const Snapshot> Latest() const override { return Published(); }
  Result<Release> LatestRelease() const override;
  Result<bool> ForReleasedRows(const Release& release, std::optional<CommitSeq> since,
                               const EachReleasedRow& each) const override;
  Status ForReleasedRowsOf(const Release& release, uint16_t learner,
                           const EachReleasedRow& each) const override;
  void TakenFromOutbox(CommitSeq seq) override { outbox_taken_.store(seq.value); }
  Stats stats() const override;
  EngineStats engine_stats() const override;

 private:
  class LearnerBacking;

  // A commit in progress: its changes, and the ledger after it.
  struct Job {
    DeltaRecord record;
    bool begins_term = false;  // the first one since the store was opened
    std::vector<WitnessedLearner> witnessed;
    std::string ledger_state;
    std::function<void(Status)> done;
  };

  std::shared_ptr<const SnapshotImpl> Published() const;
  Status MayCommit() const TACIT_REQUIRES(mutex_);
  bool MustWait() const TACIT_REQUIRES(mutex_);
  Job MakeJob(CommitRequest request, std::function<void(Status)> done) TACIT_REQUIRES(mutex_);
  void ChargeLedger(std::vector<privacy::CommitCharge> charges, Job& job) TACIT_REQUIRES(mutex_);

  void CommitLoop();
  void RunBetweenCommits(std::function<void()> work);
  Status ForgetNow(std::span<const Hash128> users);
  Result<CheckpointPlace> MakeFull(const CheckpointRequest& request, const CheckpointParent& parent,
                                   CheckpointMade* made);
  Result<CheckpointPlace> MakeRelease(const CheckpointRequest& request,
                                      const CheckpointParent& parent, const SnapshotImpl& snapshot);
  Result<CheckpointPlace> Finish(const CheckpointRequest& request, CheckpointManifest manifest,
                                 CheckpointDraft* draft) const;
  static Status AwaitRows(const DeltaRecord& record);
  Status RunCommit(const Job& job);
  Status FillBatch(const Job& job);
  void PutTerm(const Job& job);
  Status WriteWitnesses(const Job& job);
  void Publish(const Job& job);

  bool FoldIsDue() const TACIT_REQUIRES(mutex_);
  void FoldLoop();
  Status FoldPublished();
  void RequestFold(CommitSeq seq);
  void FoldThrough(CommitSeq seq);

  const OpenedStore parts_;
  ForgottenUsers forgotten_;
  Mutex erase_mutex_ TACIT_ACQUIRED_BEFORE(checkpoint_mutex_);  // held while users are erased
  // No file holds what was deleted up to here (ForgottenUsers).
  std::optional<uint64_t> files_clean_to_ TACIT_GUARDED_BY(erase_mutex_);
  // Held while one is made or noted in.
  Mutex checkpoint_mutex_ TACIT_ACQUIRED_BEFORE(mutex_, ledger_mutex_);
  rocksdb::WriteBatch batch_;  // used by the commit thread; keeps its memory
  std::vector<std::unique_ptr<LearnerBacking>> backings_;
  std::unique_ptr<RowFetcher> fetcher_;  // if null, no rows are read ahead
  std::vector<std::unique_ptr<RowCache>> rows_;

  mutable Mutex ledger_mutex_;
  privacy::Ledger ledger_ TACIT_GUARDED_BY(ledger_mutex_);
  PriceTally prices_ TACIT_GUARDED_BY(ledger_mutex_);  // of ledger_, for the witnesses
  CommitTip enqueued_;  // the tip once all enqueued commits are done; used by who commits

  mutable Mutex mutex_ TACIT_ACQUIRED_BEFORE(ledger_mutex_, view_mutex_);
  Condition changed_;  // notified when any of the following changes
  std::optional<Job> slot_ TACIT_GUARDED_BY(mutex_);
  // Work that the commit thread does before the slot.
  std::deque<std::packaged_task<void()>> between_ TACIT_GUARDED_BY(mutex_);
  // Positions by key, including all enqueued commits.
  std::vector<std::string> positions_ TACIT_GUARDED_BY(mutex_);
  bool term_begun_ TACIT_GUARDED_BY(mutex_) = false;
  bool in_flight_ TACIT_GUARDED_BY(mutex_) = false;
  bool stopping_ TACIT_GUARDED_BY(mutex_) = false;
  // The failure of a commit whose rows did not come.
  std::optional<Error> not_arrived_ TACIT_GUARDED_BY(mutex_);
  CommitSeq published_seq_ TACIT_GUARDED_BY(mutex_), fold_through_ TACIT_GUARDED_BY(mutex_);
  uint64_t unfolded_ TACIT_GUARDED_BY(mutex_) = 0, unfolded_bytes_ TACIT_GUARDED_BY(mutex_) = 0;
  Stats stats_ TACIT_GUARDED_BY(mutex_);

  std::atomic<uint64_t> folded_;
  size_t log_bytes_ = 0;  // of the delta in batch_; used by the commit thread
  Outbox outbox_;         // used by the fold thread
  std::atomic<uint64_t> outbox_taken_ = 0;
  mutable Mutex view_mutex_;
  std::shared_ptr<const SnapshotImpl> published_ TACIT_GUARDED_BY(view_mutex_);

  std::thread commit_thread_, fold_thread_;
};

}  // namespace tacit::store
