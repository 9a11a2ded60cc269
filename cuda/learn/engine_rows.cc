#include "cuda/learn/engine_rows.h"

#include <fmt/format.h>

#include <utility>

#include "cuda/device/buffer_taker.h"
#include "cuda/device/device.h"
#include "cuda/kernels/rows/ranks.h"
#include "cuda/learn/step_rows_index.h"
#include "cuda/rows/cached_rows.h"
#include "cuda/rows/whole_rows.h"

namespace tacit::cuda {
namespace {

WholeRows::Writes WritesOf(bool every_row) {
  return every_row ? WholeRows::Writes::kEveryRow : WholeRows::Writes::kSomeRows;
}

// A cache that has memory for the planned step, its entries and the rows that it writes beside.
CachedRowsOptions CacheFor(const train::GpuStepLayout& step) {
  return {.step_rows = step.named_entries, .extra_rows = step.named_extra_rows};
}

}  // namespace

Result<RowsPlan> PlanRows(const DeviceFacts& facts, const RowSpace& space,
                          const std::vector<uint32_t>& state_floats, bool writes_every_row,
                          const train::GpuStepLayout& step, const train::GpuRowOptions& options,
                          uint64_t free) {
  using Kind = train::GpuRowOptions::Kind;
  if (space.rows() >= kNone)
    return Fail(ErrorCode::kRefused,
                fmt::format("tables of {} rows have no form for a GPU, which takes fewer than {}: "
                            "set gpu.use to never, or lower buckets",
                            space.rows(), kNone));
  const uint64_t piece = facts.memory_piece_bytes;
  const uint64_t most = free / 4 * 3;
  const uint64_t whole = WholeRows::Bytes(space, state_floats, WritesOf(writes_every_row), piece) +
                         MemoryNeed(piece).Add<uint32_t>(space.rows()).bytes();
  Kind kind = options.kind;
  if (kind == Kind::kAuto) kind = whole <= most ? Kind::kWhole : Kind::kCache;
  if (kind == Kind::kWhole || space.rows() == 0) return RowsPlan{.takes = whole};
  if (writes_every_row)
    return Fail(ErrorCode::kRefused,
                fmt::format("its mechanism writes every row in every step, and a cache cannot hold "
                            "them: whole tables take {} MiB of the {} that are free; set gpu.rows "
                            "to whole, or gpu.use to never, or take another mechanism",
                            whole >> 20, free >> 20));
  CachedRowsOptions cache = CacheFor(step);
  MemoryNeed names(piece);
  TACIT_RETURN_IF_ERROR(StepRowsIndex::PlanNames(step, &names));
  const uint64_t beside =
      CachedRows::BesidePlacesBytes(space, state_floats, cache, piece) + names.bytes();
  const uint64_t rest = free > beside ? (free - beside) / 4 * 3 : 0;
  cache.bytes = options.cache_bytes > 0 ? options.cache_bytes : rest;
  const uint64_t owners = CachedRows::NamesOf(space, state_floats, cache);
  return RowsPlan{.caches = true,
                  .cache_bytes = cache.bytes,
                  .takes = CachedRows::Bytes(space, state_floats, cache, piece) +
                           names.Add<uint32_t>(owners).bytes()};
}

Result<std::unique_ptr<DeviceRows>> OpenRows(Stream& stream, const RowSpace& space,
                                             const std::vector<uint32_t>& state_floats,
                                             bool writes_every_row,
                                             const train::GpuStepLayout& step,
                                             const train::GpuRowOptions& options,
                                             store::WorkingRows& rows) {
  Device& device = stream.device();
  TACIT_ASSIGN(const uint64_t free, device.FreeBytes());
  TACIT_ASSIGN(const RowsPlan plan, PlanRows(device.facts(), space, state_floats, writes_every_row,
                                             step, options, free));
  if (plan.caches) {
    CachedRowsOptions options_of_cache = CacheFor(step);
    options_of_cache.bytes = plan.cache_bytes;
    TACIT_ASSIGN(auto cache, CachedRows::Make(stream, space, state_floats, options_of_cache, rows));
    return std::unique_ptr<DeviceRows>(std::move(cache));
  }
  TACIT_ASSIGN(auto whole,
               WholeRows::Make(stream, space, state_floats, WritesOf(writes_every_row), rows));
  return std::unique_ptr<DeviceRows>(std::move(whole));
}

}  // namespace tacit::cuda
