#include "store/store_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crash_point.h"
#include "base/threads/named_thread.h"
#include "store/disk/seal.h"
#include "store/rows/row_arrival.h"
#include "store/users/allocation.h"
#include "store/users/allowance.h"
#include "store/users/history_table.h"
#include "store/view/fold.h"
#include "store/view/load.h"

namespace tacit::store {

// The folded rows of one learner, for its cache. Reading is thread-safe; the rest belongs to the
// trainer thread, like the cache.
class StoreImpl::LearnerBacking final : public RowBacking {
 public:
  LearnerBacking(StoreImpl& store, const LearnerRecord& learner)
      : store_(store), learner_(learner) {}

  Status Read(std::span<const uint64_t> rows, std::span<float* const> out) override {
    std::unique_ptr<RowReader> reader = TakeReader();
    const Status status = reader->Read(*store_.parts_.rocks, nullptr, *store_.parts_.directory,
                                       learner_, rows, out, RowReader::Extent::kWithState);
    const MutexLock lock(mutex_);
    readers_.push_back(std::move(reader));
    return status;
  }
  CommitSeq next() const override { return CommitSeq(store_.enqueued_.seq.value + 1); }
  CommitSeq folded() const override { return CommitSeq(store_.folded_.load()); }
  void RequestFold() override { store_.RequestFold(store_.Published()->version()); }
  void FoldThrough(CommitSeq seq) override { store_.FoldThrough(seq); }

 private:
  std::unique_ptr<RowReader> TakeReader() {
    const MutexLock lock(mutex_);
    if (readers_.empty()) return std::make_unique<RowReader>();
    std::unique_ptr<RowReader> reader = std::move(readers_.back());
    readers_.pop_back();
    return reader;
  }

  StoreImpl& store_;
  const LearnerRecord& learner_;
  Mutex mutex_;
  // Not in use; one a thread keeps its memory.
  std::vector<std::unique_ptr<RowReader>> readers_ TACIT_GUARDED_BY(mutex_);
};

StoreImpl::StoreImpl(OpenedStore opened)
    : parts_(std::move(opened)),
      forgotten_(parts_.forgotten),
      ledger_(parts_.ledger),
      prices_(ledger_.entries()),
      enqueued_(parts_.view.tip),
      term_begun_(parts_.term_begun),
      published_seq_(parts_.view.tip.seq),
      folded_(parts_.view.tip.seq.value),
      outbox_(parts_.outbox),
      published_(std::make_shared<SnapshotImpl>(parts_.rocks, parts_.directory, parts_.view)) {
  TACIT_CHECK(parts_.view.overlay.empty());
  for (const LearnerState& learner : parts_.view.learners) positions_.push_back(learner.position);
  if (parts_.options.reader_threads > 0)
    fetcher_ = std::make_unique<RowFetcher>(parts_.options.reader_threads);
  for (size_t i = 0; i < parts_.directory->configured(); ++i) {
    const LearnerRecord& learner =
        parts_.directory->Configured(LearnerIndex(static_cast<uint16_t>(i)));
    backings_.push_back(std::make_unique<LearnerBacking>(*this, learner));
    LearnerBacking& backing = *backings_.back();
    rows_.push_back(std::make_unique<RowCache>(learner.layout, parts_.options.row_cache_bytes,
                                               backing, fetcher_.get()));
  }
  // RocksDB's threads fail too, and who waits for a fold or for room waits for them.
  parts_.latch->Listen([this] {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
  });
  commit_thread_ = NamedThread("tacit-commit", [this] { CommitLoop(); });
  fold_thread_ = NamedThread("tacit-fold", [this] { FoldLoop(); });
}

StoreImpl::~StoreImpl() {
  {
    const MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return !in_flight_; });
    stopping_ = true;
  }
  changed_.NotifyAll();
  commit_thread_.join();
  fold_thread_.join();
  parts_.latch->Listen(nullptr);
}

std::shared_ptr<const SnapshotImpl> StoreImpl::Published() const {
  const MutexLock lock(view_mutex_);
  return published_;
}

LearnerState StoreImpl::State(LearnerIndex learner) const {
  return Published()->view().learners[parts_.directory->KeyOf(learner)];
}

