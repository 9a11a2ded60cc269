#include "store/store_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crash_point.h"
#include "store/allowance.h"
#include "store/fold.h"
#include "store/history_table.h"
#include "store/load.h"
#include "store/seal.h"

namespace tacit::store {

// The folded rows of one learner, for its cache. Belongs to the trainer thread, as the cache does.
class StoreImpl::LearnerBacking final : public RowBacking {
 public:
  LearnerBacking(StoreImpl& store, const LearnerRecord& learner)
      : store_(store), learner_(learner) {}

  Status Read(std::span<const uint64_t> rows, std::span<float* const> out) override {
    return reader_.Read(*store_.parts_.rocks, nullptr, *store_.parts_.catalog, learner_, rows, out,
                        RowReader::Extent::kWithState);
  }
  CommitSeq folded() const override { return CommitSeq(store_.folded_.load()); }
  void RequestFold() override { store_.RequestFold(store_.Published()->version()); }
  void FoldThrough(CommitSeq seq) override { store_.FoldThrough(seq); }

 private:
  StoreImpl& store_;
  const LearnerRecord& learner_;
  RowReader reader_;
};

StoreImpl::StoreImpl(OpenedStore opened)
    : parts_(std::move(opened)),
      ledger_(parts_.ledger),
      enqueued_(parts_.view.tip),
      published_seq_(parts_.view.tip.seq),
      folded_(parts_.view.tip.seq.value),
      published_(std::make_shared<SnapshotImpl>(parts_.rocks, parts_.catalog, parts_.view)) {
  TACIT_CHECK(parts_.view.overlay.empty());
  for (uint16_t i = 0; i < parts_.catalog->configured(); ++i) {
    const LearnerRecord& learner = parts_.catalog->Configured(LearnerIndex(i));
    backings_.push_back(std::make_unique<LearnerBacking>(*this, learner));
    rows_.push_back(std::make_unique<RowCache>(learner.layout, parts_.options.row_cache_bytes,
                                               *backings_.back()));
  }
  commit_thread_ = std::thread([this] { CommitLoop(); });
  fold_thread_ = std::thread([this] { FoldLoop(); });
}

StoreImpl::~StoreImpl() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !in_flight_; });
    stopping_ = true;
  }
  changed_.notify_all();
  commit_thread_.join();
  fold_thread_.join();
}

std::shared_ptr<const SnapshotImpl> StoreImpl::Published() const {
  std::lock_guard lock(view_mutex_);
  return published_;
}

LearnerState StoreImpl::State(LearnerIndex learner) const {
  const LearnerValue value = Published()->view().learners[parts_.catalog->KeyOf(learner)];
  return {value.dense, value.position, value.mechanism_state};
}

std::string StoreImpl::source_identity() const { return Published()->view().source_identity; }
std::string StoreImpl::lineage() const { return parts_.view.lineage; }

Result<uint64_t> StoreImpl::ReadAllowances(LearnerIndex learner, std::span<UserUses> users) const {
  return store::ReadAllowances(*parts_.rocks, parts_.catalog->KeyOf(learner), users);
}

Result<uint64_t> StoreImpl::ReadHistories(LearnerIndex learner,
                                          std::span<UserHistory> users) const {
  return store::ReadHistories(*parts_.rocks, parts_.catalog->KeyOf(learner),
                              parts_.rocks->clock().UnixMillis(), users);
}

WorkingRows& StoreImpl::working_rows(LearnerIndex learner) {
  TACIT_CHECK(learner.value < rows_.size(), "no such learner in the configuration");
  return *rows_[learner.value];
}

double StoreImpl::EpsilonAfter(std::span<const privacy::CommitCharge> charges) const {
  std::lock_guard lock(ledger_mutex_);
  return ledger_.EpsilonAfter(charges);
}

double StoreImpl::TotalEpsilonAfter(std::span<const privacy::CommitCharge> charges,
                                    std::optional<Delta> delta) const {
  std::lock_guard lock(ledger_mutex_);
  return ledger_.TotalAfter(charges, delta);
}

EmbeddingStore::Stats StoreImpl::stats() const {
  std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.unfolded_deltas = unfolded_;
  return stats;
}

// The unfolded rows may go over their limits while a fold runs, but not without end.
bool StoreImpl::MustWait() const {
  if (parts_.latch->failed()) return false;
  return in_flight_ || unfolded_bytes_ > 2 * parts_.options.overlay_bytes ||
         unfolded_ >= 4 * uint64_t{parts_.options.fold_after_commits};
}

Status StoreImpl::Commit(CommitRequest request, std::function<void(Status)> done) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !MustWait(); });
    TACIT_RETURN_IF_ERROR(parts_.latch->status());
    slot_ = MakeJob(std::move(request), std::move(done));
    in_flight_ = true;
  }
  changed_.notify_all();
  return {};
}

