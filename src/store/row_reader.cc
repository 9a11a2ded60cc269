#include "store/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace tacit::store {
namespace {

// Bounds the blocks pinned at a time.
constexpr size_t kBatchRows = 1024;

uint32_t TableOf(const RowPlace& place) { return static_cast<uint16_t>(place.high); }

}  // namespace

void FillInitialRow(const RowLayout& layout, uint32_t table, uint64_t row, std::span<float> out) {
  const uint32_t dim = layout.space.tables()[table].dim;
  InitialRow(layout.seed, row, layout.initial_scale[table], out.first(dim));
  std::fill(out.begin() + dim, out.end(), 0.0f);
}

Status RowReader::Read(const Rocks& rocks, const rocksdb::Snapshot* snapshot,
                       const LearnerDirectory& directory, const LearnerRecord& learner,
                       std::span<const uint64_t> rows, std::span<float* const> out, Extent extent,
                       uint32_t step) {
  wanted_.clear();
  for (size_t i = 0; i < rows.size(); ++i)
    wanted_.push_back({directory.Place(learner, learner.layout.space.TableOf(rows[i]), rows[i]),
                       rows[i], out[i]});
  std::sort(wanted_.begin(), wanted_.end(),
            [](const Wanted& a, const Wanted& b) { return a.place < b.place; });
  for (size_t begin = 0; begin < wanted_.size(); begin += kBatchRows) {
    const size_t count = std::min(kBatchRows, wanted_.size() - begin);
    TACIT_RETURN_IF_ERROR(ReadBatch(rocks, snapshot, learner, directory.as_served(),
                                    std::span(wanted_).subspan(begin, count), extent, step));
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
  rocks.db().MultiGet(options, rocks.family(Family::kRows), n, slices_.data(), values_.data(),
                      statuses_.data(), /*sorted_input=*/true);
  Status status;
  for (size_t i = 0; i < n; ++i) {
    const Wanted& row = wanted[i];
    const uint32_t table = TableOf(row.place);
    const uint32_t dim = learner.layout.space.tables()[table].dim;
    const uint32_t stored = as_served ? dim : learner.layout.RowFloats(table);
    if (statuses_[i].IsNotFound()) {
      const uint32_t floats = extent == Extent::kWithState ? stored : dim;
      FillInitialRow(learner.layout, table, row.row, {row.out, floats});
    } else if (!statuses_[i].ok()) {
      status = ToStatus(statuses_[i], "reading rows of store " + rocks.path());
    } else if (values_[i].size() != stored * sizeof(float)) {
      status =
          Fail(ErrorCode::kCorruption,
               fmt::format("row {} of learner '{}' in store {} has {} bytes, not {}", row.row,
                           learner.name, rocks.path(), values_[i].size(), stored * sizeof(float)));
    } else if (as_served) {
      std::memcpy(row.out, values_[i].data(), dim * sizeof(float));
    } else {
      CopyOut(learner.layout, row, values_[i].data(), extent, step);
    }
    values_[i].Reset();
  }
  return status;
}

void RowReader::CopyOut(const RowLayout& layout, const Wanted& wanted, const char* stored,
                        Extent extent, uint32_t step) {
  const uint32_t table = TableOf(wanted.place), dim = layout.space.tables()[table].dim;
  const bool average = extent == Extent::kServed && layout.average.on();
  const size_t floats = extent == Extent::kServed && !average ? dim : layout.RowFloats(table);
  if (!average) {
    std::memcpy(wanted.out, stored, floats * sizeof(float));
    return;
  }
  row_.resize(floats);
  std::memcpy(row_.data(), stored, floats * sizeof(float));
  const std::span<const float> row(row_);
  layout.average.Read(row.first(dim), row.subspan(dim), step, {wanted.out, dim});
}

}  // namespace tacit::store
