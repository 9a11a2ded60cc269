#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/terms.h"
#include "store/disk/rocks.h"
#include "store/rows/learner_directory.h"
#include "store/types/snapshot.h"
#include "store/view/delta_codec.h"

namespace tacit::store {

// Rows of one unfolded commit, by the learner's key; null for learners without changes.
struct OverlayDelta {
  CommitSeq seq;
  std::vector<std::shared_ptr<const RowDelta>> rows;
  size_t bytes = 0;
  size_t log_bytes = 0;  // of the whole delta, on disk
};
// `log_bytes`: of the delta on disk, if it is counted; else 0.
std::shared_ptr<const OverlayDelta> MakeOverlay(const DeltaRecord& record, size_t learners,
                                                size_t log_bytes = 0);

// The last entries of a chain, encoded: those that later commits may change. Immutable.
using LedgerTail = std::shared_ptr<const std::vector<std::string>>;
// The tail of a chain. A commit extends at most the last run of each learner, and those runs come
// last.
LedgerTail TailOf(const std::vector<privacy::LedgerEntry>& entries, size_t learners);
// The tail after the commit `record`, made on top of the tail `before`.
LedgerTail TailAfter(const std::vector<std::string>& before, const DeltaRecord& record,
                     size_t learners);

// The whole store as of one commit, without the folded rows and the older ledger entries.
struct View {
  std::string lineage;
  CommitTip tip;
  std::shared_ptr<const Terms> terms = std::make_shared<const Terms>();
  std::string source_identity;
  std::vector<LearnerState> learners;                        // by key
  std::vector<std::shared_ptr<const OverlayDelta>> overlay;  // unfolded commits, oldest first
  LedgerTail ledger_tail = std::make_shared<const std::vector<std::string>>();
  std::vector<Ancestor> ancestors = {};

  size_t overlay_bytes() const;
  // Moves on to the commit `record`, whose rows go to the overlay, or are folded (`delta` null).
  void MoveOn(const DeltaRecord& record, std::shared_ptr<const OverlayDelta> delta);
};

// A View and the folded rows beneath it, which a RocksDB snapshot keeps. The RocksDB snapshot must
// be taken while every commit of the view is either in its overlay or folded, so the constructor
// takes it at once. Sorted files ingested later get newer sequence numbers and stay invisible to it
// (snapshot_consistency). Files with commits of the overlay may already be visible: the overlay is
// searched first and holds the same rows. The next commit's ledger entries and histories may be
// visible too: the view's tail has the earlier version of entries that it changed, and histories
// record which items it added.
class SnapshotImpl final : public Snapshot {
 public:
  SnapshotImpl(std::shared_ptr<Rocks> rocks, std::shared_ptr<const LearnerDirectory> directory,
               View view);
  ~SnapshotImpl() override;
  SnapshotImpl(const SnapshotImpl&) = delete;
  SnapshotImpl& operator=(const SnapshotImpl&) = delete;

  CommitSeq version() const override { return view_.tip.seq; }
  const Digest& head() const override { return view_.tip.head; }
  std::string lineage() const override { return view_.lineage; }
  std::span<const Ancestor> ancestors() const override { return view_.ancestors; }
  TermId term() const override { return view_.terms->At(view_.tip.seq); }
  const std::vector<privacy::LedgerTotal>& learners() const override { return view_.tip.learners; }
  const privacy::LedgerTotal& total() const override { return view_.tip.total; }
  uint64_t ledger_entries() const override { return view_.tip.ledger_entries; }
  Result<std::vector<std::string>> LedgerEntries(uint64_t from, uint64_t count) const override;
  std::shared_ptr<const DenseState> Dense(LearnerIndex learner) const override;
  std::span<const float> ServedDense(LearnerIndex learner) const override;
  std::shared_ptr<const std::string> Released(LearnerIndex learner) const override;
  Result<std::vector<HistoryItem>> History(LearnerIndex learner,
                                           const Hash128& user) const override;
  Status Rows(LearnerIndex learner, std::span<const uint64_t> rows,
              std::span<float> out) const override;
  Status ForWritten(LearnerIndex learner, uint32_t table, const EachRow& each) const override;
  Status ForWrittenOf(const LearnerRecord& learner, uint32_t table, const EachRow& each) const;

  const View& view() const { return view_; }
  // Holds the folded rows beneath the view.
  const rocksdb::Snapshot* held() const { return snapshot_; }
  // The parameters to serve with of any learner of the store, as in ServedDense.
  std::span<const float> ServedDenseOf(const LearnerRecord& learner) const;
  // The last step of the learner's moving average as of this commit; 0 if it keeps none.
  uint32_t StepOf(const LearnerRecord& learner) const;

 private:
  // The row from the newest unfolded commit that has it; else empty.
  std::span<const float> FromOverlay(uint16_t key, uint64_t row) const;
  // Calls each(row, floats) for the table's rows of unfolded commits; returns the rows, ascending.
  std::vector<uint64_t> ForUnfolded(const LearnerRecord& learner, const RowSpace::Table& table,
                                    const EachRow& each) const;

  const std::shared_ptr<Rocks> rocks_;
  const std::shared_ptr<const LearnerDirectory> directory_;
  const View view_;
  const rocksdb::Snapshot* const snapshot_;
};

}  // namespace tacit::store
