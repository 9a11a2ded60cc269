// A replica's store has two keys of `meta` more, and lacks those that learning resumes from:
//     replica           the origin's `feed`, opaque
//     replica_position  of the last version, opaque
// Commits have the numbers of versions, which may leave numbers out: a delta follows the one that
// its `previous` names.
#include "store/replica/replica_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/crash_point.h"
#include "base/threads/mutex.h"
#include "privacy/chain.h"
#include "store/disk/seal.h"
#include "store/rows/learner_directory.h"
#include "store/view/fold.h"
#include "store/view/load.h"
#include "store/view/snapshot_impl.h"

namespace tacit::store {
namespace {

// A first version that is larger, or a part of which is in the tables already, goes there without a
// delta.
constexpr uint64_t kDeltaBytesMost = uint64_t{1} << 30;
constexpr size_t kBulkBytes = size_t{32} << 20;

std::vector<LearnerLayout> ReplicaLayouts(std::vector<LearnerLayout> learners) {
  for (LearnerLayout& learner : learners) learner.rows = ReplicaLayout(std::move(learner.rows));
  return learners;
}

// A dense state that serving reads as these parameters as of this step.
std::shared_ptr<const DenseState> DenseOf(std::span<const float> served,
                                          const MovingAverage& average, uint32_t step) {
  auto dense = std::make_shared<DenseState>();
  dense->parameters.assign(served.begin(), served.end());
  if (!average.on()) return dense;
  dense->optimizer.assign(served.begin(), served.end());
  dense->optimizer.push_back(CountAsFloat(step));
  return dense;
}

Result<std::string> StateOfReplica(const std::vector<LearnerLayout>& learners) {
  privacy::Ledger ledger;
  for (const LearnerLayout& learner : learners)
    TACIT_RETURN_IF_ERROR(ledger.Declare(learner.promise));
  return ledger.EncodeState();
}

class ReplicaStoreImpl final : public ReplicaStore {
 public:
  ReplicaStoreImpl(ReplicaOptions options, std::shared_ptr<FailureLatch> latch,
                   std::shared_ptr<Rocks> rocks)
      : options_(std::move(options)), latch_(std::move(latch)), rocks_(std::move(rocks)) {}

  // Takes over what was loaded, and folds it.
  Status Adopt(Loaded loaded) {
    TACIT_ASSIGN(const auto feed, rocks_->Get(Family::kMeta, meta::kReplica));
    {
      const MutexLock lock(mutex_);
      feed_ = feed.value_or("");
    }
    TACIT_ASSIGN(const auto position, rocks_->Get(Family::kMeta, meta::kReplicaPosition));
    TACIT_RETURN_IF_ERROR(Match(loaded.records, loaded.shards));
    View view = loaded.MakeView();
    entries_ = std::move(loaded.entries);
    view.ledger_tail = TailOf(entries_, directory_->records().size());
    TACIT_RETURN_IF_ERROR(ClearFoldFiles(rocks_->path()));
    TACIT_ASSIGN(
        [[maybe_unused]] const uint64_t rows,
        FoldView(*rocks_, *directory_, view, options_.fold_file_bytes, FoldedDeltas::kDeleted));
    view.overlay.clear();
    privacy::AddAdvantages(entries_, &view.tip.learners, &view.tip.total);
    Show(std::move(view), position.value_or(""));
    return {};
  }

  std::shared_ptr<const Snapshot> Latest() const override { return Shown(); }
  std::string feed() const override {
    const MutexLock lock(mutex_);
    return feed_;
  }
  std::string position() const override {
    const MutexLock lock(mutex_);
    return position_;
  }
  const std::vector<LearnerRecord>& learners() const override { return directory_->records(); }
  uint64_t unfolded() const override {
    const auto shown = Shown();
    return shown ? shown->view().overlay.size() : 0;
  }

  Status Begin(const ReplicaOrigin& origin) override;
  Status Fill(const std::vector<ReplicaLearner>& learners) override;
  Status Apply(ReplicaVersion version) override;
  Status Settle() override {
    TACIT_RETURN_IF_ERROR(latch_->status());
    TACIT_RETURN_IF_ERROR(Fold());
    return rocks_->EmptyLog();
  }

 private:
  struct Chain {
    std::vector<privacy::LedgerEntry> entries;
    uint64_t first = 0;  // that has changed, or is new
  };

