// gemm16.cu with faults: its barrier may be left out, and its ends may be wrong.
#include "cuda/device/kernel.h"
#include "cuda/kernels/gemm/gemm_args.h"
#include "cuda/kernels/gemm/gemm_ends.h"
#include "cuda/kernels/gemm/gemm_sm90a.h"
#include "unit/cuda/planted_step.h"

namespace tacit::cuda {
namespace {

using testing::StepFault;

StepFault planted = StepFault::kNone;

void PlantedSyncBlock() {
  if (planted != StepFault::kMissingBarrier) SyncBlock();
}

// The product of but a half of k, where it ends in something else than sums.
GemmArgs<uint16_t> PlantedMakeGemmArgs(Form form_a, DeviceMatrix<const uint16_t> a, Form form_b,
                                       DeviceMatrix<const uint16_t> b, float beta,
                                       DeviceMatrix<float> c, const GemmPlan& plan,
                                       DeviceSpan<float> work, uint32_t depth) {
  GemmArgs<uint16_t> args = MakeGemmArgs(form_a, a, form_b, b, beta, c, plan, work, depth);
  if (planted == StepFault::kEndOfAPart && c.data == nullptr) args.k /= 2;
  return args;
}

struct PlantedActivateEnd : ActivateEnd {
  PlantedActivateEnd At(uint32_t) const { return *this; }
  template <class Squares>
  void Put(bool pairs, uint32_t row, uint32_t col, const Before& biases, float first, float second,
           Squares& squares) const {
    if (planted == StepFault::kBiasTwice) {
      first += biases.first;
      second += biases.second;
    }
    ActivateEnd end = *this;
    // The column behind the biases' is forgotten.
    if (planted == StepFault::kNoOnes) end.out.cols = cols;
    end.Put(pairs, row, col, biases, first, second, squares);
  }
};

struct PlantedMaskEnd : MaskEnd {
  PlantedMaskEnd At(uint32_t) const { return *this; }
  template <class Squares>
  void Put(bool pairs, uint32_t row, uint32_t col, const Before& active, float first, float second,
           Squares& squares) const {
    if (planted != StepFault::kNoMask)
      return MaskEnd::Put(pairs, row, col, active, first, second, squares);
    uint16_t numbers[2];
    Narrow(first, &numbers[0]);
    Narrow(second, &numbers[1]);
    PutNeighbours(pairs, col + 1 < out.cols, numbers[0], numbers[1], out.Row(row) + col);
  }
};

template <class End>
void PlantedPutSquares(const End& end, bool real, uint32_t row, uint32_t part,
                       const SquaresOf<End>& squares) {
  if (planted != StepFault::kSquaresOfALane) return PutSquares(end, real, row, part, squares);
  if constexpr (kHasSquares<End>)
    if (real && LaneIndex() % 4 == 1) end.squares.Row(part)[row] = squares.sum;
}

}  // namespace

void testing::PlantInGemm(StepFault fault) { planted = fault; }

}  // namespace tacit::cuda

#define SyncBlock PlantedSyncBlock
#define MakeGemmArgs PlantedMakeGemmArgs
#define PutSquares PlantedPutSquares
#define ActivateEnd PlantedActivateEnd
#define MaskEnd PlantedMaskEnd
#include "cuda/kernels/gemm/gemm16.cu"