std::string StoreImpl::source_identity() const { return Published()->view().source_identity; }

Result<UsersByUses> StoreImpl::CountUsers(LearnerIndex learner,
                                          const std::function<bool()>& keep) const {
  TACIT_ASSIGN(CountedUses counted,
               CheckCounts(*parts_.rocks, parts_.directory->KeyOf(learner), keep));
  return std::move(counted.by_used);
}

Result<uint64_t> StoreImpl::ReadAllowances(LearnerIndex learner, std::span<UserUses> users) const {
  return store::ReadAllowances(*parts_.rocks, parts_.directory->KeyOf(learner), users);
}

Result<std::string> StoreImpl::ReadAllocation(LearnerIndex learner) const {
  return store::ReadAllocation(*parts_.rocks, parts_.directory->KeyOf(learner));
}

Result<uint64_t> StoreImpl::ReadHistories(LearnerIndex learner,
                                          std::span<UserHistory> users) const {
  return store::ReadHistories(*parts_.rocks, parts_.directory->KeyOf(learner),
                              parts_.rocks->clock().UnixMillis(), users);
}

WorkingRows& StoreImpl::working_rows(LearnerIndex learner) {
  TACIT_CHECK(learner.value < rows_.size(), "no such learner in the configuration");
  return *rows_[learner.value];
}

double StoreImpl::EpsilonAfter(std::span<const privacy::CommitCharge> charges) const {
  const MutexLock lock(ledger_mutex_);
  return ledger_.EpsilonAfter(charges);
}

double StoreImpl::TotalEpsilonAfter(std::span<const privacy::CommitCharge> charges,
                                    std::optional<Delta> delta) const {
  const MutexLock lock(ledger_mutex_);
  return ledger_.TotalAfter(charges, delta);
}

Store::Stats StoreImpl::stats() const {
  const MutexLock lock(mutex_);
  Stats stats = stats_;
  stats.unfolded_deltas = unfolded_;
  return stats;
}

Store::EngineStats StoreImpl::engine_stats() const {
  using Properties = rocksdb::DB::Properties;
  rocksdb::DB& db = parts_.rocks->db();
  std::vector<rocksdb::ColumnFamilyHandle*> families = parts_.rocks->all_families();
  families.push_back(db.DefaultColumnFamily());
  const auto of = [&](const std::string& property, rocksdb::ColumnFamilyHandle* family) {
    uint64_t value = 0;
    db.GetIntProperty(family, property, &value);
    return value;
  };
  const auto sum = [&](const std::string& property) {
    uint64_t value = 0;
    for (rocksdb::ColumnFamilyHandle* family : families) value += of(property, family);
    return value;
  };
  // These are of the whole database, for any family. All families share one cache.
  const auto whole = [&](const std::string& property) {
    return of(property, parts_.rocks->family(Family::kMeta));
  };
  EngineStats stats;
  stats.table_bytes = sum(Properties::kTotalSstFilesSize);
  stats.blob_bytes = sum(Properties::kTotalBlobFileSize);
  stats.block_cache_bytes = whole(Properties::kBlockCacheUsage);
  stats.memtable_bytes = sum(Properties::kCurSizeAllMemTables);
  for (rocksdb::ColumnFamilyHandle* family : families) {
    std::string files;
    if (db.GetProperty(family, Properties::kNumFilesAtLevelPrefix + "0", &files))
      stats.level0_files += std::strtoull(files.c_str(), nullptr, 10);
  }
  stats.pending_compaction_bytes = sum(Properties::kEstimatePendingCompactionBytes);
  stats.running_compactions = whole(Properties::kNumRunningCompactions);
  stats.running_flushes = whole(Properties::kNumRunningFlushes);
  stats.writes_stopped = whole(Properties::kIsWriteStopped) != 0;
  stats.delayed_write_bytes_per_second = whole(Properties::kActualDelayedWriteRate);
  stats.background_errors = whole(Properties::kBackgroundErrors);
  return stats;
}

// Fails with the reason, once no commit is taken any more.
Status StoreImpl::MayCommit() const {
  TACIT_RETURN_IF_ERROR(parts_.latch->status());
  if (not_arrived_) return Fail(*not_arrived_);
  return {};
}