StoreImpl::Job StoreImpl::MakeJob(CommitRequest request, std::function<void(Status)> done) {
  Job job;
  job.done = std::move(done);
  const CommitSeq seq(enqueued_.seq.value + 1);
  job.record.source_identity = std::move(request.source_identity);
  std::vector<privacy::CommitCharge> charges;
  for (LearnerCommit& commit : request.learners) {
    const uint16_t key = parts_.catalog->KeyOf(commit.learner);
    TACIT_CHECK(!commit.charges.empty(), "a commit without a charge");
    for (privacy::CommitCharge& charge : commit.charges) {
      TACIT_CHECK(charge.learner == parts_.catalog->records()[key].name,
                  "a commit must charge the learner whose rows it holds");
      charges.push_back(std::move(charge));
    }
    rows_[commit.learner.value]->Enqueued(commit.rows.get(), seq);
    job.record.learners.push_back({key, std::move(commit.position), std::move(commit.rows),
                                   std::move(commit.dense), std::move(commit.mechanism_state),
                                   std::move(commit.allowances), std::move(commit.histories)});
  }
  ChargeLedger(std::move(charges), job);
  return job;
}

// From here on the budget counts the commit, though it is not on the disk yet.
void StoreImpl::ChargeLedger(std::vector<privacy::CommitCharge> charges, Job& job) {
  std::lock_guard lock(ledger_mutex_);
  DeltaRecord& record = job.record;
  record.previous = enqueued_;
  // A commit can only extend the last run of each learner, and those come last in the chain.
  const auto& entries = ledger_.entries();
  const uint64_t before = entries.size();
  const uint64_t kept = std::min<uint64_t>(before, parts_.catalog->records().size());
  for (uint64_t i = before - kept; i < before; ++i)
    record.previous_entries.push_back(entries[i].Encode());

  const CommitSeq seq(enqueued_.seq.value + 1);
  const auto changed = ledger_.Append(seq, parts_.rocks->clock().UnixMillis(), charges, parts_.salt,
                                      parts_.options.code_version);
  uint64_t first = before;
  for (uint64_t index : changed) {
    first = std::min(first, index);
    record.entries.push_back(entries[index].Encode());
  }
  TACIT_CHECK(first >= before - kept, "a commit changed an old ledger entry");
  auto& previous = record.previous_entries;
  previous.erase(previous.begin(), previous.end() - static_cast<ptrdiff_t>(before - first));

  record.tip = {seq, ledger_.head(), entries.size(), ledger_.Learners(), ledger_.Total()};
  job.ledger_state = ledger_.EncodeState();
  enqueued_ = record.tip;
}

void StoreImpl::CommitLoop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return slot_ || stopping_; });
    if (!slot_) return;
    Job job = *std::exchange(slot_, std::nullopt);
    lock.unlock();
    Status status = parts_.latch->status();
    if (status) status = RunCommit(job);
    if (!status) {
      status = Fail(
          std::move(status.error()).Context(fmt::format("commit {}", job.record.tip.seq.value)));
      parts_.latch->Set(status.error());
    }
    if (job.done) job.done(status);
    job = {};
    lock.lock();
    in_flight_ = false;
    changed_.notify_all();
  }
}

Status StoreImpl::RunCommit(const Job& job) {
  const auto start = std::chrono::steady_clock::now();
  const DeltaRecord& record = job.record;
  CrashPoint("commit.begin");
  TACIT_RETURN_IF_ERROR(FillBatch(job));
  {
    const auto lock = parts_.rocks->LockLog();
    TACIT_RETURN_IF_ERROR(parts_.rocks->Write(batch_));
    CrashPoint("commit.written");
    TACIT_RETURN_IF_ERROR(parts_.rocks->SyncLog());
  }
  CrashPoint("commit.synced");
  if (parts_.witness)
    TACIT_RETURN_IF_ERROR(parts_.witness->Write(WitnessOf(parts_.view.lineage, record.tip)));
  CrashPoint("commit.witnessed");
  Publish(record);
  CrashPoint("commit.published");
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::lock_guard lock(mutex_);
  stats_.commits += 1;
  stats_.commit_bytes += batch_.GetDataSize();
  stats_.last_commit_ms = took.count();
  return {};
}

