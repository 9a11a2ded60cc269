// Ranks of flags in three kernels: counts of blocks, their sums in order, ranks within blocks.
//   bytes:      2 x 1 read and 4 written a flag, and 8 a block of 256
//   operations: a ballot and a few additions a flag
// It is all launches: 53,000 flags are 270 KB. Forecast: 6 us for the three. Registers: README.md.
#include "base/check.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/rows/ranks.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 256, kWarps = kBlock / kWarp;

struct alignas(16) Counts {
  uint32_t of_warp[kWarps];
};

TACIT_IN_KERNEL uint32_t SetLanes(const DeviceSpan<const uint8_t>& flags) {
  const uint64_t i = GlobalThread();
  return Ballot(i < flags.size && flags[i] != 0);
}

TACIT_KERNEL CountKernel(DeviceSpan<const uint8_t> flags, DeviceSpan<uint32_t> of_block) {
  Counts& counts = SharedAs<Counts>();
  const uint32_t lanes = SetLanes(flags);
  if (LaneIndex() == 0) counts.of_warp[WarpIndex()] = CountBits(lanes);
  SyncBlock();
  if (ThreadIndex().x != 0) return;
  uint32_t sum = 0;
  for (uint32_t w = 0; w < kWarps; ++w) sum += counts.of_warp[w];
  of_block[BlockIndex().x] = sum;
}

// One block: the counts of blocks become the ranks with which they begin.
TACIT_KERNEL SumKernel(DeviceSpan<uint32_t> of_block, DeviceSpan<const uint32_t> from,
                       DeviceSpan<uint32_t> count) {
  Counts& counts = SharedAs<Counts>();
  uint32_t begin = from.size == 0 ? 0 : from[0];
  for (uint64_t first = 0; first < of_block.size; first += kBlock) {
    const uint64_t i = first + ThreadIndex().x;
    const uint32_t mine = i < of_block.size ? of_block[i] : 0;
    // The sum of this lane's and all before it.
    uint32_t upto = mine;
    for (uint32_t distance = 1; distance < kWarp; distance *= 2) {
      const uint32_t other = Shuffle(upto, LaneIndex() - distance);
      if (LaneIndex() >= distance) upto += other;
    }
    if (LaneIndex() == kWarp - 1) counts.of_warp[WarpIndex()] = upto;
    SyncBlock();
    uint32_t before = begin, all = begin;
    for (uint32_t w = 0; w < kWarps; ++w) {
      if (w < WarpIndex()) before += counts.of_warp[w];
      all += counts.of_warp[w];
    }
    if (i < of_block.size) of_block[i] = before + upto - mine;
    begin = all;
    SyncBlock();
  }
  if (ThreadIndex().x == 0) count[0] = begin;
}

TACIT_KERNEL RankKernel(DeviceSpan<const uint8_t> flags, DeviceSpan<const uint32_t> of_block,
                        DeviceSpan<uint32_t> rank) {
  Counts& counts = SharedAs<Counts>();
  const uint32_t lanes = SetLanes(flags);
  if (LaneIndex() == 0) counts.of_warp[WarpIndex()] = CountBits(lanes);
  SyncBlock();
  uint32_t mine = of_block[BlockIndex().x];
  for (uint32_t w = 0; w < WarpIndex(); ++w) mine += counts.of_warp[w];
  mine += CountBits(lanes & ((uint32_t{1} << LaneIndex()) - 1));
  if (GlobalThread() < flags.size) rank[GlobalThread()] = mine;
}

TACIT_KERNEL NumbersKernel(DeviceSpan<const uint8_t> flags, uint32_t first,
                           DeviceSpan<const uint32_t> rank, DeviceSpan<uint32_t> out) {
  const uint64_t i = GlobalThread();
  if (i < flags.size && flags[i] != 0) out[rank[i]] = first + static_cast<uint32_t>(i);
}

}  // namespace

size_t RankWork(size_t flags) { return BlocksFor(flags, kBlock).x; }

Status RankFlags(Stream& stream, DeviceSpan<const uint8_t> flags, DeviceSpan<const uint32_t> from,
                 DeviceSpan<uint32_t> work, DeviceSpan<uint32_t> rank, DeviceSpan<uint32_t> count) {
  TACIT_CHECK(rank.size == flags.size && count.size == 1 && from.size <= 1);
  TACIT_CHECK(work.size >= RankWork(flags.size), "too little work");
  const auto grid = BlocksFor(flags.size, kBlock);
  const runtime::LaunchShape shape{.grid = grid, .block = {kBlock}, .shared_bytes = sizeof(Counts)};
  const auto of_block = work.Sub(0, grid.x);
  TACIT_RETURN_IF_ERROR(Launch(stream, "CountFlags", shape, CountKernel, flags, of_block));
  TACIT_RETURN_IF_ERROR(Launch(stream, "SumCounts",
                               {.grid = {1}, .block = {kBlock}, .shared_bytes = sizeof(Counts)},
                               SumKernel, of_block, from, count));
  return Launch(stream, "RankFlags", shape, RankKernel, flags, of_block, rank);
}

Status ListNumbers(Stream& stream, DeviceSpan<const uint8_t> flags, uint32_t first,
                   DeviceSpan<const uint32_t> rank, DeviceSpan<uint32_t> out) {
  TACIT_CHECK(rank.size == flags.size);
  return Launch(stream, "ListNumbers",
                {.grid = BlocksFor(flags.size, kBlock), .block = {kBlock}, .shared_bytes = 0},
                NumbersKernel, flags, first, rank, out);
}

}  // namespace tacit::cuda
