// Dropout: a thread draws for 8 numbers of a row.
//   bytes:      4 read and 4 written a number
//   operations: ten rounds of Philox for 8 numbers, some 15 a number; a search for the row's unit
// Memory bounds it: 200,000 rows of 64 numbers are 100 MB, 35 us at 3 TB/s. Nothing is kept for the
// backward pass, which draws again. Forecast: 50 us. Registers: README.md.
#include "base/check.h"
#include "base/philox.h"
#include "cuda/device/kernel.h"
#include "cuda/kernels/sequence/dropout.h"

namespace tacit::cuda {
namespace {

constexpr uint32_t kBlock = 128, kPerCall = 8;

TACIT_KERNEL DropKernel(DropCoins coins, uint32_t site, uint32_t times, DeviceMatrix<float> x) {
  const uint32_t groups = (x.cols + kPerCall - 1) / kPerCall;
  const uint64_t i = GlobalThread(), row = i / groups;
  if (row >= x.rows) return;
  const auto group = static_cast<uint32_t>(i % groups);
  // The first unit that ends behind the row.
  uint32_t unit = 0, end = static_cast<uint32_t>(coins.unit_end.size);
  while (unit < end) {
    const uint32_t middle = (unit + end) / 2;
    if (coins.unit_end[middle] > row)
      end = middle;
    else
      unit = middle + 1;
  }
  const uint32_t first = unit == 0 ? 0 : coins.unit_end[unit - 1];
  const auto call = static_cast<uint32_t>(row - first) * groups + group;
  uint32_t words[4] = {call, site, coins.id_low[unit], coins.id_high[unit]};
  PhiloxInPlace(words, static_cast<uint32_t>(coins.seed), static_cast<uint32_t>(coins.seed >> 32));
  float* const numbers = x.Row(row) + group * kPerCall;
  TACIT_UNROLL
  for (uint32_t j = 0; j < kPerCall; ++j) {
    if (group * kPerCall + j >= x.cols) continue;
    const bool kept = ((words[j / 2] >> (16 * (j % 2))) & 0xffff) < coins.kept;
    for (uint32_t t = 0; t < times; ++t) numbers[j] *= kept ? coins.factor : 0.0f;
  }
}

}  // namespace

Status DropNumbers(Stream& stream, const DropCoins& coins, uint32_t site, uint32_t times,
                   DeviceMatrix<float> x) {
  TACIT_CHECK(coins.id_low.size == coins.unit_end.size &&
                  coins.id_high.size == coins.unit_end.size && x.cols > 0,
              "an id per unit");
  const uint64_t groups = (x.cols + kPerCall - 1) / kPerCall;
  return Launch(stream, "DropNumbers",
                {.grid = BlocksFor(x.rows * groups, kBlock), .block = {kBlock}, .shared_bytes = 0},
                DropKernel, coins, site, times, x);
}

}  // namespace tacit::cuda