// The unfolded rows may exceed their limits while a fold runs, but only so far.
bool StoreImpl::MustWait() const {
  if (!MayCommit()) return false;
  return in_flight_ || unfolded_bytes_ > 2 * parts_.options.overlay_bytes ||
         unfolded_ >= 4 * uint64_t{parts_.options.fold_after_commits};
}

Status StoreImpl::Commit(CommitRequest request, std::function<void(Status)> done) {
  {
    const MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return !MustWait(); });
    TACIT_RETURN_IF_ERROR(MayCommit());
    slot_ = MakeJob(std::move(request), std::move(done));
    in_flight_ = true;
  }
  changed_.NotifyAll();
  return {};
}

StoreImpl::Job StoreImpl::MakeJob(CommitRequest request, std::function<void(Status)> done) {
  Job job;
  job.done = std::move(done);
  const CommitSeq seq(enqueued_.seq.value + 1);
  job.record.source_identity = std::move(request.source_identity);
  std::vector<privacy::CommitCharge> charges;
  for (LearnerCommit& commit : request.learners) {
    const uint16_t key = parts_.directory->KeyOf(commit.learner);
    TACIT_CHECK(!commit.charges.empty(), "a commit without a charge");
    for (privacy::CommitCharge& charge : commit.charges) {
      TACIT_CHECK(charge.learner == parts_.directory->records()[key].name,
                  "a commit must charge the learner whose rows it holds");
      charges.push_back(std::move(charge));
    }
    rows_[commit.learner.value]->Enqueued(commit.rows.get(), seq);
    positions_[key] = commit.position;
    job.record.learners.emplace_back(key, std::move(commit));
  }
  job.begins_term = !std::exchange(term_begun_, true);
  ChargeLedger(std::move(charges), job);
  return job;
}

// Charges the ledger. From here on the budget counts the commit, though it is not on disk yet.
void StoreImpl::ChargeLedger(std::vector<privacy::CommitCharge> charges, Job& job) {
  const MutexLock lock(ledger_mutex_);
  DeltaRecord& record = job.record;
  record.previous = enqueued_;
  // A commit can only extend the last run of each learner, and those runs come last in the chain.
  const auto& entries = ledger_.entries();
  const uint64_t before = entries.size();
  const uint64_t kept = std::min<uint64_t>(before, parts_.directory->records().size());
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
  if (!parts_.witnesses.empty()) {
    prices_.Count(entries, first);
    job.witnessed = WitnessLearners(parts_.directory->records(), positions_, ledger_, prices_);
  }
  enqueued_ = record.tip;
}

void StoreImpl::CommitLoop() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.Wait(mutex_,
                  [&]() TACIT_REQUIRES(mutex_) { return slot_ || !between_.empty() || stopping_; });
    if (!between_.empty()) {
      auto work = std::move(between_.front());
      between_.pop_front();
      lock.Unlock();
      work();
      lock.Lock();
      continue;
    }
    if (!slot_) return;
    Job job = *std::exchange(slot_, std::nullopt);
    lock.Unlock();
    Status status = parts_.latch->status();
    if (status) status = RunCommit(job);
    bool arrived = true;
    if (!status) {
      status = Fail(
          std::move(status.error()).Context(fmt::format("commit {}", job.record.tip.seq.value)));
      arrived = parts_.latch->failed() || AwaitRows(job.record);
      if (arrived) parts_.latch->Set(status.error());
    }
    if (job.done) job.done(status);
    job = {};
    lock.Lock();
    if (!arrived) not_arrived_ = status.error();
    in_flight_ = false;
    changed_.NotifyAll();
  }
}

// Waits for rows that are on their way. Nothing was written before.
Status StoreImpl::AwaitRows(const DeltaRecord& record) {
  for (const auto& [key, learner] : record.learners)
    if (learner.rows != nullptr) TACIT_RETURN_IF_ERROR(Arrive(*learner.rows));
  return {};
}

