#include "base/check.h"
#include "cuda/device/kernel.h"
#include "unit/cuda/trial_kernels.h"

namespace tacit::cuda::testing {
namespace {

runtime::LaunchShape Blocks(uint64_t threads, size_t shared_bytes = 0) {
  return {.grid = BlocksFor(threads, kTrialBlock),
          .block = {kTrialBlock},
          .shared_bytes = shared_bytes};
}

TACIT_KERNEL AddScaledKernel(DeviceSpan<uint32_t> x, uint32_t a, uint32_t b) {
  const uint64_t i = GlobalThread();
  if (i < x.size) x[i] = a * x[i] + b;
}

struct alignas(16) Tile {
  uint32_t numbers[kTrialBlock];
};

TACIT_KERNEL ReverseKernel(DeviceSpan<const uint32_t> in, DeviceSpan<uint32_t> out) {
  Tile& tile = SharedAs<Tile>();
  const uint32_t i = ThreadIndex().x;
  tile.numbers[i] = in[GlobalThread()];
  SyncBlock();
  out[GlobalThread()] = tile.numbers[kTrialBlock - 1 - i];
}

TACIT_KERNEL ReverseAsyncKernel(DeviceSpan<const uint32_t> in, DeviceSpan<uint32_t> out,
                                bool clear_odd) {
  Tile& tile = SharedAs<Tile>();
  const uint32_t i = ThreadIndex().x;
  const uint64_t begin = uint64_t{BlockIndex().x} * kTrialBlock;
  // 16 copies bring the block: 8 threads bring two each, in groups of their own.
  if (i < 8) {
    CopyAsync16(&tile.numbers[8 * i], &in[begin + 8 * i], true);
    CommitCopies();
    CopyAsync16(&tile.numbers[8 * i + 4], &in[begin + 8 * i + 4], !clear_odd);
    CommitCopies();
    WaitCopies<1>();
    WaitCopies<0>();
  }
  SyncBlock();
  out[GlobalThread()] = tile.numbers[kTrialBlock - 1 - i];
}

TACIT_KERNEL SumAllKernel(DeviceSpan<const int64_t> in, DeviceSpan<int64_t> sum,
                          DeviceSpan<uint32_t> odd) {
  const uint64_t i = GlobalThread();
  int64_t mine = i < in.size ? in[i] : 0;
  const uint32_t odd_lanes = Ballot(mine % 2 != 0);
  for (uint32_t bits = kWarp / 2; bits > 0; bits /= 2) mine += ShuffleXor(mine, bits);
  if (LaneIndex() != 0) return;
  AtomicAdd(&sum[0], mine);
  uint32_t count = 0;
  for (uint32_t lanes = odd_lanes; lanes != 0; lanes &= lanes - 1) ++count;
  AtomicAdd(&odd[0], count);
}

struct alignas(16) Factors {
  uint16_t a[16][16];
  uint16_t b[16][8];
};

TACIT_KERNEL MultiplyTileKernel(DeviceSpan<const uint16_t> a, DeviceSpan<const uint16_t> b,
                                DeviceSpan<float> c) {
  Factors& shared = SharedAs<Factors>();
  const uint32_t lane = LaneIndex();
  for (uint32_t i = lane; i < 256; i += kWarp) shared.a[i / 16][i % 16] = a[i];
  for (uint32_t i = lane; i < 128; i += kWarp) shared.b[i / 8][i % 8] = b[i];
  SyncWarp();
  uint32_t of_a[4], of_b[2];
  LoadMatrix4(of_a, &shared.a[lane % 16][lane / 16 * 8]);
  LoadMatrix2Transposed(of_b, &shared.b[lane % 16][0]);
  float sums[4] = {};
  Mma16816(sums, of_a, of_b);
  for (uint32_t e = 0; e < 4; ++e)
    c[(lane / 4 + 8 * (e / 2)) * 8 + 2 * (lane % 4) + e % 2] = sums[e];
}

TACIT_KERNEL NameThreadsKernel(DeviceSpan<uint32_t> out) {
  const auto block = BlockIndex();
  const auto thread = ThreadIndex();
  const uint32_t number = (block.y * GridSize().x + block.x) * 16 + ThreadRank();
  out[number] = ((block.x * 10 + block.y) * 10 + thread.x) * 100 + thread.y * 10 + thread.z;
}

}  // namespace

Status AddScaled(Stream& stream, DeviceSpan<uint32_t> x, uint32_t a, uint32_t b) {
  return Launch(stream, "AddScaled", Blocks(x.size), AddScaledKernel, x, a, b);
}

Status Reverse(Stream& stream, DeviceSpan<const uint32_t> in, DeviceSpan<uint32_t> out) {
  TACIT_CHECK(in.size % kTrialBlock == 0 && in.size == out.size);
  return Launch(stream, "Reverse", Blocks(in.size, sizeof(Tile)), ReverseKernel, in, out);
}

Status ReverseAsync(Stream& stream, DeviceSpan<const uint32_t> in, DeviceSpan<uint32_t> out,
                    bool clear_odd) {
  TACIT_CHECK(in.size % kTrialBlock == 0 && in.size == out.size);
  return Launch(stream, "ReverseAsync", Blocks(in.size, sizeof(Tile)), ReverseAsyncKernel, in, out,
                clear_odd);
}

Status SumAll(Stream& stream, DeviceSpan<const int64_t> in, DeviceSpan<int64_t> sum,
              DeviceSpan<uint32_t> odd) {
  return Launch(stream, "SumAll", Blocks(in.size), SumAllKernel, in, sum, odd);
}

Status MultiplyTile(Stream& stream, DeviceSpan<const uint16_t> a, DeviceSpan<const uint16_t> b,
                    DeviceSpan<float> c) {
  TACIT_CHECK(a.size == 256 && b.size == 128 && c.size == 128);
  return Launch(stream, "MultiplyTile",
                {.grid = {1}, .block = {kWarp}, .shared_bytes = sizeof(Factors)},
                MultiplyTileKernel, a, b, c);
}

Status NameThreads(Stream& stream, DeviceSpan<uint32_t> out) {
  TACIT_CHECK(out.size == 6 * 16);
  return Launch(stream, "NameThreads", {.grid = {2, 3}, .block = {4, 2, 2}, .shared_bytes = 0},
                NameThreadsKernel, out);
}

}  // namespace tacit::cuda::testing
