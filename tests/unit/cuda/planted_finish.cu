// finish.cu with faults: its draws and launches go through functions that may leave them out.
#include <string_view>

#include "cuda/device/kernel.h"
#include "cuda/kernels/noise/grid_draw.h"
#include "cuda/kernels/rows/finish.h"
#include "cuda/kernels/rows/finish_step.h"
#include "unit/cuda/planted_step.h"

namespace tacit::cuda {
namespace {

using testing::StepFault;

StepFault planted = StepFault::kNone;
uint64_t planted_period = 0;
// Behind all places: a row's, which is to have no noise.
constexpr uint64_t kSilent = uint64_t{1} << 62;

void PlantedDrawPlace(const uint32_t (&key)[kKeyWords], uint64_t query, uint64_t place,
                      const noise::GridScale& scale, int64_t (&steps)[kNumbersPerPlace]) {
  const bool is_dense = query == static_cast<uint64_t>(NoiseQuery::kDense);
  if (planted == (is_dense ? StepFault::kSharedDenseNoise : StepFault::kSharedNoise))
    place %= planted_period;
  constexpr uint32_t kNoKey[kKeyWords] = {};
  DrawPlace(planted == StepFault::kSameNoise ? kNoKey : key, query, place, scale, steps);
  const bool is_left_out = planted == StepFault::kNoNoise || place >= kSilent ||
                           (planted == StepFault::kNoDenseNoise && is_dense);
  for (int64_t& step : steps) {
    if (is_left_out) step = 0;
    if (planted == StepFault::kHalfNoise) step /= 2;
  }
}

Row PlantedRowOf(const RowPlaces& places, uint64_t row, uint32_t name, const RowSums& sums,
                 uint64_t sum) {
  Row of = RowOf(places, row, name, sums, sum);
  if (planted == StepFault::kNoNoiseWithoutSum && of.sums == nullptr) of.place = kSilent;
  return of;
}

TACIT_KERNEL MarkKernel(WrittenRows written) {
  const uint64_t i = GlobalThread();
  if (i < written.all[0] && i < written.row.size) written.changed[written.name[i]] = 1;
}
// Finds the rows among the arguments of a launch.
template <class T>
void TakeWritten(const T&, WrittenRows*) {}
void TakeWritten(const WrittenRows& written, WrittenRows* to) { *to = written; }

template <class... Arguments>
Status PlantedLaunch(Stream& stream, const char* name, const Arguments&... arguments) {
  if (planted == testing::StepFault::kRowsNotStepped && std::string_view(name) == "FinishRows")
    return {};
  if (planted == testing::StepFault::kRowsMarkedOnly && std::string_view(name) == "FinishRows") {
    WrittenRows written;
    (TakeWritten(arguments, &written), ...);
    const runtime::LaunchShape shape{
        .grid = BlocksFor(written.row.size, 64), .block = {64}, .shared_bytes = 0};
    return Launch(stream, name, shape, MarkKernel, written);
  }
  return Launch(stream, name, arguments...);
}

}  // namespace

void testing::PlantInFinish(StepFault fault, uint64_t period) {
  planted = fault;
  planted_period = period;
}

}  // namespace tacit::cuda

#define DrawPlace PlantedDrawPlace
#define RowOf PlantedRowOf
#define Launch PlantedLaunch
#include "cuda/kernels/rows/finish.cu"