Status StoreImpl::RunCommit(const Job& job) {
  const auto start = std::chrono::steady_clock::now();
  CrashPoint("commit.begin");
  TACIT_RETURN_IF_ERROR(AwaitRows(job.record));
  TACIT_RETURN_IF_ERROR(FillBatch(job));
  {
    const MutexLock lock(parts_.rocks->log_mutex());
    TACIT_RETURN_IF_ERROR(parts_.rocks->Write(batch_));
    CrashPoint("commit.written");
    TACIT_RETURN_IF_ERROR(parts_.rocks->SyncLog());
  }
  CrashPoint("commit.synced");
  TACIT_RETURN_IF_ERROR(WriteWitnesses(job));
  CrashPoint("commit.witnessed");
  Publish(job);
  CrashPoint("commit.published");
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  const MutexLock lock(mutex_);
  stats_.commits += 1;
  stats_.commit_bytes += batch_.GetDataSize();
  stats_.last_commit_ms = took.count();
  return {};
}

Status StoreImpl::WriteWitnesses(const Job& job) {
  const CommitTip& tip = job.record.tip;
  const WitnessRecord record{.lineage = parts_.view.lineage,
                             .seq = tip.seq,
                             .head = tip.head,
                             .term = parts_.term,
                             .learners = job.witnessed};
  uint64_t lost = 0;
  for (const auto& witness : parts_.witnesses) {
    TACIT_RETURN_IF_ERROR(witness->Write(record));
    lost += witness->times_lost();
  }
  const MutexLock lock(mutex_);
  stats_.witnesses_lost = lost;
  return {};
}

// Adds the term of this and all later commits of this run.
void StoreImpl::PutTerm(const Job& job) {
  auto* family = parts_.rocks->family(Family::kMeta);
  const Term term{
      .first = job.record.tip.seq, .id = parts_.term, .head_before = job.record.previous.head};
  batch_.Put(family, std::string(meta::kTermPrefix) + SequenceKey(term.first.value),
             Seal(EncodeTerm(term)));
}

Status StoreImpl::FillBatch(const Job& job) {
  const Rocks& rocks = *parts_.rocks;
  const DeltaRecord& record = job.record;
  const DeltaBlob blob(record);
  log_bytes_ = blob.bytes();
  if (blob.bytes() > UINT32_MAX / 2)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("store {}: commit {} has {} bytes", rocks.path(), record.tip.seq.value,
                            blob.bytes()));
  std::vector<rocksdb::Slice> pieces;
  for (std::string_view piece : blob.pieces()) pieces.push_back(AsSlice(piece));
  const std::string seq_key = SequenceKey(record.tip.seq.value);
  const rocksdb::Slice key_piece = AsSlice(seq_key);
  batch_.Clear();
  batch_.Put(rocks.family(Family::kDeltas), rocksdb::SliceParts(&key_piece, 1),
             rocksdb::SliceParts(pieces.data(), static_cast<int>(pieces.size())));
  for (const auto& [key, learner] : record.learners)
    batch_.Put(rocks.family(Family::kOffsets), LearnerKey("", key), Seal(learner.position));
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
  if (job.begins_term) PutTerm(job);
  bool remembers = false;
  for (const auto& [key, learner] : record.learners) {
    if (learner.released) {
      put_meta(LearnerKey(meta::kReleasedPrefix, key), *learner.released);
      put_meta(LearnerKey(meta::kMechanismCommitPrefix, key), seq.bytes());
    }
    if (learner.allowances) PutAllowances(rocks, key, *learner.allowances, &batch_);
    if (learner.allocation) PutAllocation(rocks, key, *learner.allocation, &batch_);
    if (!learner.histories) continue;
    remembers = true;
    TACIT_RETURN_IF_ERROR(
        PutHistories(rocks, key, record.tip.seq, *learner.histories, forgotten_, &batch_));
  }
  ByteWriter known;
  known.Put(rocks.retention().Known());
  if (remembers) put_meta(meta::kKnownTime, known.bytes());
  return {};
}

