#include "store/rows/row_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "store/rows/row_codec.h"

namespace tacit::store {
namespace {

// Bounds the blocks pinned at a time.
constexpr size_t kBatchRows = 1024;

}  // namespace

void FillInitialRow(const RowLayout& layout, uint32_t table, uint64_t row, std::span<float> out) {
  const uint32_t dim = layout.space.tables()[table].dim;
  InitialRow(layout.seed, layout.InitialOf(table, row), layout.initial_scale[table],
             out.first(dim));
  std::fill(out.begin() + dim, out.end(), 0.0f);
}

Status RowReader::Read(const Rocks& rocks, const rocksdb::Snapshot* snapshot,
                       const LearnerDirectory& directory, const LearnerRecord& learner,
                       std::span<const uint64_t> rows, std::span<float* const> out, Extent extent,
                       uint32_t step) {
  wanted_.clear();
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint32_t table = learner.layout.space.TableOf(rows[i]);
    wanted_.push_back({directory.Place(learner, table, rows[i]), rows[i], table, out[i]});
  }
  std::sort(wanted_.begin(), wanted_.end(),
            [](const Wanted& a, const Wanted& b) { return a.place < b.place; });
  for (std::span<const Wanted> rest(wanted_); !rest.empty();) {
    size_t count = 1;  // the next rows of one shard
    while (count < std::min(kBatchRows, rest.size()) &&
           ShardOf(rest[count]) == ShardOf(rest.front()))
      ++count;
    TACIT_RETURN_IF_ERROR(ReadBatch(rocks, snapshot, learner, directory.as_served(),
                                    rest.first(count), extent, step));
    rest = rest.subspan(count);
  }
  return {};
}

Status RowReader::ReadBatch(const Rocks& rocks, const rocksdb::Snapshot* snapshot,
                            const LearnerRecord& learner, bool as_served,
                            std::span<const Wanted> wanted, Extent extent, uint32_t step) {
  const size_t n = wanted.size();
  keys_.resize(n);
  slices_.resize(n);
  values_.resize(n);
  statuses_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    keys_[i] = EncodeRowKey(wanted[i].place);
    slices_[i] = rocksdb::Slice(keys_[i].data(), keys_[i].size());
  }
  rocksdb::ReadOptions options;
  options.snapshot = snapshot;
  rocks.db().MultiGet(options, rocks.rows(ShardOf(wanted.front())), n, slices_.data(),
                      values_.data(), statuses_.data(), /*sorted_input=*/true);
  Status status;
  for (size_t i = 0; i < n; ++i) {
    const Wanted& row = wanted[i];
    const uint32_t table = row.table;
    const uint32_t dim = learner.layout.space.tables()[table].dim;
    const uint32_t state = as_served ? 0 : learner.layout.state_floats[table];
    if (statuses_[i].IsNotFound()) {
      const uint32_t floats = extent == Extent::kWithState ? dim + state : dim;
      FillInitialRow(learner.layout, table, row.row, {row.out, floats});
    } else if (!statuses_[i].ok()) {
      status = ToStatus(statuses_[i], "reading rows of store " + rocks.path());
    } else if (!CopyOut(learner.layout, row, values_[i].ToStringView(), as_served, extent, step)) {
      status = Fail(ErrorCode::kCorruption,
                    fmt::format("row {} of learner '{}' in store {} has {} bytes, not {} or {}",
                                row.row, learner.name, rocks.path(), values_[i].size(),
                                RowBytes(dim, state, false), RowBytes(dim, state, true)));
    }
    values_[i].Reset();
  }
  return status;
}

bool RowReader::CopyOut(const RowLayout& layout, const Wanted& wanted, std::string_view stored,
                        bool as_served, Extent extent, uint32_t step) {
  const uint32_t dim = layout.space.tables()[wanted.table].dim;
  const uint32_t state = as_served ? 0 : layout.state_floats[wanted.table];
  if (as_served || extent == Extent::kWithState || !layout.average.on()) {
    const uint32_t floats = extent == Extent::kWithState ? dim + state : dim;
    return DecodeRow(stored, dim, state, {wanted.out, floats});
  }
  row_.resize(dim + state);
  if (!DecodeRow(stored, dim, state, row_)) return false;
  const std::span<const float> row(row_);
  layout.average.Read(row.first(dim), row.subspan(dim), step, {wanted.out, dim});
  return true;
}

}  // namespace tacit::store