  std::shared_ptr<const SnapshotImpl> Shown() const {
    const MutexLock lock(mutex_);
    return shown_;
  }
  void Show(View view, std::string position) {
    std::shared_ptr<const SnapshotImpl> next =
        std::make_shared<SnapshotImpl>(rocks_, directory_, std::move(view));
    const MutexLock lock(mutex_);
    shown_.swap(next);
    position_ = std::move(position);
  }
  Status Match(const std::vector<LearnerRecord>& records, uint32_t shards);
  Status Wrong(CommitSeq version, std::string_view what) const {
    return Fail(ErrorCode::kCorruption,
                fmt::format("replica {}: version {}: {}", options_.path, version.value, what));
  }
  Status CheckRows(CommitSeq version, const std::vector<ReplicaLearner>& learners) const;
  Result<Chain> Follow(const ReplicaVersion& version) const;
  Result<DeltaRecord> MakeDelta(const ReplicaVersion& version, const Chain& chain) const;
  void PutCommon(const ReplicaVersion& version, const DeltaRecord& record,
                 rocksdb::WriteBatch* batch) const;
  Status WriteDelta(const ReplicaVersion& version, const DeltaRecord& record);
  Status WriteBulk(const ReplicaVersion& version, const DeltaRecord& record);
  View ViewAfter(const DeltaRecord& record, bool bulk) const;
  Status Fold();

