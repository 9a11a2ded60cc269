// finish.cu with faults: its draws and launches go through functions that may leave them out.
#include <string_view>

#include "cuda/device/kernel.h"
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

template <class... Arguments>
Status PlantedLaunch(Stream& stream, const char* name, const Arguments&... arguments) {
  if (planted == testing::StepFault::kRowsNotStepped && std::string_view(name) == "FinishRows")
    return {};
  return Launch(stream, name, arguments...);
}

}  // namespace

void testing::PlantInFinish(StepFault fault) { planted = fault; }

}  // namespace tacit::cuda

#define DrawPlace PlantedDrawPlace
#define Launch PlantedLaunch
#include "cuda/kernels/finish.cu"
