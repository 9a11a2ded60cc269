// The parts of StoreImpl that show what was released.
#include <unordered_set>

#include "store/checkpoint/released.h"
#include "store/store_impl.h"
#include "store/view/stored_rows.h"

namespace tacit::store {
namespace {

// Takes from a row what serving needs: the embedding and, behind it, the average with its step.
std::span<const float> ReleasedFloats(const RowLayout& layout, uint32_t dim,
                                      std::span<const float> row, std::vector<float>* scratch) {
  const size_t average = layout.average.StateFloats(dim);
  scratch->assign(row.begin(), row.begin() + dim);
  scratch->insert(scratch->end(), row.end() - static_cast<ptrdiff_t>(average), row.end());
  return *scratch;
}

// Takes the rest of it.
std::span<const float> StateFloats(const RowLayout& layout, uint32_t dim,
                                   std::span<const float> row) {
  return row.subspan(dim, row.size() - dim - layout.average.StateFloats(dim));
}

// Shows the rows of one commit that no later one has changed. `seen`: of later commits; null where
// there is no other one.
Status ShowDelta(const DeltaRecord& record, const LearnerDirectory& directory,
                 std::vector<std::unordered_set<uint64_t>>* seen, std::vector<float>* scratch,
                 const EachReleasedRow& each) {
  for (const auto& [key, commit] : record.learners) {
    if (!commit.rows) continue;
    const LearnerRecord& learner = directory.records()[key];
    const auto tables = learner.layout.space.tables();
    uint32_t table = 0;
    for (size_t i = 0; i < commit.rows->size(); ++i) {
      const uint64_t row = commit.rows->rows[i];
      while (row >= tables[table].first + tables[table].rows) ++table;
      if (seen != nullptr && !(*seen)[key].insert(row).second) continue;
      TACIT_RETURN_IF_ERROR(
          each({.learner = learner.key,
                .table = learner.layout.PlaceOf(table).number,
                .bucket = row - tables[table].first,
                .floats =
                    ReleasedFloats(learner.layout, tables[table].dim, commit.rows->Row(i), scratch),
                .state = StateFloats(learner.layout, tables[table].dim, commit.rows->Row(i))}));
    }
  }
  return {};
}

// True if the deltas of all commits (since, through] are there.
bool HasDeltas(const Rocks& rocks, const rocksdb::ReadOptions& options, CommitSeq since,
               CommitSeq through) {
  const std::unique_ptr<rocksdb::Iterator> it(
      rocks.db().NewIterator(options, rocks.family(Family::kDeltas)));
  uint64_t next = since.value + 1;
  for (it->Seek(SequenceKey(next)); it->Valid() && next <= through.value; it->Next(), ++next)
    if (SequenceOf(it->key().ToStringView()) != next) return false;
  return it->status().ok() && next == through.value + 1;
}

// Keeps the database as it is, for several reads.
class Hold {
 public:
  explicit Hold(const Rocks& rocks) : rocks_(rocks), snapshot_(rocks.db().GetSnapshot()) {}
  ~Hold() { rocks_.db().ReleaseSnapshot(snapshot_); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  const rocksdb::Snapshot* get() const { return snapshot_; }

 private:
  const Rocks& rocks_;
  const rocksdb::Snapshot* const snapshot_;
};

}  // namespace

Result<Release> StoreImpl::LatestRelease() const {
  auto snapshot = Published();
  Release release{
      .snapshot = snapshot, .tip = snapshot->view().tip, .term = snapshot->term(), .learners = {}};
  for (const LearnerRecord& record : parts_.directory->records()) {
    const LearnerState& state = snapshot->view().learners[record.key];
    const bool known = state.released != nullptr && state.released_seq <= snapshot->version();
    release.learners.push_back({.key = record.key,
                                .fingerprint = record.model_fingerprint,
                                .record = EncodeLearner(record),
                                .step = snapshot->StepOf(record),
                                .dense = snapshot->ServedDenseOf(record),
                                .dense_seq = state.dense_seq,
                                .released = known ? state.released : nullptr,
                                .released_seq = state.released_seq});
  }
  return release;
}

Result<bool> StoreImpl::ForReleasedRows(const Release& release, std::optional<CommitSeq> since,
                                        const EachReleasedRow& each) const {
  const Rocks& rocks = *parts_.rocks;
  const LearnerDirectory& directory = *parts_.directory;
  std::vector<float> scratch;
  if (!since) {
    const auto& snapshot = static_cast<const SnapshotImpl&>(*release.snapshot);
    StoredRowParser parser(directory);
    TACIT_RETURN_IF_ERROR(ForStoredRows(
        rocks, snapshot, directory, [&](std::string_view key, std::string_view stored) -> Status {
          TACIT_ASSIGN(const StoredRowParser::Row row, parser.Parse(key, stored));
          return each({.learner = row.learner->key,
                       .table = row.number,
                       .bucket = row.bucket,
                       .floats = ReleasedFloats(row.learner->layout, row.dim, row.floats, &scratch),
                       .state = StateFloats(row.learner->layout, row.dim, row.floats)});
        }));
    return true;
  }
  const Hold hold(rocks);
  rocksdb::ReadOptions options;
  options.snapshot = hold.get();
  options.fill_cache = false;
  const CommitSeq through = release.tip.seq;
  if (!HasDeltas(rocks, options, *since, through)) return false;
  std::vector<std::unordered_set<uint64_t>> seen(directory.records().size());
  for (CommitSeq seq = through; seq > *since; --seq.value) {
    rocksdb::PinnableSlice sealed;
    TACIT_RETURN_IF_ERROR(ToStatus(
        rocks.db().Get(options, rocks.family(Family::kDeltas), SequenceKey(seq.value), &sealed),
        "reading store " + rocks.path()));
    TACIT_ASSIGN(const DeltaRecord record, DecodeDelta(sealed.ToStringView(), seq));
    const bool alone = seq == through && seq.value == since->value + 1;
    TACIT_RETURN_IF_ERROR(ShowDelta(record, directory, alone ? nullptr : &seen, &scratch, each));
  }
  return true;
}

Status StoreImpl::ForReleasedRowsOf(const Release& release, uint16_t key,
                                    const EachReleasedRow& each) const {
  const auto& snapshot = static_cast<const SnapshotImpl&>(*release.snapshot);
  const LearnerRecord& learner = parts_.directory->records()[key];
  const auto tables = learner.layout.space.tables();
  std::vector<float> scratch;
  Status shown;
  for (uint32_t table = 0; shown && table < tables.size(); ++table) {
    const auto show = [&](uint64_t row, std::span<const float> floats) {
      if (!shown) return;
      shown = each({.learner = key,
                    .table = learner.layout.PlaceOf(table).number,
                    .bucket = row - tables[table].first,
                    .floats = ReleasedFloats(learner.layout, tables[table].dim, floats, &scratch),
                    .state = StateFloats(learner.layout, tables[table].dim, floats)});
    };
    TACIT_RETURN_IF_ERROR(snapshot.ForWrittenOf(learner, table, show));
  }
  return shown;
}

}  // namespace tacit::store
