#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/row_space.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/gather.h"
#include "cuda/rows/device_rows.h"
#include "store/working_rows.h"

namespace tacit::cuda {

// All tables of a space in device memory: a row's name is its number. For dense DP-SGD, whose every
// step writes every row, and for tables that fit.
class WholeRows final : public DeviceRows {
 public:
  // The bytes that it takes for a space.
  static uint64_t Bytes(const RowSpace& space, const std::vector<uint32_t>& state_floats);
  // Takes the memory and copies every row from `rows`, a piece at a time. `state_floats` is per
  // table as in store::RowLayout. Stream and rows must outlive it.
  static Result<std::unique_ptr<WholeRows>> Make(Stream& stream, const RowSpace& space,
                                                 const std::vector<uint32_t>& state_floats,
                                                 store::WorkingRows& rows);

  View view() const override {
    return {.places = {.tables = tables_.span()},
            .slots = slots_.span(),
            .slot_of = slot_of_.span(),
            .has_fours = has_fours_};
  }
  uint64_t names() const override { return rows_count_; }
  Result<DeviceSpan<const uint32_t>> Begin(std::span<const uint64_t>, Purpose) override {
    return DeviceSpan<const uint32_t>();
  }
  Result<DeviceSpan<const uint32_t>> NameExtra(std::span<const uint64_t>) override {
    return DeviceSpan<const uint32_t>();
  }
  Status End(std::span<const uint32_t>) override { return {}; }
  // Copies every row and marks all as changed.
  Status Settle() override;

 private:
  WholeRows(Stream& stream, store::WorkingRows& rows, uint64_t rows_count)
      : stream_(&stream), rows_(&rows), rows_count_(rows_count) {}
  template <class Move>
  static Status ForPieces(Stream& stream, const std::vector<DeviceTable>& tables,
                          store::WorkingRows& rows, const Move& move);

  Stream* stream_;
  store::WorkingRows* rows_;
  uint64_t rows_count_;
  bool has_fours_ = true;
  std::vector<DeviceTable> host_tables_;
  std::vector<Buffer<float>> memory_;  // embeddings and state, by turns
  Buffer<DeviceTable> tables_;
  Buffer<DeviceSlot> slots_;
  Buffer<uint32_t> slot_of_;
};

}  // namespace tacit::cuda