  ReplicaOptions options_;
  const std::shared_ptr<FailureLatch> latch_;
  const std::shared_ptr<Rocks> rocks_;
  std::shared_ptr<LearnerDirectory> directory_;
  std::vector<privacy::LedgerEntry> entries_;
  View begun_;           // before the first version
  bool filled_ = false;  // rows of the first version are there, which is not
  mutable Mutex mutex_;
  std::string feed_ TACIT_GUARDED_BY(mutex_), position_ TACIT_GUARDED_BY(mutex_);
  std::shared_ptr<const SnapshotImpl> shown_ TACIT_GUARDED_BY(mutex_);
};

Status ReplicaStoreImpl::Match(const std::vector<LearnerRecord>& records, uint32_t shards) {
  auto directory = std::make_shared<LearnerDirectory>(shards, records);
  const std::vector<uint8_t> trained(records.size(), 1);
  TACIT_ASSIGN(const auto matched, directory->Match(ReplicaLayouts(options_.learners), trained));
  if (!matched.changed.empty())
    return Fail(ErrorCode::kRefused,
                fmt::format("the feed has no learner '{}', which the configuration has: a replica "
                            "needs the trainer's learners",
                            directory->records()[matched.changed.front()].name));
  directory_ = std::move(directory);
  return {};
}

Status ReplicaStoreImpl::Begin(const ReplicaOrigin& origin) {
  TACIT_CHECK(feed().empty() && !origin.feed.empty(), "a replica begins once");
  std::vector<LearnerRecord> records = origin.learners;
  for (LearnerRecord& record : records) record.layout = ReplicaLayout(std::move(record.layout));
  TACIT_RETURN_IF_ERROR(Match(records, options_.shards));
  const auto made = rocks_->MakeRows(1, options_.shards, {});
  if (!made) return Fail(made.error());
  TACIT_RETURN_IF_ERROR(rocks_->UseRows(1, options_.shards));
  TACIT_ASSIGN(const std::string state, StateOfReplica(options_.learners));
  rocksdb::WriteBatch batch;
  const auto put = [&](std::string_view key, std::string_view value) {
    batch.Put(rocks_->family(Family::kMeta), AsSlice(key), Seal(value));
  };
  const auto put_number = [&](std::string_view key, uint32_t number) {
    put(key, ByteWriter().Put(number).bytes());
  };
  put_number(meta::kFormat, kStoreFormat);
  put_number(meta::kShards, options_.shards);
  put_number(meta::kRows, rocks_->row_generation());
  put(meta::kLineage, origin.lineage);
  put(meta::kReplica, origin.feed);
  put(meta::kLedgerState, state);
  put(meta::kSource, "");
  for (const LearnerRecord& record : records)
    put(LearnerKey(meta::kLearnerPrefix, record.key), EncodeLearner(record));
  TACIT_RETURN_IF_ERROR(rocks_->WriteSynced(batch));
  begun_ = {};
  begun_.lineage = origin.lineage;
  begun_.learners.resize(records.size());
  const MutexLock lock(mutex_);
  feed_ = origin.feed;
  return {};
}

Status ReplicaStoreImpl::CheckRows(CommitSeq version,
                                   const std::vector<ReplicaLearner>& learners) const {
  for (const ReplicaLearner& learner : learners) {
    if (learner.key >= directory_->records().size())
      return Wrong(version, fmt::format("there is no learner {}", learner.key));
    if (!learner.rows) continue;
    const RowLayout& layout = directory_->records()[learner.key].layout;
    for (size_t i = 0; i < learner.rows->size(); ++i) {
      const uint64_t row = learner.rows->rows[i];
      if (row >= layout.space.rows() ||
          learner.rows->Row(i).size() != layout.RowFloats(layout.space.TableOf(row)))
        return Wrong(version, fmt::format("row {} of learner '{}' does not fit", row,
                                          directory_->records()[learner.key].name));
    }
  }
  return {};
}

// The ledger after the version, whose chain has to go on from the one that is here.
Result<ReplicaStoreImpl::Chain> ReplicaStoreImpl::Follow(const ReplicaVersion& version) const {
  Chain chain{.entries = entries_, .first = entries_.size()};
  const uint64_t count = version.tip.ledger_entries;
  const auto wrong = [&](std::string_view what) {
    return Fail(
        Wrong(version.tip.seq, fmt::format("the ledger's chain is broken: {}", what)).error());
  };
  if (count < entries_.size())
    return wrong(fmt::format("it has {} entries, and had {}", count, entries_.size()));
  for (const auto& [number, encoded] : version.entries) {
    if (number >= count) return wrong(fmt::format("there is an entry {} of {}", number, count));
    if (number < entries_.size() && entries_[number].Encode() == encoded) continue;
    if (number > chain.entries.size())
      return wrong(fmt::format("entry {} is missing", chain.entries.size()));
    auto entry = privacy::LedgerEntry::Decode(encoded);
    if (!entry) return wrong(fmt::format("entry {}: {}", number, entry.error().message));
    chain.first = std::min(chain.first, number);
    if (number == chain.entries.size()) chain.entries.emplace_back();
    chain.entries[number] = *std::move(entry);
  }
  if (chain.entries.size() != count)
    return wrong(fmt::format("entry {} is missing", chain.entries.size()));
  const Digest head = chain.entries.empty() ? Digest{} : chain.entries.back().head;
  const Status links = entries_.empty() ? privacy::VerifyChain(chain.entries, {.epsilons_max = 0})
                                        : privacy::CheckLinks(chain.entries);
  if (!links) return wrong(links.error().message);
  if (head != version.tip.head) return wrong("it ends in another head than the mark says");
  if (entries_.size() - chain.first > directory_->records().size())
    return wrong(fmt::format("entry {} has changed, which was closed", chain.first));
  return chain;
}

Result<DeltaRecord> ReplicaStoreImpl::MakeDelta(const ReplicaVersion& version,
                                                const Chain& chain) const {
  const auto shown = Shown();
  const View& before = shown ? shown->view() : begun_;
  DeltaRecord record{.previous = before.tip,
                     .tip = version.tip,
                     .previous_entries = {},
                     .entries = {},
                     .source_identity = "",
                     .learners = {}};
  for (uint64_t i = chain.first; i < entries_.size(); ++i)
    record.previous_entries.push_back(entries_[i].Encode());
  for (uint64_t i = chain.first; i < chain.entries.size(); ++i)
    record.entries.push_back(chain.entries[i].Encode());
  for (const ReplicaLearner& from : version.learners) {
    const MovingAverage& average = directory_->records()[from.key].layout.average;
    LearnerCommit learner{.rows = from.rows, .released = from.released};
    const DenseState* const dense = before.learners[from.key].dense.get();
    if (from.dense) {
      learner.dense = DenseOf(*from.dense, average, from.step);
    } else if (dense != nullptr && average.on() && CountOf(dense->optimizer.back()) != from.step) {
      learner.dense = DenseOf(dense->parameters, average, from.step);
    }
    if (learner.rows || learner.dense || learner.released)
      record.learners.emplace_back(from.key, std::move(learner));
  }
  return record;
}

void ReplicaStoreImpl::PutCommon(const ReplicaVersion& version, const DeltaRecord& record,
                                 rocksdb::WriteBatch* batch) const {
  const auto put = [&](std::string_view key, std::string_view value) {
    batch->Put(rocks_->family(Family::kMeta), AsSlice(key), Seal(value));
  };
  const uint64_t first = record.tip.ledger_entries - record.entries.size();
  for (size_t i = 0; i < record.entries.size(); ++i)
    batch->Put(rocks_->family(Family::kLedger), SequenceKey(first + i), Seal(record.entries[i]));
  ByteWriter seq;
  seq.Put(record.tip.seq.value);
  for (const auto& [key, learner] : record.learners) {
    if (!learner.released) continue;
    put(LearnerKey(meta::kReleasedPrefix, key), *learner.released);
    put(LearnerKey(meta::kMechanismCommitPrefix, key), seq.bytes());
  }
  put(meta::kTip, EncodeTip(record.tip));
  put(meta::kReplicaPosition, version.position);
}

Status ReplicaStoreImpl::WriteDelta(const ReplicaVersion& version, const DeltaRecord& record) {
  const DeltaBlob blob(record);
  std::vector<rocksdb::Slice> pieces;
  for (const std::string_view piece : blob.pieces()) pieces.push_back(AsSlice(piece));
  const std::string key = SequenceKey(record.tip.seq.value);
  const rocksdb::Slice key_piece = AsSlice(key);
  rocksdb::WriteBatch batch;
  batch.Put(rocks_->family(Family::kDeltas), rocksdb::SliceParts(&key_piece, 1),
            rocksdb::SliceParts(pieces.data(), static_cast<int>(pieces.size())));
  PutCommon(version, record, &batch);
  const MutexLock lock(rocks_->log_mutex());
  TACIT_RETURN_IF_ERROR(rocks_->Write(batch));
  CrashPoint("replica.written");
  return rocks_->SyncLog();
}

Status ReplicaStoreImpl::Fill(const std::vector<ReplicaLearner>& learners) {
  TACIT_RETURN_IF_ERROR(latch_->status());
  TACIT_CHECK(directory_ != nullptr && Shown() == nullptr,
              "rows are taken ahead of the first version only");
  TACIT_RETURN_IF_ERROR(CheckRows(CommitSeq(), learners));
  DeltaRecord record;
  for (const ReplicaLearner& from : learners)
    record.learners.emplace_back(from.key, LearnerCommit{.rows = from.rows});
  View view = begun_;
  view.overlay.push_back(MakeOverlay(record, directory_->records().size()));
  filled_ = true;
  const Status taken = IngestOverlay(*rocks_, *directory_, view);
  if (!taken) latch_->Set(taken.error());
  CrashPoint("replica.taken_ahead");
  return taken;
}

// Rows of a first version that is too large for a delta. Until the last batch there is no tip, and
// a start after a crash empties the store.
Status ReplicaStoreImpl::WriteBulk(const ReplicaVersion& version, const DeltaRecord& record) {
  rocksdb::WriteBatch batch;
  FoldedRecord folded{record.tip.seq, {}};
  for (const auto& [learner_key, learner] : record.learners) {
    const LearnerRecord& known = directory_->records()[learner_key];
    if (learner.dense) {
      folded.dense.emplace_back(learner_key, record.tip.seq);
      batch.Put(rocks_->family(Family::kMeta), LearnerKey(meta::kDensePrefix, learner_key),
                Seal(EncodeDenseBase(record.tip.seq, *learner.dense)));
    }
    for (size_t i = 0; learner.rows && i < learner.rows->size(); ++i) {
      const uint64_t row = learner.rows->rows[i];
      const RowPlace place = directory_->Place(known, known.layout.space.TableOf(row), row);
      const RowKey key = EncodeRowKey(place);
      const std::span<const float> floats = learner.rows->Row(i);
      batch.Put(rocks_->rows(place.high >> 32), {key.data(), key.size()},
                {reinterpret_cast<const char*>(floats.data()), floats.size_bytes()});
      if (batch.GetDataSize() < kBulkBytes) continue;
      TACIT_RETURN_IF_ERROR(rocks_->WriteSynced(batch));
      batch.Clear();
    }
  }
  CrashPoint("replica.filled");
  PutRowsMarkers(*rocks_, record.tip.seq, &batch);
  batch.Put(rocks_->family(Family::kMeta), AsSlice(meta::kFolded), Seal(EncodeFolded(folded)));
  PutCommon(version, record, &batch);
  return rocks_->WriteSynced(batch);
}

View ReplicaStoreImpl::ViewAfter(const DeltaRecord& record, bool bulk) const {
  const auto shown = Shown();
  View view = shown ? shown->view() : begun_;
  view.MoveOn(record, bulk ? nullptr : MakeOverlay(record, directory_->records().size()));
  return view;
}

Status ReplicaStoreImpl::Apply(ReplicaVersion version) {
  TACIT_RETURN_IF_ERROR(latch_->status());
  const auto shown = Shown();
  TACIT_CHECK(directory_ != nullptr && (!shown || shown->version() < version.tip.seq),
              "a replica applies later versions only");
  TACIT_RETURN_IF_ERROR(CheckRows(version.tip.seq, version.learners));
  TACIT_ASSIGN(Chain chain, Follow(version));
  TACIT_ASSIGN(const DeltaRecord record, MakeDelta(version, chain));
  uint64_t bytes = 0;
  for (const auto& [key, learner] : record.learners)
    if (learner.rows) bytes += learner.rows->bytes();
  const bool bulk = !shown && (filled_ || bytes > kDeltaBytesMost);
  if (!bulk && bytes > UINT32_MAX / 2)
    return Fail(ErrorCode::kRefused,
                fmt::format("replica {}: version {} has {} bytes of rows, too many for one step: "
                            "remove the replica's store, so that it begins anew",
                            options_.path, version.tip.seq.value, bytes));
  CrashPoint("replica.begin");
  Status written = bulk ? WriteBulk(version, record) : WriteDelta(version, record);
  if (!written) {
    latch_->Set(written.error());
    return written;
  }
  CrashPoint("replica.synced");
  View view = ViewAfter(record, bulk);
  entries_ = std::move(chain.entries);
  privacy::AddAdvantages(entries_, &view.tip.learners, &view.tip.total);
  const bool fold = view.overlay.size() >= options_.fold_after_versions ||
                    view.overlay_bytes() > options_.overlay_bytes;
  Show(std::move(view), std::move(version.position));
  CrashPoint("replica.shown");
  return fold ? Fold() : Status();
}

Status ReplicaStoreImpl::Fold() {
  const auto shown = Shown();
  if (!shown || shown->view().overlay.empty()) return {};
  const auto folded = FoldView(*rocks_, *directory_, shown->view(), options_.fold_file_bytes,
                               FoldedDeltas::kDeleted);
  if (!folded) {
    latch_->Set(folded.error());
    return Fail(folded.error());
  }
  View view = shown->view();
  view.overlay.clear();
  Show(std::move(view), position());
  return {};
}

// Opens what is there; nothing if it has begun and has no version.
Result<std::unique_ptr<ReplicaStoreImpl>> TryOpenReplica(const ReplicaOptions& options) {
  auto latch = std::make_shared<FailureLatch>();
  TACIT_ASSIGN(const auto rocks, Rocks::Open(options.path, options.memory_bytes, latch,
                                             options.clock, options.open_files_most));
  TACIT_ASSIGN(Loaded loaded, Load(*rocks));
  auto store = std::make_unique<ReplicaStoreImpl>(options, latch, rocks);
  if (loaded.fresh()) return store;
  if (!loaded.replica)
    return Fail(ErrorCode::kRefused,
                fmt::format("store {} is {}: a replica needs a store of its own, in a folder of "
                            "its own (--set store.path=...)",
                            options.path, loaded.release ? "a checkpoint" : "a trainer's"));
  if (loaded.tip.seq.value == 0) return std::unique_ptr<ReplicaStoreImpl>();
  TACIT_RETURN_IF_ERROR(store->Adopt(std::move(loaded)));
  return store;
}

}  // namespace

RowLayout ReplicaLayout(RowLayout layout) {
  const auto tables = layout.space.tables();
  for (size_t t = 0; t < tables.size(); ++t)
    layout.state_floats[t] = static_cast<uint32_t>(layout.average.StateFloats(tables[t].dim));
  layout.bf16 = false;
  return layout;
}

Result<std::unique_ptr<ReplicaStore>> ReplicaStore::Open(ReplicaOptions options) {
  if (IsCheckpoint(options.path))
    return Fail(
        ErrorCode::kRefused,
        fmt::format("{} is a checkpoint: a replica needs a store of its own", options.path));
  TACIT_ASSIGN(auto store, TryOpenReplica(options));
  if (store == nullptr) {
    TACIT_RETURN_IF_ERROR(RemoveStore(options.path));
    TACIT_ASSIGN(store, TryOpenReplica(options));
  }
  TACIT_CHECK(store != nullptr, "an empty store has no version to lack");
  return std::unique_ptr<ReplicaStore>(std::move(store));
}

}  // namespace tacit::store
