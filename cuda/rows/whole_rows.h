#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/dense/gather.h"
#include "cuda/rows/device_rows.h"
#include "cuda/rows/homecoming.h"
#include "cuda/rows/row_mover.h"
#include "store/rows/working_rows.h"

namespace tacit::cuda {

// All tables of a space in device memory: a row's name is its number. For dense DP-SGD, whose every
// step writes every row, and for tables that fit.
class WholeRows final : public DeviceRows {
 public:
  // Takes the memory and copies every row from `rows`, a piece at a time. `state_floats` is per
  // table as in store::RowLayout. `writes`: what a step writes. Stream and rows must outlive it.
  enum class Writes {
    kEveryRow,
    kSomeRows,  // those that FinishRows marks as changed: they alone go home
  };
  // The device memory, handed out in such pieces, that it takes for a space at most, without the
  // second copy of a commit's rows, which it takes of what is left (Homecoming::HasRoom).
  static uint64_t Bytes(const RowSpace& space, const std::vector<uint32_t>& state_floats,
                        Writes writes, uint64_t piece_bytes);
  static Result<std::unique_ptr<WholeRows>> Make(Stream& stream, const RowSpace& space,
                                                 const std::vector<uint32_t>& state_floats,
                                                 Writes writes, store::WorkingRows& rows);

  View view() const override {
    return {.places = {.tables = tables_.span()},
            .slots = slots_.span(),
            .slot_of = slot_of_.span(),
            .has_fours = has_fours_,
            .changed = changed_.span()};
  }
  bool has_names() const override { return false; }
  bool may_begin_ahead() const override { return true; }
  uint64_t names() const override { return rows_count_; }
  Result<DeviceSpan<const uint32_t>> Begin(std::span<const uint64_t>, Purpose) override {
    return DeviceSpan<const uint32_t>();
  }
  Result<DeviceSpan<const uint32_t>> NameExtra(std::span<const uint64_t>) override {
    return DeviceSpan<const uint32_t>();
  }
  Status End(std::span<const uint32_t>) override { return {}; }
  // Copies the rows that were written, and marks them as changed. Where a step writes but some,
  // they come home while the next steps run, if the device has memory for them.
  Status Settle() override {
    return writes_ == Writes::kEveryRow ? SendAllHome() : SendChangedHome();
  }
  bool settled_numbers() const override { return home_ == nullptr || home_->numbers(); }

 private:
  WholeRows(Stream& stream, store::WorkingRows& rows, uint64_t rows_count, Writes writes,
            RowMover mover)
      : stream_(&stream),
        rows_(&rows),
        rows_count_(rows_count),
        writes_(writes),
        mover_(std::move(mover)) {}
  Status SendAllHome();
  Status SendChangedHome();
  template <class Each>
  Status ForFlags(const Each& each);
  Status SendNow(DeviceSpan<const uint32_t> list);
  template <class Move>
  static Status ForPieces(Stream& stream, const std::vector<DeviceTable>& tables,
                          store::WorkingRows& rows, const Move& move);

  Stream* stream_;
  store::WorkingRows* rows_;
  uint64_t rows_count_;
  Writes writes_;
  RowMover mover_;
  bool has_fours_ = true;
  // Memory that copies write on the host stands before buffers, whose ends wait.
  HostBuffer<uint32_t> count_host_;
  std::vector<uint32_t> home_row_;
  std::vector<DeviceTable> host_tables_;
  std::vector<Buffer<float>> memory_;  // embeddings and state, by turns
  Buffer<DeviceTable> tables_;
  Buffer<DeviceSlot> slots_;
  Buffer<uint32_t> slot_of_;
  // These are taken for steps that write some rows.
  Buffer<uint8_t> changed_;  // per row
  Buffer<uint32_t> work_, rank_, count_;
  std::unique_ptr<Homecoming> home_;
};

}  // namespace tacit::cuda
