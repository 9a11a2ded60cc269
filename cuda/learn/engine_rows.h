#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"
#include "cuda/device/device.h"
#include "cuda/device/stream.h"
#include "cuda/rows/device_rows.h"
#include "store/rows/working_rows.h"
#include "train/engines/gpu.h"

namespace tacit::cuda {

// The dim of a row, for many rows in no order: a search in each of a space's parts begins close to
// its end.
class DimsOfRows {
 public:
  explicit DimsOfRows(const RowSpace& space) : tables_(space.tables()) {
    while (space.rows() >> shift_ >= kParts) ++shift_;
    for (uint64_t row = 0; row < space.rows(); row += uint64_t{1} << shift_)
      first_.push_back(space.TableOf(row));
  }
  uint32_t Of(uint64_t row) const {
    uint32_t t = first_[row >> shift_];
    while (row - tables_[t].first >= tables_[t].rows) ++t;
    return tables_[t].dim;
  }

 private:
  static constexpr uint64_t kParts = 4096;
  const std::span<const RowSpace::Table> tables_;
  uint32_t shift_ = 0;
  std::vector<uint32_t> first_;  // per part: the table of its first row
};

// The place of a learner's rows where so much device memory is free.
struct RowsPlan {
  bool caches = false;
  uint64_t cache_bytes = 0;  // as CachedRowsOptions::bytes
  // The memory that they take, for steps as well, with what the index of a step's rows has for
  // their names (step_rows_index.h).
  uint64_t takes = 0;
};
// Fails with kRefused where every row is written in every step and whole tables do not fit. `step`
// is the planned one.
Result<RowsPlan> PlanRows(const DeviceFacts& facts, const RowSpace& space,
                          const std::vector<uint32_t>& state_floats, bool writes_every_row,
                          const train::GpuStepLayout& step, const train::GpuRowOptions& options,
                          uint64_t free);

// Takes device memory for a learner's rows, as PlanRows says of what is free. `state_floats` is per
// table as in store::RowLayout.
Result<std::unique_ptr<DeviceRows>> OpenRows(Stream& stream, const RowSpace& space,
                                             const std::vector<uint32_t>& state_floats,
                                             bool writes_every_row,
                                             const train::GpuStepLayout& step,
                                             const train::GpuRowOptions& options,
                                             store::WorkingRows& rows);

}  // namespace tacit::cuda
