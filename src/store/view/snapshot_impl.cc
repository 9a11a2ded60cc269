#include "store/view/snapshot_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "store/rows/row_codec.h"
#include "store/rows/row_reader.h"
#include "store/users/history_table.h"

namespace tacit::store {

std::shared_ptr<const OverlayDelta> MakeOverlay(const DeltaRecord& record, size_t learners,
                                                size_t log_bytes) {
  auto overlay = std::make_shared<OverlayDelta>();
  overlay->log_bytes = log_bytes;
  overlay->seq = record.tip.seq;
  overlay->rows.resize(learners);
  for (const auto& [key, learner] : record.learners) {
    overlay->rows[key] = learner.rows;
    if (learner.rows) overlay->bytes += learner.rows->bytes();
  }
  return overlay;
}

LedgerTail TailOf(const std::vector<privacy::LedgerEntry>& entries, size_t learners) {
  auto tail = std::make_shared<std::vector<std::string>>();
  for (size_t i = entries.size() - std::min(entries.size(), learners); i < entries.size(); ++i)
    tail->push_back(entries[i].Encode());
  return tail;
}

LedgerTail TailAfter(const std::vector<std::string>& before, const DeltaRecord& record,
                     size_t learners) {
  const size_t replaced = record.previous_entries.size();
  TACIT_CHECK(replaced <= before.size(), "a commit changed an old ledger entry");
  auto tail = std::make_shared<std::vector<std::string>>(
      before.begin(), before.end() - static_cast<ptrdiff_t>(replaced));
  tail->insert(tail->end(), record.entries.begin(), record.entries.end());
  if (tail->size() > learners)
    tail->erase(tail->begin(), tail->end() - static_cast<ptrdiff_t>(learners));
  return tail;
}

size_t View::overlay_bytes() const {
  size_t bytes = 0;
  for (const auto& delta : overlay) bytes += delta->bytes;
  return bytes;
}

void View::MoveOn(const DeltaRecord& record, std::shared_ptr<const OverlayDelta> delta) {
  tip = record.tip;
  ledger_tail = TailAfter(*ledger_tail, record, learners.size());
  if (delta) overlay.push_back(std::move(delta));
  source_identity = record.source_identity;
  for (const auto& [key, commit] : record.learners) {
    LearnerState& state = learners[key];
    state.position = commit.position;
    if (commit.released) {
      state.released = commit.released;
      state.released_seq = record.tip.seq;
    }
    if (!commit.dense) continue;
    state.dense = commit.dense;
    state.dense_seq = record.tip.seq;
  }
}

SnapshotImpl::SnapshotImpl(std::shared_ptr<Rocks> rocks,
                           std::shared_ptr<const LearnerDirectory> directory, View view)
    : rocks_(std::move(rocks)),
      directory_(std::move(directory)),
      view_(std::move(view)),
      snapshot_(rocks_->db().GetSnapshot()) {}

SnapshotImpl::~SnapshotImpl() { rocks_->db().ReleaseSnapshot(snapshot_); }

Result<std::vector<std::string>> SnapshotImpl::LedgerEntries(uint64_t from, uint64_t count) const {
  const uint64_t end =
      from + std::min(count, view_.tip.ledger_entries - std::min(from, view_.tip.ledger_entries));
  const std::vector<std::string>& tail = *view_.ledger_tail;
  const uint64_t tail_begin = view_.tip.ledger_entries - tail.size();
  std::vector<std::string> entries;
  if (from < std::min(end, tail_begin)) {
    TACIT_ASSIGN(entries, rocks_->ReadLedger(snapshot_, from, std::min(end, tail_begin)));
  }
  for (uint64_t i = std::max(from, tail_begin); i < end; ++i)
    entries.push_back(tail[i - tail_begin]);
  return entries;
}

std::shared_ptr<const DenseState> SnapshotImpl::Dense(LearnerIndex learner) const {
  return view_.learners[directory_->KeyOf(learner)].dense;
}

std::span<const float> SnapshotImpl::ServedDense(LearnerIndex learner) const {
  return ServedDenseOf(directory_->Configured(learner));
}

std::span<const float> SnapshotImpl::ServedDenseOf(const LearnerRecord& learner) const {
  const DenseState* dense = view_.learners[learner.key].dense.get();
  if (dense == nullptr) return {};
  const MovingAverage& average = learner.layout.average;
  if (!average.on() || directory_->as_served()) return dense->parameters;
  return average.Of(dense->parameters.size(), dense->optimizer);
}

// A read-only store loads this state from its own key, which may be newer than the witness.
std::shared_ptr<const std::string> SnapshotImpl::Released(LearnerIndex learner) const {
  const LearnerState& state = view_.learners[directory_->KeyOf(learner)];
  return state.released_seq > view_.tip.seq ? nullptr : state.released;
}

Result<std::vector<HistoryItem>> SnapshotImpl::History(LearnerIndex learner,
                                                       const Hash128& user) const {
  return ReadHistory(*rocks_, snapshot_, directory_->KeyOf(learner), view_.tip.seq,
                     rocks_->clock().UnixMillis(), user);
}

std::span<const float> SnapshotImpl::FromOverlay(uint16_t key, uint64_t row) const {
  for (auto delta = view_.overlay.rbegin(); delta != view_.overlay.rend(); ++delta) {
    const RowDelta* rows = (*delta)->rows[key].get();
    if (rows == nullptr) continue;
    const size_t place = rows->Find(row);
    if (place != rows->size()) return rows->Row(place);
  }
  return {};
}

// Every step moves the dense average, so the average carries the learner's last step.
uint32_t SnapshotImpl::StepOf(const LearnerRecord& learner) const {
  const DenseState* dense = view_.learners[learner.key].dense.get();
  if (!learner.layout.average.on() || dense == nullptr || dense->optimizer.empty()) return 0;
  return CountOf(dense->optimizer.back());
}

Status SnapshotImpl::Rows(LearnerIndex index, std::span<const uint64_t> rows,
                          std::span<float> out) const {
  const LearnerRecord& learner = directory_->Configured(index);
  const RowSpace& space = learner.layout.space;
  std::vector<uint64_t> missing;
  std::vector<float*> missing_out;
  const uint32_t step = StepOf(learner);
  for (uint64_t row : rows) {
    if (row >= space.rows())
      return Fail(ErrorCode::kInvalidArgument, fmt::format("row {} of learner '{}': there are {}",
                                                           row, learner.name, space.rows()));
    const uint32_t dim = space.tables()[space.TableOf(row)].dim;
    TACIT_CHECK(dim <= out.size(), "`out` is shorter than the rows");
    if (const auto stored = FromOverlay(learner.key, row); !stored.empty()) {
      learner.layout.average.Read(stored.first(dim), stored.subspan(dim), step, out.first(dim));
    } else {
      missing.push_back(row);
      missing_out.push_back(out.data());
    }
    out = out.subspan(dim);
  }
  TACIT_CHECK(out.empty(), "`out` is longer than the rows");
  return RowReader().Read(*rocks_, snapshot_, *directory_, learner, missing, missing_out,
                          RowReader::Extent::kServed, step);
}

std::vector<uint64_t> SnapshotImpl::ForUnfolded(const LearnerRecord& learner,
                                                const RowSpace::Table& table,
                                                const EachRow& each) const {
  std::vector<uint64_t> seen;
  for (auto delta = view_.overlay.rbegin(); delta != view_.overlay.rend(); ++delta) {
    const RowDelta* rows = (*delta)->rows[learner.key].get();
    if (rows == nullptr) continue;
    const size_t before = seen.size();
    for (size_t i = 0; i < rows->size(); ++i) {
      const uint64_t row = rows->rows[i];
      if (row < table.first || row >= table.first + table.rows) continue;
      if (std::binary_search(seen.begin(), seen.begin() + static_cast<ptrdiff_t>(before), row))
        continue;
      each(row, rows->Row(i));
      seen.push_back(row);
    }
    std::ranges::sort(seen);
  }
  return seen;
}

Status SnapshotImpl::ForWritten(LearnerIndex index, uint32_t table_index,
                                const EachRow& each) const {
  return ForWrittenOf(directory_->Configured(index), table_index, each);
}

Status SnapshotImpl::ForWrittenOf(const LearnerRecord& learner, uint32_t table_index,
                                  const EachRow& each) const {
  const RowSpace::Table& table = learner.layout.space.tables()[table_index];
  const std::vector<uint64_t> newer = ForUnfolded(learner, table, each);
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  const uint32_t state = directory_->as_served() ? 0 : learner.layout.state_floats[table_index];
  std::vector<float> floats(table.dim + state);
  const uint64_t shards = std::min<uint64_t>(directory_->shards(), table.rows);
  for (uint64_t shard = 0; shard < shards; ++shard) {
    const std::unique_ptr<rocksdb::Iterator> at(
        rocks_->db().NewIterator(options, rocks_->rows(shard)));
    // The first bucket of a shard is its number.
    const RowKey first = EncodeRowKey(directory_->Place(learner, table_index, table.first + shard));
    const rocksdb::Slice prefix(first.data(), kRowKeyBytes - sizeof(uint64_t));
    for (at->Seek({first.data(), first.size()}); at->Valid() && at->key().starts_with(prefix);
         at->Next()) {
      if (!DecodeRow(at->value().ToStringView(), table.dim, state, floats))
        return Fail(ErrorCode::kCorruption,
                    fmt::format("a row of table '{}' of learner '{}' in store {} has {} bytes, not "
                                "{}",
                                table.name, learner.name, rocks_->path(), at->value().size(),
                                floats.size() * sizeof(float)));
      const uint64_t row =
          table.first + SequenceOf({at->key().data() + prefix.size(), sizeof(uint64_t)});
      if (std::ranges::binary_search(newer, row)) continue;
      each(row, floats);
    }
    TACIT_RETURN_IF_ERROR(ToStatus(at->status(), "reading rows of store " + rocks_->path()));
  }
  return {};
}

}  // namespace tacit::store
