#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/finish.h"
#include "cuda/kernels/gather.h"
#include "store/working_rows.h"

namespace tacit::cuda {

// All tables of a space in device memory: a row's slot is its number. For dense DP-SGD, whose every
// step writes every row, and for tables that fit.
class WholeRows {
 public:
  // Takes the memory and copies every row from `rows`, a piece at a time. `state_floats` is per
  // table as in store::RowLayout.
  static Result<WholeRows> Make(Stream& stream, const RowSpace& space,
                                const std::vector<uint32_t>& state_floats,
                                store::WorkingRows& rows);

  // Copies every row to `rows` and marks all as changed.
  Status Settle(Stream& stream, store::WorkingRows& rows) const;

  DeviceSpan<const DeviceTable> tables() const { return tables_.span(); }
  DeviceSpan<const DeviceSlot> slots() const { return slots_.span(); }
  // Per column of the model's input its slot: one table a slot, side by side.
  DeviceSpan<const uint32_t> slot_of() const { return slot_of_.span(); }

 private:
  WholeRows() = default;
  template <class Move>
  static Status ForPieces(Stream& stream, const std::vector<DeviceTable>& tables,
                          store::WorkingRows& rows, const Move& move);

  std::vector<DeviceTable> host_tables_;
  std::vector<Buffer<float>> memory_;  // embeddings and state, by turns
  Buffer<DeviceTable> tables_;
  Buffer<DeviceSlot> slots_;
  Buffer<uint32_t> slot_of_;
};

}  // namespace tacit::cuda
