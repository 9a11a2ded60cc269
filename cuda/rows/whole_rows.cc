#include "cuda/rows/whole_rows.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/check.h"
#include "cuda/device/device.h"
#include "cuda/kernels/rows/ranks.h"
#include "store/rows/row_arrival.h"

namespace tacit::cuda {
namespace {

constexpr size_t kPieceFloats = size_t{1} << 20;
constexpr uint64_t kFlagsAtOnce = uint64_t{1} << 22;

// Some rows of a table on the host: embeddings side by side, and their state.
struct Piece {
  uint64_t begin = 0, rows = 0;  // in the table
  std::vector<uint64_t> ids;
  std::vector<float*> at;
  std::vector<float> embedding, state;
};

}  // namespace

// Calls move(table, piece) for all rows, in pieces; piece.at are the host's rows.
template <class Move>
Status WholeRows::ForPieces(Stream& stream, const std::vector<DeviceTable>& tables,
                            store::WorkingRows& rows, const Move& move) {
  Piece piece;
  for (const DeviceTable& table : tables) {
    const uint64_t most = std::max<uint64_t>(1, kPieceFloats / (table.dim + table.state_floats));
    for (piece.begin = 0; piece.begin < table.rows; piece.begin += piece.rows) {
      piece.rows = std::min(most, table.rows - piece.begin);
      piece.ids.resize(piece.rows);
      std::iota(piece.ids.begin(), piece.ids.end(), table.first + piece.begin);
      piece.at.resize(piece.rows);
      piece.embedding.resize(piece.rows * table.dim);
      piece.state.resize(piece.rows * table.state_floats);
      TACIT_RETURN_IF_ERROR(rows.Gather(piece.ids, piece.at));
      if (Status moved = move(table, piece); !moved) {
        // Copies under way still use the piece.
        static_cast<void>(stream.Synchronize());
        return moved;
      }
    }
  }
  return {};
}

uint64_t WholeRows::Bytes(const RowSpace& space, const std::vector<uint32_t>& state_floats,
                          Writes writes, uint64_t piece_bytes) {
  MemoryNeed need(piece_bytes);
  uint64_t columns = 0;
  uint32_t stride = 1;
  for (size_t t = 0; t < state_floats.size(); ++t) {
    const RowSpace::Table& table = space.tables()[t];
    need.Add<float>(table.rows * table.dim).Add<float>(table.rows * state_floats[t]);
    columns += table.dim;
    stride = std::max(stride, table.dim + state_floats[t]);
  }
  const size_t tables = state_floats.size();
  need.Add<DeviceTable>(tables).Add<DeviceSlot>(tables).Add<uint32_t>(columns);
  if (writes == Writes::kEveryRow) return need.bytes();
  // Flags, what counts them, their ranks, and the list of those that are set; two numbers.
  const uint64_t rows = space.rows(), at_once = std::min(rows, kFlagsAtOnce);
  need.Add<uint8_t>(rows).Add<uint32_t>(RankWork(at_once)).Add<uint32_t>(at_once);
  need.Add<uint32_t>(rows).Add<uint32_t>(1).Add<uint32_t>(1);
  RowMover::PlanWayHome(rows, stride, &need);
  return need.bytes();
}

Result<std::unique_ptr<WholeRows>> WholeRows::Make(Stream& stream, const RowSpace& space,
                                                   const std::vector<uint32_t>& state_floats,
                                                   Writes writes, store::WorkingRows& rows) {
  TACIT_CHECK(state_floats.size() == space.tables().size());
  std::vector<std::pair<uint64_t, uint32_t>> floats_from;
  uint32_t stride = 1;
  for (size_t t = 0; t < state_floats.size(); ++t) {
    const RowSpace::Table& table = space.tables()[t];
    floats_from.emplace_back(table.first, table.dim + state_floats[t]);
    stride = std::max(stride, table.dim + state_floats[t]);
  }
  // They outlive the buffers of `whole`, whose end waits for copies out of them.
  std::vector<DeviceSlot> slots;
  std::vector<uint32_t> slot_of;
  std::unique_ptr<WholeRows> made(
      new WholeRows(stream, rows, space.rows(), writes, RowMover(floats_from, stride)));
  WholeRows& whole = *made;
  for (const RowSpace::Table& table : space.tables()) {
    const size_t number = slots.size();
    const uint32_t state = state_floats[number];
    TACIT_ASSIGN(auto embeddings, Buffer<float>::Make(stream.device(), table.rows * table.dim));
    TACIT_ASSIGN(auto states, Buffer<float>::Make(stream.device(), table.rows * state));
    whole.host_tables_.push_back({.embedding = embeddings.span().data,
                                  .state = states.span().data,
                                  .first = table.first,
                                  .rows = table.rows,
                                  .dim = table.dim,
                                  .state_floats = state,
                                  .first_name = table.first});
    slots.push_back({.rows = embeddings.span().data,
                     .stride = table.dim,
                     .first = table.first,
                     .dim = table.dim,
                     .column = static_cast<uint32_t>(slot_of.size())});
    slot_of.insert(slot_of.end(), table.dim, static_cast<uint32_t>(number));
    whole.has_fours_ &= table.dim % 4 == 0;
    whole.memory_.push_back(std::move(embeddings));
    whole.memory_.push_back(std::move(states));
  }
  TACIT_ASSIGN(whole.tables_, Buffer<DeviceTable>::Make(stream.device(), slots.size()));
  TACIT_ASSIGN(whole.slots_, Buffer<DeviceSlot>::Make(stream.device(), slots.size()));
  TACIT_ASSIGN(whole.slot_of_, Buffer<uint32_t>::Make(stream.device(), slot_of.size()));
  TACIT_RETURN_IF_ERROR(stream.Upload<DeviceTable>(whole.host_tables_, whole.tables_.span()));
  TACIT_RETURN_IF_ERROR(stream.Upload<DeviceSlot>(slots, whole.slots_.span()));
  TACIT_RETURN_IF_ERROR(stream.Upload<uint32_t>(slot_of, whole.slot_of_.span()));
  TACIT_RETURN_IF_ERROR(ForPieces(
      stream, whole.host_tables_, rows, [&](const DeviceTable& table, Piece& piece) -> Status {
        for (size_t i = 0; i < piece.rows; ++i) {
          std::copy_n(piece.at[i], table.dim, piece.embedding.data() + i * table.dim);
          std::copy_n(piece.at[i] + table.dim, table.state_floats,
                      piece.state.data() + i * table.state_floats);
        }
        TACIT_RETURN_IF_ERROR(stream.Upload<float>(
            piece.embedding, {table.embedding + piece.begin * table.dim, piece.rows * table.dim}));
        TACIT_RETURN_IF_ERROR(stream.Upload<float>(
            piece.state,
            {table.state + piece.begin * table.state_floats, piece.rows * table.state_floats}));
        return stream.Synchronize();
      }));
  if (writes == Writes::kSomeRows) {
    const uint64_t at_once = std::min(space.rows(), kFlagsAtOnce);
    TACIT_ASSIGN(whole.changed_, Buffer<uint8_t>::Make(stream.device(), space.rows()));
    TACIT_ASSIGN(whole.work_, Buffer<uint32_t>::Make(stream.device(), RankWork(at_once)));
    TACIT_ASSIGN(whole.rank_, Buffer<uint32_t>::Make(stream.device(), at_once));
    TACIT_ASSIGN(whole.count_, Buffer<uint32_t>::Make(stream.device(), 1));
    TACIT_ASSIGN(whole.count_host_, HostBuffer<uint32_t>::Make(stream.device(), 1));
    TACIT_ASSIGN(whole.home_, Homecoming::Make(stream.device(), floats_from, space.rows(), stride));
    TACIT_RETURN_IF_ERROR(whole.mover_.TakeWayHome(stream.device(), space.rows()));
    TACIT_RETURN_IF_ERROR(stream.Fill(whole.changed_.span(), 0));
  }
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  if (writes == Writes::kSomeRows) rows.Release();
  return made;
}

// Calls each(first row, its flags, their ranks among all flags) for parts of the flags.
template <class Each>
Status WholeRows::ForFlags(const Each& each) {
  TACIT_RETURN_IF_ERROR(stream_->Fill(count_.span(), 0));
  for (uint64_t begin = 0; begin < rows_count_; begin += kFlagsAtOnce) {
    const uint64_t n = std::min(kFlagsAtOnce, rows_count_ - begin);
    const auto changed = changed_.span().Sub(begin, n);
    const auto rank = rank_.span().Sub(0, n);
    TACIT_RETURN_IF_ERROR(
        RankFlags(*stream_, changed, count_.span(), work_.span(), rank, count_.span()));
    TACIT_RETURN_IF_ERROR(each(static_cast<uint32_t>(begin), changed, rank));
  }
  return {};
}

Status WholeRows::SendChangedHome() {
  TACIT_RETURN_IF_ERROR(home_->Finish());
  const auto nothing = [](uint32_t, DeviceSpan<uint8_t>, DeviceSpan<uint32_t>) { return Status(); };
  TACIT_RETURN_IF_ERROR(ForFlags(nothing));
  TACIT_RETURN_IF_ERROR(stream_->Download(count_.span(), count_host_.span()));
  TACIT_RETURN_IF_ERROR(stream_->Synchronize());
  const size_t rows = count_host_.span()[0];
  const DeviceSpan<uint32_t> list = home_->List(rows);
  if (rows == 0) return {};
  TACIT_RETURN_IF_ERROR(ForFlags(
      [&](uint32_t first, DeviceSpan<uint8_t> changed, DeviceSpan<uint32_t> rank) -> Status {
        TACIT_RETURN_IF_ERROR(ListNumbers(*stream_, changed, first, rank, list));
        return stream_->Fill(changed, 0);
      }));
  TACIT_ASSIGN(const bool has_room, home_->HasRoom());
  return has_room ? home_->Leave(*stream_, view().places, *rows_) : SendNow(list);
}

// Copies rows home, a piece at a time, and waits for them.
Status WholeRows::SendNow(DeviceSpan<const uint32_t> list) {
  home_row_.resize(list.size);
  TACIT_RETURN_IF_ERROR(stream_->Download(list, std::span<uint32_t>(home_row_)));
  TACIT_RETURN_IF_ERROR(stream_->Synchronize());
  std::vector<RowName> home;
  home.reserve(home_row_.size());
  for (const uint32_t row : home_row_) home.push_back({row, row});
  return mover_.SendHome(*stream_, view().places, home, *rows_);
}

Status WholeRows::SendAllHome() {
  Stream& stream = *stream_;
  store::WorkingRows& rows = *rows_;
  return ForPieces(
      stream, host_tables_, rows, [&](const DeviceTable& table, Piece& piece) -> Status {
        TACIT_RETURN_IF_ERROR(stream.Download(
            DeviceSpan<float>(table.embedding + piece.begin * table.dim, piece.rows * table.dim),
            std::span<float>(piece.embedding)));
        TACIT_RETURN_IF_ERROR(
            stream.Download(DeviceSpan<float>(table.state + piece.begin * table.state_floats,
                                              piece.rows * table.state_floats),
                            std::span<float>(piece.state)));
        TACIT_RETURN_IF_ERROR(stream.Synchronize());
        for (size_t i = 0; i < piece.rows; ++i) {
          std::copy_n(piece.embedding.data() + i * table.dim, table.dim, piece.at[i]);
          std::copy_n(piece.state.data() + i * table.state_floats, table.state_floats,
                      piece.at[i] + table.dim);
        }
        rows.MarkChanged(piece.ids);
        return {};
      });
}

}  // namespace tacit::cuda
