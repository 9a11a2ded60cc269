#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cuda/device/buffer.h"
#include "cuda/device/stream.h"
#include "cuda/kernels/parts/row_places.h"
#include "store/rows/row_arrival.h"
#include "store/rows/working_rows.h"

namespace tacit::cuda {

// Rows that go home beside the steps. They are copied side by side on the device, as they are after
// one step; the first user brings them from there, on a stream of its own, while the next steps
// run. Settle's thread calls all but what it hands to WorkingRows, which any thread may call.
class Homecoming {
 public:
  // `rows` is the number of all, `stride` the floats of the longest, and `floats_from` has each
  // table's by its first row. Takes store::ArrivalPinnedBytes of pinned memory, less a number
  // and a piece, and the list's on the device.
  static Result<std::unique_ptr<Homecoming>> Make(
      Device& device, std::vector<std::pair<uint64_t, uint32_t>> floats_from, uint64_t rows,
      uint32_t stride);
  // Brings what is on its way.
  ~Homecoming();

  // Waits until the rows that left last are home, and brings them if nobody has begun to. Fails if
  // they did not come (brought by any thread): they are lost, and so is their commit.
  Status Finish();
  // The list of the next rows, which are written there ascending. REQUIRES Finish.
  DeviceSpan<uint32_t> List(size_t rows);
  // Tells whether the device has memory for the list's rows, and takes it. Where it has none, the
  // rows can still go home within the commit; the log says so once.
  Result<bool> HasRoom();
  // Copies the list's rows, named by their numbers, and has `to` expect them. Waits for `stream`.
  // Afterwards the rows on the device may change.
  Status Leave(Stream& stream, const RowPlaces& places, store::WorkingRows& to);
  // Tells whether all floats of the rows that left last are numbers that a working model has.
  bool numbers() const { return numbers_; }

 private:
  // One of two turns, in pinned memory.
  struct Piece {
    HostBuffer<uint32_t> row;
    HostBuffer<float> floats;
  };
  Homecoming(Device& device, std::vector<std::pair<uint64_t, uint32_t>> floats_from,
             uint32_t stride, Stream stream)
      : device_(&device),
        floats_from_(std::move(floats_from)),
        stride_(stride),
        stream_(std::move(stream)) {}
  Status Bring(store::RowDelta* delta);
  Status Start(size_t begin, size_t which);
  void Append(size_t begin, const Piece& piece, store::RowDelta* delta) const;
  size_t CountFrom(size_t begin) const;
  void TellNoRoom(uint64_t wanted, const std::string& why);

  Device* const device_;
  const std::vector<std::pair<uint64_t, uint32_t>> floats_from_;
  const uint32_t stride_;
  size_t rows_ = 0;
  bool numbers_ = true;
  bool told_no_room_ = false;
  std::weak_ptr<store::RowArrival> arrival_;
  // Memory that copies write on the host stands before the stream, whose end waits.
  HostBuffer<uint32_t> sound_host_;
  Piece pieces_[2];
  Buffer<uint32_t> row_, sound_;
  Buffer<float> floats_;
  std::vector<Event> arrived_;  // per piece
  Stream stream_;
};

}  // namespace tacit::cuda
