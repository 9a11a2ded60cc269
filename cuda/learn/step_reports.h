#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "base/row_space.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/learn/engine_rows.h"
#include "cuda/learn/step_memory.h"
#include "cuda/learn/step_rows_index.h"
#include "train/engines/click_engine.h"

namespace tacit::cuda {

// The way home of what a click model's step reports. A step asks behind its own work, and reads
// what has come while the next one's passes may be on the stream already. Losses and rows lie in
// the host's part of the step's memory until the next step begins.
class StepReports {
 public:
  // `stream`, `space` and `memory` must outlive it.
  static Result<StepReports> Make(Stream& stream, const RowSpace& space, StepMemory& memory);

  // Puts copies on the stream: of losses, of counts, and of about as many written rows as the last
  // step had. `every`: the step writes every row, and lists none.
  Status Ask(const StepRowsIndex& index, DeviceSpan<const uint32_t> clipped, size_t examples,
             bool every);
  // The one wait of a step, if no more rows were written than were asked for.
  Status Read(train::StepReport* report);
  // The rows that the step wrote, as of Read; none for one that wrote every row.
  std::span<const uint32_t> written() const;
  // Both for a step that changes nothing: its losses, and how many rows it touches.
  Status Preview(const StepRowsIndex& index, size_t examples, train::StepReport* report);

 private:
  StepReports(Stream& stream, const RowSpace& space, StepMemory& memory)
      : stream_(&stream), space_(&space), memory_(&memory), dims_(space) {}
  Status AskForLosses(size_t examples);
  void ReadLosses(train::StepReport* report) const;

  Stream* stream_;
  const RowSpace* space_;
  StepMemory* memory_;
  DimsOfRows dims_;
  HostBuffer<uint32_t> counts_;  // of rows touched and written, and of units clipped
  std::optional<Event> asked_;
  bool every_ = false;
  size_t examples_ = 0;
  DeviceSpan<const uint32_t> row_;  // the list of those written: the index may have the next step's
  size_t likely_written_ = 0, written_ = 0;
};

}  // namespace tacit::cuda
