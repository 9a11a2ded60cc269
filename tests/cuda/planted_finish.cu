// finish.cu with faults: its draws and launches go through functions that may leave them out.
#include <string_view>

#include "cuda/device/kernel.h"
#include "cuda/kernels/finish.h"
#include "cuda/kernels/grid_draw.h"
#include "cuda/planted_step.h"

namespace tacit::cuda {
namespace {

testing::StepFault planted = testing::StepFault::kNone;

void PlantedDrawPlace(const uint32_t (&key)[kKeyWords], uint64_t query, uint64_t place,
                      const noise::GridScale& scale, int64_t (&steps)[kNumbersPerPlace]) {
  DrawPlace(key, query, place, scale, steps);
  if (planted != testing::StepFault::kNoNoise) return;
  for (int64_t& step : steps) step = 0;
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

void testing::PlantInFinish(StepFault fault) { planted = fault; }

}  // namespace tacit::cuda

#define DrawPlace PlantedDrawPlace
#define Launch PlantedLaunch
#include "cuda/kernels/finish.cu"
