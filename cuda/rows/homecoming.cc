#include "cuda/rows/homecoming.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/files/log.h"
#include "cuda/device/device.h"
#include "cuda/rows/row_index.h"
#include "cuda/rows/row_mover.h"

namespace tacit::cuda {
namespace {

// Others need the device's memory too, and rows that find none go home within the commit.
constexpr uint64_t kShareOfFree = 4;

}  // namespace

Result<std::unique_ptr<Homecoming>> Homecoming::Make(
    Device& device, std::vector<std::pair<uint64_t, uint32_t>> floats_from, uint64_t rows,
    uint32_t stride) {
  TACIT_ASSIGN(Stream stream, Stream::Make(device));
  std::unique_ptr<Homecoming> made(
      new Homecoming(device, std::move(floats_from), stride, std::move(stream)));
  const size_t of_piece = store::ArrivalPieceRows(rows, stride);
  for (Piece& piece : made->pieces_) {
    TACIT_ASSIGN(piece.row, HostBuffer<uint32_t>::Make(device, of_piece));
    TACIT_ASSIGN(piece.floats, HostBuffer<float>::Make(device, of_piece * stride));
    TACIT_ASSIGN(Event arrived, Event::Make(device));
    made->arrived_.push_back(std::move(arrived));
  }
  TACIT_ASSIGN(made->row_, Buffer<uint32_t>::Make(device, rows));
  TACIT_ASSIGN(made->sound_host_, HostBuffer<uint32_t>::Make(device, 1));
  TACIT_ASSIGN(made->sound_, Buffer<uint32_t>::Make(device, 1));
  return made;
}

Homecoming::~Homecoming() { static_cast<void>(Finish()); }

Status Homecoming::Finish() {
  const auto arrival = arrival_.lock();
  if (arrival == nullptr) return {};
  Status arrived = arrival->Complete();
  if (arrived) return {};
  // It cannot be mended: their commit has had this outcome as well, and none follows it.
  Error error = std::move(arrived.error());
  error.message +=
      "; so the rows of the commit before did not come home, and neither that commit nor any later "
      "one is made: a restart takes their steps again";
  return Fail(std::move(error));
}

DeviceSpan<uint32_t> Homecoming::List(size_t rows) {
  TACIT_CHECK(rows <= row_.size(), "rows are listed once");
  rows_ = rows;
  numbers_ = true;
  return row_.span().Sub(0, rows);
}

Result<bool> Homecoming::HasRoom() {
  const size_t floats = rows_ * stride_;
  if (floats_.size() >= floats) return true;
  TACIT_ASSIGN(const uint64_t free, device_->FreeBytes());
  // Somewhat more is taken than today's commit asks for.
  const size_t most = (free + floats_.size() * sizeof(float)) / kShareOfFree / sizeof(float);
  if (floats > most) {
    TellNoRoom(floats * sizeof(float), fmt::format("{} bytes are free", free));
    return false;
  }
  floats_ = {};
  auto made = Buffer<float>::Make(*device_, std::min(most, floats + floats / 4));
  if (made) {
    floats_ = std::move(*made);
    return true;
  }
  // Another process may have taken it since.
  if (made.error().code != ErrorCode::kUnavailable) return Fail(std::move(made.error()));
  TellNoRoom(floats * sizeof(float), made.error().message);
  return false;
}

void Homecoming::TellNoRoom(uint64_t wanted, const std::string& why) {
  if (std::exchange(told_no_room_, true)) return;
  spdlog::warn(
      "GPU {}: a commit's rows go home within the commit, and steps wait for them: a second copy "
      "of them takes {} bytes, and {}",
      device_->facts().ordinal, wanted, why);
}

Status Homecoming::Leave(Stream& stream, const RowPlaces& places, store::WorkingRows& to) {
  const DeviceSpan<const uint32_t> row = row_.span().Sub(0, rows_);
  const auto floats = floats_.span().Sub(0, rows_ * stride_);
  TACIT_RETURN_IF_ERROR(
      PackRows(stream, places, {.row = row, .name = row, .stride = stride_, .floats = floats}));
  TACIT_RETURN_IF_ERROR(FindNoNumbers(stream, floats, store::kNumberMost, sound_.span()));
  TACIT_RETURN_IF_ERROR(stream.Download(sound_.span(), sound_host_.span()));
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  numbers_ = sound_host_.span()[0] != 0;
  const auto arrival =
      std::make_shared<store::RowArrival>([this](store::RowDelta* delta) { return Bring(delta); });
  arrival_ = arrival;
  return to.Expect(arrival);
}

// The rows of the piece that begins here.
size_t Homecoming::CountFrom(size_t begin) const {
  return std::min(pieces_[0].row.span().size(), rows_ - begin);
}

Status Homecoming::Start(size_t begin, size_t which) {
  const size_t n = CountFrom(begin);
  Piece& piece = pieces_[which];
  TACIT_RETURN_IF_ERROR(stream_.Download(row_.span().Sub(begin, n), piece.row.span().first(n)));
  TACIT_RETURN_IF_ERROR(stream_.Download(floats_.span().Sub(begin * stride_, n * stride_),
                                         piece.floats.span().first(n * stride_)));
  return stream_.Record(arrived_[which]);
}

// Brings a piece while the one before it is copied.
Status Homecoming::Bring(store::RowDelta* delta) {
  TACIT_RETURN_IF_ERROR(device_->BindThread());
  delta->rows.reserve(rows_);
  delta->end.reserve(rows_);
  delta->floats.reserve(rows_ * stride_);
  TACIT_RETURN_IF_ERROR(Start(0, 0));
  size_t which = 0;
  for (size_t begin = 0; begin < rows_; begin += CountFrom(begin), which = 1 - which) {
    const size_t next = begin + CountFrom(begin);
    if (next < rows_) TACIT_RETURN_IF_ERROR(Start(next, 1 - which));
    TACIT_RETURN_IF_ERROR(AwaitPiece(arrived_[which]));
    Append(begin, pieces_[which], delta);
  }
  return {};
}

void Homecoming::Append(size_t begin, const Piece& piece, store::RowDelta* delta) const {
  const size_t n = CountFrom(begin);
  auto after = floats_from_.begin();
  for (size_t i = 0; i < n; ++i) {
    const uint32_t row = piece.row.span()[i];
    TACIT_CHECK(delta->rows.empty() || delta->rows.back() < row, "rows ascend");
    while (after != floats_from_.end() && after->first <= row) ++after;
    const float* const floats = piece.floats.span().data() + i * stride_;
    delta->rows.push_back(row);
    delta->floats.insert(delta->floats.end(), floats, floats + std::prev(after)->second);
    delta->end.push_back(delta->floats.size());
  }
}

}  // namespace tacit::cuda
