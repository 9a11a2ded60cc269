// dropout.cu with faults: draws go through a function that may change what they are asked for.
#define DropNumbers RightDropNumbers
#include "cuda/kernels/sequence/dropout.cu"
#undef DropNumbers
#include "unit/cuda/planted_sequence.h"

namespace tacit::cuda {
namespace {

using testing::SequenceFault;

SequenceFault planted_dropout = SequenceFault::kNone;
uint32_t planted_draws = 0;

}  // namespace

void testing::PlantInDropout(SequenceFault fault) {
  planted_dropout = fault;
  planted_draws = 0;
}

Status DropNumbers(Stream& stream, const DropCoins& coins, uint32_t site, uint32_t times,
                   DeviceMatrix<float> x) {
  if (planted_dropout == SequenceFault::kOneCoinForAll) site = 0;
  if (planted_dropout == SequenceFault::kOtherCoinsBehind) site += 1000 * planted_draws++;
  if (planted_dropout == SequenceFault::kDroppedOnce) times = 1;
  return RightDropNumbers(stream, coins, site, times, x);
}

}  // namespace tacit::cuda
