#include "cuda/rows/row_mover.h"

#include <algorithm>

#include "base/check.h"
#include "cuda/device/device.h"
#include "cuda/rows/row_index.h"
#include "store/rows/row_arrival.h"

namespace tacit::cuda {

Status AwaitFetched(Stream& stream, const Event& fetched) { return stream.Wait(fetched); }

Status AwaitPiece(Event& arrived) { return arrived.Synchronize(); }

uint32_t RowMover::FloatsOf(uint64_t row) const {
  const auto after =
      std::ranges::upper_bound(floats_from_, row, {}, &std::pair<uint64_t, uint32_t>::first);
  TACIT_CHECK(after != floats_from_.begin(), "a row of no table");
  return std::prev(after)->second;
}

Status RowMover::Take(Device& device, uint64_t rows, Staging* staging) const {
  TACIT_RETURN_IF_ERROR(Reserve(device, rows * stride_, &staging->floats));
  TACIT_RETURN_IF_ERROR(Reserve(device, rows, &staging->row_device));
  TACIT_RETURN_IF_ERROR(Reserve(device, rows, &staging->name_device));
  return Reserve(device, rows * stride_, &staging->floats_device);
}

Status RowMover::TakeWayHome(Device& device, uint64_t rows) {
  return Take(device, store::ArrivalPieceRows(rows, stride_), &out_);
}

Status RowMover::TakeWayIn(Device& device, uint64_t rows) {
  return rows == 0 ? Status() : Take(device, store::ArrivalPieceRows(rows, stride_), &in_);
}

void RowMover::PlanWayHome(uint64_t rows, uint32_t stride, MemoryNeed* need) {
  const uint64_t piece = store::ArrivalPieceRows(rows, stride);
  need->Add<uint32_t>(piece).Add<uint32_t>(piece).Add<float>(piece * stride);
}

Status RowMover::Stage(Stream& stream, std::span<const RowName> rows, Staging* staging) {
  const size_t n = rows.size();
  staging->row.clear();
  staging->name.clear();
  ids_.clear();
  for (const RowName& one : rows) {
    TACIT_CHECK(ids_.empty() || ids_.back() < one.row, "rows ascend");
    staging->row.push_back(one.row);
    staging->name.push_back(one.name);
    ids_.push_back(one.row);
  }
  at_.resize(n);
  TACIT_RETURN_IF_ERROR(
      stream.Upload<uint32_t>(staging->row, staging->row_device.span().Sub(0, n)));
  return stream.Upload<uint32_t>(staging->name, staging->name_device.span().Sub(0, n));
}

Status RowMover::Fetch(Stream& feed, const RowPlaces& places, std::span<const RowName> rows,
                       store::WorkingRows& from) {
  const size_t most = store::ArrivalPieceRows(rows.size(), stride_);
  TACIT_RETURN_IF_ERROR(TakeWayIn(feed.device(), rows.size()));
  for (size_t begin = 0; begin < rows.size(); begin += most) {
    // The staging is the piece's before.
    if (begin > 0) TACIT_RETURN_IF_ERROR(feed.Synchronize());
    const auto piece = rows.subspan(begin, std::min(most, rows.size() - begin));
    TACIT_RETURN_IF_ERROR(FetchPiece(feed, places, piece, from));
  }
  return {};
}

Status RowMover::FetchPiece(Stream& feed, const RowPlaces& places, std::span<const RowName> rows,
                            store::WorkingRows& from) {
  const size_t n = rows.size();
  TACIT_RETURN_IF_ERROR(Stage(feed, rows, &in_));
  TACIT_RETURN_IF_ERROR(from.Gather(ids_, at_));
  const std::span<float> floats = in_.floats.span().first(n * stride_);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t own = FloatsOf(ids_[i]);
    std::copy_n(at_[i], own, floats.data() + i * stride_);
    std::fill_n(floats.data() + i * stride_ + own, stride_ - own, 0.0f);
  }
  const auto on_device = in_.floats_device.span().Sub(0, n * stride_);
  TACIT_RETURN_IF_ERROR(feed.Upload<float>(floats, on_device));
  return UnpackRows(feed, places,
                    {.row = in_.row_device.span().Sub(0, n),
                     .name = in_.name_device.span().Sub(0, n),
                     .stride = stride_,
                     .floats = on_device});
}

Status RowMover::SendPiece(Stream& stream, const RowPlaces& places, std::span<const RowName> rows,
                           store::WorkingRows& to) {
  const size_t n = rows.size();
  TACIT_RETURN_IF_ERROR(Stage(stream, rows, &out_));
  const auto on_device = out_.floats_device.span().Sub(0, n * stride_);
  TACIT_RETURN_IF_ERROR(PackRows(stream, places,
                                 {.row = out_.row_device.span().Sub(0, n),
                                  .name = out_.name_device.span().Sub(0, n),
                                  .stride = stride_,
                                  .floats = on_device}));
  const std::span<float> floats = out_.floats.span().first(n * stride_);
  TACIT_RETURN_IF_ERROR(stream.Download(on_device, floats));
  TACIT_RETURN_IF_ERROR(to.Gather(ids_, at_));
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  auto after = floats_from_.begin();
  for (size_t i = 0; i < n; ++i) {
    while (after != floats_from_.end() && after->first <= ids_[i]) ++after;
    std::copy_n(floats.data() + i * stride_, std::prev(after)->second, at_[i]);
  }
  to.MarkChanged(ids_);
  return {};
}

Status RowMover::SendHome(Stream& stream, const RowPlaces& places, std::span<const RowName> rows,
                          store::WorkingRows& to) {
  const size_t most = store::ArrivalPieceRows(rows.size(), stride_);
  TACIT_CHECK(rows.empty() || out_.row_device.size() >= most, "its memory is taken before");
  for (size_t begin = 0; begin < rows.size(); begin += most)
    TACIT_RETURN_IF_ERROR(
        SendPiece(stream, places, rows.subspan(begin, std::min(most, rows.size() - begin)), to));
  return {};
}

}  // namespace tacit::cuda
