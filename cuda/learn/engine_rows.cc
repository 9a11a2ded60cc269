#include "cuda/learn/engine_rows.h"

#include <fmt/format.h>

#include <utility>

#include "cuda/device/device.h"
#include "cuda/rows/cached_rows.h"
#include "cuda/rows/whole_rows.h"

namespace tacit::cuda {
namespace {

WholeRows::Writes WritesOf(bool every_row) {
  return every_row ? WholeRows::Writes::kEveryRow : WholeRows::Writes::kSomeRows;
}

}  // namespace

Result<RowsPlan> PlanRows(const RowSpace& space, const std::vector<uint32_t>& state_floats,
                          bool writes_every_row, const train::GpuRowOptions& options,
                          uint64_t free) {
  using Kind = train::GpuRowOptions::Kind;
  const uint64_t most = free / 4 * 3;
  const uint64_t whole = WholeRows::Bytes(space, state_floats, WritesOf(writes_every_row)) +
                         space.rows() * sizeof(uint32_t);
  Kind kind = options.kind;
  if (kind == Kind::kAuto) kind = whole <= most ? Kind::kWhole : Kind::kCache;
  if (kind == Kind::kWhole || space.rows() == 0) return RowsPlan{.takes = whole};
  if (writes_every_row)
    return Fail(ErrorCode::kRefused,
                fmt::format("its mechanism writes every row in every step, and a cache cannot hold "
                            "them: whole tables take {} MiB of the {} that are free; set gpu.rows "
                            "to whole, or gpu.use to never, or take another mechanism",
                            whole >> 20, free >> 20));
  const uint64_t home = CachedRows::WayHomeBytes(space, state_floats);
  const uint64_t rest = free > home ? (free - home) / 4 * 3 : 0;
  const CachedRowsOptions cache = {.bytes = options.cache_bytes > 0 ? options.cache_bytes : rest};
  return RowsPlan{.caches = true,
                  .cache_bytes = cache.bytes,
                  .takes = CachedRows::Bytes(space, state_floats, cache) +
                           CachedRows::PlacesOf(space, state_floats, cache) * sizeof(uint32_t)};
}

Result<std::unique_ptr<DeviceRows>> OpenRows(Stream& stream, const RowSpace& space,
                                             const std::vector<uint32_t>& state_floats,
                                             bool writes_every_row,
                                             const train::GpuRowOptions& options,
                                             store::WorkingRows& rows) {
  TACIT_ASSIGN(const uint64_t free, stream.device().FreeBytes());
  TACIT_ASSIGN(const RowsPlan plan, PlanRows(space, state_floats, writes_every_row, options, free));
  if (plan.caches) {
    TACIT_ASSIGN(auto cache,
                 CachedRows::Make(stream, space, state_floats, {.bytes = plan.cache_bytes}, rows));
    return std::unique_ptr<DeviceRows>(std::move(cache));
  }
  TACIT_ASSIGN(auto whole,
               WholeRows::Make(stream, space, state_floats, WritesOf(writes_every_row), rows));
  return std::unique_ptr<DeviceRows>(std::move(whole));
}

}  // namespace tacit::cuda
