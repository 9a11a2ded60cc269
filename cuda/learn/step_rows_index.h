#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/finish.h"
#include "cuda/kernels/noise.h"
#include "cuda/kernels/row_sums.h"
#include "mechanism/recipe.h"
#include "stream/steps/participation.h"

namespace tacit::cuda {

// The rows of a step on the device: which it touches, which it writes. Its memory grows to the
// largest step; beside it lies one number for each name (row_places.h). The calls of a step come in
// order, and put work on the stream; what they are given must live until the stream has run.
class StepRowsIndex {
 public:
  // REQUIRES a space of fewer than 2^32 - 1 rows.
  static Result<StepRowsIndex> Make(Stream& stream, uint64_t space_rows);

  // Makes room for names below `names`, also within a step.
  Status Cover(uint64_t names);
  // Uploads the step's entries and finds the rows that they touch. `names` has each entry's row's
  // name, and is empty where rows are named by their numbers.
  Status Begin(const stream::StepBatch& step, DeviceSpan<const uint32_t> names);
  // Decides which rows are written: touched ones by the recipe, and those of `extra` that are not
  // touched, with their names as above. `key` is the step's. For recipes of every row: all touched
  // ones.
  Status Select(const mechanism::Recipe& recipe, DeviceSpan<const NoiseKey> key,
                std::span<const uint64_t> extra, DeviceSpan<const uint32_t> extra_names);
  // Makes the index ready for the next step.
  Status End();

  size_t entries() const { return entries_; }
  uint32_t slots() const { return slots_; }
  // The step's rows for kernels, without slots, part and gradient.
  StepRows rows() const;
  DeviceSpan<const uint32_t> names() const { return names_; }
  DeviceSpan<const uint32_t> touched_count() const { return counts_.span().Sub(0, 1); }
  // Rows written with sums, and all that are written.
  DeviceSpan<const uint32_t> kept_count() const { return counts_.span().Sub(1, 1); }
  DeviceSpan<const uint32_t> written_count() const { return counts_.span().Sub(2, 1); }
  // Those of the step, without a place for what has changed.
  WrittenRows written() const {
    const size_t most = entries_ + extra_size_;
    return {.row = written_.span().Sub(0, most),
            .name = written_name_.span().Sub(0, most),
            .with_sums = kept_count(),
            .all = written_count()};
  }
  DeviceSpan<const uint32_t> owner() const { return owner_.span(); }
  // Each entry that owns its row has the row's place here.
  DeviceSpan<const uint32_t> owner_rank() const { return owner_rank_.span().Sub(0, entries_); }

 private:
  explicit StepRowsIndex(Stream& stream) : stream_(&stream) {}
  Status TakeFor(const stream::StepBatch& step);
  Status SelectThreshold(const mechanism::Recipe& recipe, DeviceSpan<const NoiseKey> key);
  Status UploadRows(std::span<const uint64_t> rows, std::vector<uint32_t>* staging,
                    Buffer<uint32_t>* to);
  StepEntries Entries() const;
  template <class T>
  static DeviceSpan<T> First(const Buffer<T>& buffer, size_t n) {
    return buffer.span().Sub(0, n);
  }

  Stream* stream_;
  uint64_t space_rows_ = 0;
  DeviceSpan<const uint32_t> names_;  // of the step's entries
  size_t entries_ = 0, cells_ = 0, examples_ = 0, units_ = 0, extra_size_ = 0;
  size_t entries_of_unit_max_ = 0;
  uint32_t slots_ = 0;
  std::vector<uint32_t> row_staging_, end_staging_, extra_staging_, vocabulary_staging_;
  std::vector<int64_t> steps_staging_;

  Buffer<uint32_t> owner_;                                               // per name
  Buffer<uint32_t> cell_end_, unit_of_, example_end_;                    // per cell, example, unit
  Buffer<uint32_t> row_, cell_, next_, place_, owner_rank_, kept_rank_;  // per entry
  Buffer<uint32_t> touched_, touched_name_;
  Buffer<uint8_t> first_, owns_, kept_, inside_entry_, inside_place_;
  Buffer<int64_t> contributions_, steps_;
  Buffer<uint32_t> active_, work_, counts_;
  Buffer<uint32_t> extra_, extra_rank_, written_, written_name_, vocabulary_;
  Buffer<uint8_t> untouched_;
};

}  // namespace tacit::cuda
