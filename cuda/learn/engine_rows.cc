#include "cuda/learn/engine_rows.h"

#include <fmt/format.h>

#include <utility>

#include "cuda/device/device.h"
#include "cuda/rows/cached_rows.h"
#include "cuda/rows/whole_rows.h"

namespace tacit::cuda {

Result<std::unique_ptr<DeviceRows>> OpenRows(Stream& stream, const RowSpace& space,
                                             const std::vector<uint32_t>& state_floats,
                                             bool writes_every_row,
                                             const train::GpuRowOptions& options,
                                             store::WorkingRows& rows) {
  using Kind = train::GpuRowOptions::Kind;
  TACIT_ASSIGN(const uint64_t free, stream.device().FreeBytes());
  const uint64_t most = free / 4 * 3;
  const auto writes =
      writes_every_row ? WholeRows::Writes::kEveryRow : WholeRows::Writes::kSomeRows;
  // Beside them lies the owner of each row's number (step_rows_index.h).
  const uint64_t wanted =
      WholeRows::Bytes(space, state_floats, writes) + space.rows() * sizeof(uint32_t);
  Kind kind = options.kind;
  if (kind == Kind::kAuto) kind = wanted <= most ? Kind::kWhole : Kind::kCache;
  if (kind == Kind::kWhole || space.rows() == 0) {
    TACIT_ASSIGN(auto whole, WholeRows::Make(stream, space, state_floats, writes, rows));
    return std::unique_ptr<DeviceRows>(std::move(whole));
  }
  if (writes_every_row)
    return Fail(ErrorCode::kRefused,
                fmt::format("its mechanism writes every row in every step, and a cache cannot hold "
                            "them: whole tables take {} MiB of the {} that are free; set gpu.rows "
                            "to whole, or gpu.use to never, or take another mechanism",
                            wanted >> 20, free >> 20));
  const uint64_t home = CachedRows::WayHomeBytes(space, state_floats);
  const uint64_t rest = free > home ? (free - home) / 4 * 3 : 0;
  const uint64_t bytes = options.cache_bytes > 0 ? options.cache_bytes : rest;
  TACIT_ASSIGN(auto cache, CachedRows::Make(stream, space, state_floats, {.bytes = bytes}, rows));
  return std::unique_ptr<DeviceRows>(std::move(cache));
}

}  // namespace tacit::cuda
