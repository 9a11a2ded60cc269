#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/buffer_taker.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/row_places.h"
#include "store/rows/working_rows.h"

namespace tacit::cuda {

// Makes work that is put on `stream` from here on see the rows that were on their way when
// `fetched` was recorded.
Status AwaitFetched(Stream& stream, const Event& fetched);

// Waits until rows on their way home are there, whose copies came before the event's last Record.
Status AwaitPiece(Event& arrived);

struct RowName {
  uint32_t row = 0, name = 0;
};

// Copies rows between the host's WorkingRows and their places on the device, through pinned memory.
class RowMover {
 public:
  // `stride` is the floats of the longest row, and `floats` has each table's.
  RowMover(std::vector<std::pair<uint64_t, uint32_t>> floats_from, uint32_t stride)
      : floats_from_(std::move(floats_from)), stride_(stride) {}

  // Takes the memory of SendHome's pieces. REQUIRES that no call of it has more rows.
  Status TakeWayHome(Device& device, uint64_t rows);
  // Takes that of Fetch for calls of `rows`; larger ones take more.
  Status TakeWayIn(Device& device, uint64_t rows);
  // These add up the device memory of each.
  static void PlanWayHome(uint64_t rows, uint32_t stride, MemoryNeed* need);
  static void PlanWayIn(uint64_t rows, uint32_t stride, MemoryNeed* need) {
    if (rows > 0) PlanWayHome(rows, stride, need);
  }
  // Copies rows to their places, on `feed`, a piece at a time, and does not wait for the last one's
  // copy. REQUIRES ascending rows, and that the copy of the call before has run.
  Status Fetch(Stream& feed, const RowPlaces& places, std::span<const RowName> rows,
               store::WorkingRows& from);
  // Copies rows home and marks them as changed there, a piece at a time; they are there when it
  // returns. Takes no memory of the device. REQUIRES ascending rows, and TakeWayHome.
  Status SendHome(Stream& stream, const RowPlaces& places, std::span<const RowName> rows,
                  store::WorkingRows& to);

 private:
  // One way's staging.
  struct Staging {
    std::vector<uint32_t> row, name;
    HostBuffer<float> floats;
    Buffer<uint32_t> row_device, name_device;
    Buffer<float> floats_device;
  };
  Status Take(Device& device, uint64_t rows, Staging* staging) const;
  Status Stage(Stream& stream, std::span<const RowName> rows, Staging* staging);
  Status FetchPiece(Stream& feed, const RowPlaces& places, std::span<const RowName> rows,
                    store::WorkingRows& from);
  Status SendPiece(Stream& stream, const RowPlaces& places, std::span<const RowName> rows,
                   store::WorkingRows& to);
  uint32_t FloatsOf(uint64_t row) const;

  std::vector<std::pair<uint64_t, uint32_t>> floats_from_;  // by a table's first row
  uint32_t stride_;
  std::vector<uint64_t> ids_;
  std::vector<float*> at_;
  Staging in_, out_;
};

}  // namespace tacit::cuda