Status StoreImpl::FillBatch(const Job& job) {
  const Rocks& rocks = *parts_.rocks;
  const DeltaRecord& record = job.record;
  const DeltaBlob blob(record);
  if (blob.bytes() > UINT32_MAX / 2)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("store {}: commit {} has {} bytes", rocks.path(), record.tip.seq.value,
                            blob.bytes()));
  std::vector<rocksdb::Slice> pieces;
  for (std::string_view piece : blob.pieces()) pieces.push_back(AsSlice(piece));
  const std::string key = SequenceKey(record.tip.seq.value);
  const rocksdb::Slice key_piece = AsSlice(key);
  batch_.Clear();
  batch_.Put(rocks.family(Family::kDeltas), rocksdb::SliceParts(&key_piece, 1),
             rocksdb::SliceParts(pieces.data(), static_cast<int>(pieces.size())));
  for (const LearnerDelta& learner : record.learners)
    batch_.Put(rocks.family(Family::kOffsets), LearnerKey("", learner.learner),
               Seal(learner.position));
  const uint64_t first = record.tip.ledger_entries - record.entries.size();
  for (size_t i = 0; i < record.entries.size(); ++i)
    batch_.Put(rocks.family(Family::kLedger), SequenceKey(first + i), Seal(record.entries[i]));
  const auto put_meta = [&](std::string_view name, std::string_view value) {
    batch_.Put(rocks.family(Family::kMeta), AsSlice(name), Seal(value));
  };
  put_meta(meta::kTip, EncodeTip(record.tip));
  put_meta(meta::kLedgerState, job.ledger_state);
  put_meta(meta::kSource, record.source_identity);
  ByteWriter seq;
  seq.Put(record.tip.seq.value);
  for (const LearnerDelta& learner : record.learners) {
    if (!learner.mechanism_state) continue;
    put_meta(LearnerKey(meta::kMechanismPrefix, learner.learner), *learner.mechanism_state);
    put_meta(LearnerKey(meta::kMechanismCommitPrefix, learner.learner), seq.bytes());
  }
  for (const LearnerDelta& learner : record.learners)
    if (learner.allowances) PutAllowances(rocks, learner.learner, *learner.allowances, &batch_);
  const int64_t now = rocks.clock().UnixMillis();
  for (const LearnerDelta& learner : record.learners)
    if (learner.histories)
      TACIT_RETURN_IF_ERROR(
          PutHistories(rocks, learner.learner, record.tip.seq, *learner.histories, now, &batch_));
  return {};
}

void StoreImpl::Publish(const DeltaRecord& record) {
  auto delta = MakeOverlay(record, parts_.catalog->records().size());
  const size_t bytes = delta->bytes;
  std::shared_ptr<const SnapshotImpl> old;  // let go outside the lock
  {
    std::lock_guard lock(view_mutex_);
    View view = published_->view();
    view.tip = record.tip;
    view.source_identity = record.source_identity;
    view.ledger_tail = TailAfter(*view.ledger_tail, record, parts_.catalog->records().size());
    view.overlay.push_back(std::move(delta));
    for (const LearnerDelta& learner : record.learners) {
      LearnerValue& value = view.learners[learner.learner];
      value.position = learner.position;
      if (learner.mechanism_state) {
        value.mechanism_state = learner.mechanism_state;
        value.mechanism_seq = record.tip.seq;
      }
      if (!learner.dense) continue;
      value.dense = learner.dense;
      value.dense_seq = record.tip.seq;
    }
    old = std::exchange(
        published_, std::make_shared<SnapshotImpl>(parts_.rocks, parts_.catalog, std::move(view)));
  }
  std::lock_guard lock(mutex_);
  published_seq_ = record.tip.seq;
  unfolded_ += 1;
  unfolded_bytes_ += bytes;
  changed_.notify_all();
}

Status StoreImpl::Flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !in_flight_; });
  return parts_.latch->status();
}

bool StoreImpl::FoldIsDue() const {
  if (unfolded_ == 0 || parts_.latch->failed()) return false;
  return unfolded_ >= parts_.options.fold_after_commits ||
         unfolded_bytes_ > parts_.options.overlay_bytes || fold_through_.value > folded_.load();
}

void StoreImpl::FoldLoop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || FoldIsDue(); });
    if (stopping_) return;
    lock.unlock();
    const Status status = FoldPublished();
    if (!status) parts_.latch->Set(status.error());
    lock.lock();
    changed_.notify_all();
  }
}

Status StoreImpl::FoldPublished() {
  const auto folding = Published();
  const View& folded = folding->view();
  TACIT_ASSIGN(const uint64_t rows, FoldView(*parts_.rocks, *parts_.catalog, folded));
  std::shared_ptr<const SnapshotImpl> old;
  {
    std::lock_guard lock(view_mutex_);
    View view = published_->view();
    view.overlay.erase(view.overlay.begin(),
                       view.overlay.begin() + static_cast<ptrdiff_t>(folded.overlay.size()));
    old = std::exchange(
        published_, std::make_shared<SnapshotImpl>(parts_.rocks, parts_.catalog, std::move(view)));
  }
  std::lock_guard lock(mutex_);
  folded_.store(folded.tip.seq.value);
  unfolded_ -= folded.overlay.size();
  unfolded_bytes_ -= folded.overlay_bytes();
  stats_.folded_rows += rows;
  return {};
}

void StoreImpl::RequestFold(CommitSeq seq) {
  std::lock_guard lock(mutex_);
  fold_through_ = std::max(fold_through_, seq);
  changed_.notify_all();
}

void StoreImpl::FoldThrough(CommitSeq seq) {
  RequestFold(seq);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return folded_.load() >= seq.value || parts_.latch->failed(); });
}

}  // namespace tacit::store