void StoreImpl::Publish(const Job& job) {
  const DeltaRecord& record = job.record;
  auto delta = MakeOverlay(record, parts_.directory->records().size(), log_bytes_);
  const size_t bytes = delta->bytes;
  std::shared_ptr<const SnapshotImpl> old;  // released outside the lock
  {
    const MutexLock lock(view_mutex_);
    View view = published_->view();
    view.MoveOn(record, std::move(delta));
    if (job.begins_term) {
      Terms terms = *view.terms;
      terms.Add({record.tip.seq, parts_.term, record.previous.head});
      view.terms = std::make_shared<const Terms>(std::move(terms));
    }
    old = std::exchange(published_, std::make_shared<SnapshotImpl>(parts_.rocks, parts_.directory,
                                                                   std::move(view)));
  }
  const MutexLock lock(mutex_);
  published_seq_ = record.tip.seq;
  unfolded_ += 1;
  unfolded_bytes_ += bytes;
  changed_.NotifyAll();
}

Status StoreImpl::Flush() {
  MutexLock lock(mutex_);
  changed_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return !in_flight_; });
  return MayCommit();
}

Status StoreImpl::Settle() {
  // Folds only this much, to keep the shutdown short; the next start folds more.
  constexpr uint64_t kFoldMost = uint64_t{32} << 20;
  TACIT_RETURN_IF_ERROR(Flush());
  MutexLock lock(mutex_);
  const bool fold = unfolded_ > 0 && unfolded_bytes_ <= kFoldMost;
  lock.Unlock();
  if (fold) FoldThrough(Published()->version());
  TACIT_RETURN_IF_ERROR(parts_.latch->status());
  auto emptied = parts_.rocks->EmptyLog();
  if (!emptied)
    return Fail(std::move(emptied.error())
                    .Context(fmt::format("store {} keeps its log, which the next start replays",
                                         parts_.options.path)));
  return {};
}

bool StoreImpl::FoldIsDue() const {
  if (unfolded_ == 0 || parts_.latch->failed()) return false;
  return unfolded_ >= parts_.options.fold_after_commits ||
         unfolded_bytes_ > parts_.options.overlay_bytes || fold_through_.value > folded_.load();
}

void StoreImpl::FoldLoop() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.Wait(mutex_, [&]() TACIT_REQUIRES(mutex_) { return stopping_ || FoldIsDue(); });
    if (stopping_) return;
    lock.Unlock();
    const Status status = FoldPublished();
    if (!status) parts_.latch->Set(status.error());
    lock.Lock();
    changed_.NotifyAll();
  }
}

Status StoreImpl::FoldPublished() {
  const auto folding = Published();
  const View& folded = folding->view();
  const uint64_t outbox_most = parts_.options.outbox_bytes;
  const auto deltas = outbox_most > 0 ? FoldedDeltas::kKept : FoldedDeltas::kDeleted;
  TACIT_ASSIGN(const uint64_t rows, FoldView(*parts_.rocks, *parts_.directory, folded,
                                             parts_.options.fold_file_bytes, deltas));
  if (deltas == FoldedDeltas::kKept)
    for (const auto& delta : folded.overlay) outbox_.Add(delta->seq, delta->log_bytes);
  TACIT_RETURN_IF_ERROR(outbox_.Trim(*parts_.rocks, CommitSeq(outbox_taken_.load()), outbox_most));
  std::shared_ptr<const SnapshotImpl> old;
  {
    const MutexLock lock(view_mutex_);
    View view = published_->view();
    view.overlay.erase(view.overlay.begin(),
                       view.overlay.begin() + static_cast<ptrdiff_t>(folded.overlay.size()));
    old = std::exchange(published_, std::make_shared<SnapshotImpl>(parts_.rocks, parts_.directory,
                                                                   std::move(view)));
  }
  const MutexLock lock(mutex_);
  folded_.store(folded.tip.seq.value);
  unfolded_ -= folded.overlay.size();
  unfolded_bytes_ -= folded.overlay_bytes();
  stats_.folded_rows += rows;
  stats_.outbox_bytes = outbox_.bytes();
  return {};
}

void StoreImpl::RequestFold(CommitSeq seq) {
  const MutexLock lock(mutex_);
  fold_through_ = std::max(fold_through_, seq);
  changed_.NotifyAll();
}

void StoreImpl::FoldThrough(CommitSeq seq) {
  RequestFold(seq);
  const MutexLock lock(mutex_);
  changed_.Wait(
      mutex_, [&]() TACIT_REQUIRES(mutex_) { return folded_.load() >= seq.value || !MayCommit(); });
}

}  // namespace tacit::store
