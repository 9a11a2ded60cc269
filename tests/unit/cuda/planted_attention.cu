// attention.cu with faults: the correction, and the variance of what is attended to, go through
// functions that may leave a part of them out.
#define Attend RightAttend
#define AttendVariance RightAttendVariance
#include "cuda/kernels/sequence/attention.cu"
#undef Attend
#undef AttendVariance
#include "unit/cuda/planted_sequence.h"

namespace tacit::cuda {
namespace {

using testing::SequenceFault;

SequenceFault planted_attention = SequenceFault::kNone;

TACIT_KERNEL ZeroKernel(DeviceMatrix<float> out) {
  const uint64_t i = GlobalThread(), r = i / out.cols;
  if (r < out.rows) out.Row(r)[i % out.cols] = 0;
}

}  // namespace

void testing::PlantInAttention(SequenceFault fault) { planted_attention = fault; }

Status Attend(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> qkv,
              const AttentionCorrection& correction, DeviceMatrix<float> shares,
              DeviceMatrix<float> out) {
  AttentionCorrection given = correction;
  if (planted_attention == SequenceFault::kNoCorrection) given.factor = 0;
  if (planted_attention == SequenceFault::kUncapped) given.most = 1e30f;
  return RightAttend(stream, shape, qkv, given, shares, out);
}

Status AttendVariance(Stream& stream, const AttentionShape& shape, DeviceMatrix<const float> shares,
                      DeviceMatrix<const float> value_variance, DeviceMatrix<float> out) {
  if (planted_attention != SequenceFault::kNoAttended)
    return RightAttendVariance(stream, shape, shares, value_variance, out);
  const uint64_t numbers = uint64_t{out.rows} * out.cols;
  if (numbers == 0) return {};
  return Launch(stream, "Zero", {.grid = BlocksFor(numbers, 64), .block = {64}, .shared_bytes = 0},
                ZeroKernel, out);
}

}  // namespace tacit::cuda
