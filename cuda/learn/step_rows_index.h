#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/noise/noise.h"
#include "cuda/kernels/rows/finish.h"
#include "cuda/kernels/rows/row_sums.h"
#include "cuda/learn/step_staging.h"
#include "mechanism/recipe.h"

namespace tacit::cuda {

// The rows of a step on the device: which it touches, which it writes. It has memory for a planned
// step, which grows to the largest; beside it lies one number for each name (row_places.h). The
// calls of a step come in the order in which they stand here. Some make it ready, take memory and
// copy from the host; what they are given must live until the stream has run. The others put
// kernels on a stream, and nothing else, and may be called again with the same effect.
class StepRowsIndex {
 public:
  // Takes memory for a planned step. REQUIRES a space of fewer than 2^32 - 1 rows.
  static Result<StepRowsIndex> Make(Stream& stream, uint64_t space_rows,
                                    const train::GpuStepLayout& planned = {});
  // Takes what a planned step needs in addition where rows have names that are not their numbers.
  Status TakeNames(const train::GpuStepLayout& planned) {
    return TakeNames(planned, BufferTaker(stream_->device()));
  }
  // These add up the memory that Make and TakeNames take.
  static Status Plan(const train::GpuStepLayout& planned, MemoryNeed* need);
  static Status PlanNames(const train::GpuStepLayout& planned, MemoryNeed* need);

  // Makes room for names below `names`, also within a step.
  Status Cover(uint64_t names);
  // Makes it ready for a step. `names` has the name of each real entry's row, and is empty where
  // rows are named by their numbers.
  Status Begin(const StagedStep& step, DeviceSpan<const uint32_t> names);
  // Finds the rows that the step touches.
  Status FindTouched(Stream& stream);
  // Makes it ready for a selection. `extra` are rows that are written where they are not touched,
  // with their names as above; their number is filled up to a multiple of `round`.
  Status Prepare(const mechanism::Recipe& recipe, std::span<const uint64_t> extra,
                 DeviceSpan<const uint32_t> extra_names, size_t round = 1);
  // Decides which touched rows are written, by the recipe; for recipes of every row all of them.
  // `key` is the step's.
  Status Select(Stream& stream, const mechanism::Recipe& recipe, DeviceSpan<const NoiseKey> key);
  // Lists the rows that are written.
  Status ListWritten(Stream& stream);
  // Makes the index ready for the next step.
  Status End(Stream& stream);

  // Those that are nobody's included.
  size_t entries() const { return entries_; }
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
  explicit StepRowsIndex(Stream* stream) : stream_(stream) {}
  Status TakeEntries(uint64_t entries, uint64_t units, BufferTaker taker);
  Status TakeExtra(uint64_t extras, BufferTaker taker);
  Status TakePlanned(const train::GpuStepLayout& planned, BufferTaker taker);
  Status TakeNames(const train::GpuStepLayout& planned, BufferTaker taker);
  Status TakeFor(const StagedStep& step);
  Status UploadVocabulary(std::span<const uint64_t> rows);
  Status UploadSteps(const mechanism::Recipe& recipe);
  Status UploadExtra(std::span<const uint64_t> rows, size_t places);
  Status NamesBehind(DeviceSpan<const uint32_t> names, size_t places, Buffer<uint32_t>* to);
  template <class T>
  static DeviceSpan<T> First(const Buffer<T>& buffer, size_t n) {
    return buffer.span().Sub(0, n);
  }

  Stream* stream_ = nullptr;
  uint64_t space_rows_ = 0;
  DeviceSpan<const uint32_t> names_;  // of the step's entries
  StepEntries of_;
  size_t entries_ = 0, extra_size_ = 0, inside_ = 0, vocabulary_size_ = 0, steps_size_ = 0;
  uint32_t entries_of_unit_max_ = 0;
  DeviceSpan<const uint32_t> extra_name_;
  // Numbers that are on the device stay there while they are right.
  std::vector<uint32_t> vocabulary_there_;
  std::vector<int64_t> steps_there_;
  std::pair<double, double> steps_cut_;  // clip and step of the grid
  // Each step's are pinned: a copy out of other memory may wait for the stream.
  HostBuffer<uint32_t> extra_host_;

  Buffer<uint32_t> owner_;                                                // per name
  Buffer<uint32_t> name_, cell_, next_, place_, owner_rank_, kept_rank_;  // per entry
  Buffer<uint32_t> touched_, touched_name_;
  Buffer<uint8_t> first_, owns_, kept_, inside_entry_, inside_place_;
  Buffer<int64_t> contributions_, steps_;
  Buffer<uint32_t> active_, work_, counts_;
  Buffer<uint32_t> extra_, extra_name_filled_, extra_rank_, written_, written_name_, vocabulary_;
  Buffer<uint8_t> untouched_;
};

}  // namespace tacit::cuda
