#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/noise.h"
#include "cuda/kernels/row_sums.h"
#include "mechanism/recipe.h"
#include "stream/steps/participation.h"

namespace tacit::cuda {

// A buffer that grows where a step wants more than the largest one before it.
template <class T>
Status Reserve(Device& device, size_t count, Buffer<T>* buffer) {
  if (buffer->size() >= count) return {};
  TACIT_ASSIGN(*buffer, Buffer<T>::Make(device, count));
  return {};
}

// The rows of a step on the device: which it touches, which it writes. Its memory grows to the
// largest step; beside it lies one number for each row of the space. The calls of a step come in
// order, and put work on the stream; what they are given must live until the stream has run.
class StepRowsIndex {
 public:
  // REQUIRES a space of fewer than 2^32 - 1 rows.
  static Result<StepRowsIndex> Make(Stream& stream, uint64_t space_rows);

  // Uploads the step's entries and finds the rows that they touch.
  Status Begin(const stream::StepBatch& step);
  // Decides which rows are written: touched ones by the recipe, and those of `extra` that are not
  // touched. `key` is the step's. For recipes of every row: all touched ones.
  Status Select(const mechanism::Recipe& recipe, DeviceSpan<const NoiseKey> key,
                std::span<const uint64_t> extra);
  // Makes the index ready for the next step.
  Status End();

  size_t entries() const { return entries_; }
  uint32_t slots() const { return slots_; }
  // The step's rows for kernels, without slots, part and gradient.
  StepRows rows() const;
  DeviceSpan<const uint32_t> touched_count() const { return counts_.span().Sub(0, 1); }
  // Rows written with sums, and all that are written.
  DeviceSpan<const uint32_t> kept_count() const { return counts_.span().Sub(1, 1); }
  DeviceSpan<const uint32_t> written_count() const { return counts_.span().Sub(2, 1); }
  DeviceSpan<const uint32_t> written() const {
    return written_.span().Sub(0, entries_ + extra_size_);
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
  size_t entries_ = 0, cells_ = 0, examples_ = 0, units_ = 0, extra_size_ = 0;
  size_t entries_of_unit_max_ = 0;
  uint32_t slots_ = 0;
  std::vector<uint32_t> row_staging_, end_staging_, extra_staging_, vocabulary_staging_;
  std::vector<int64_t> steps_staging_;

  Buffer<uint32_t> owner_;                             // per row of the space
  Buffer<uint32_t> cell_end_, unit_of_, example_end_;  // per cell, example, unit
  Buffer<uint32_t> row_, cell_, next_, place_, owner_rank_, touched_, kept_rank_;  // per entry
  Buffer<uint8_t> first_, owns_, kept_, inside_entry_, inside_place_;
  Buffer<int64_t> contributions_, steps_;
  Buffer<uint32_t> active_, work_, counts_;
  Buffer<uint32_t> extra_, extra_rank_, written_, vocabulary_;
  Buffer<uint8_t> untouched_;
};

}  // namespace tacit::cuda
