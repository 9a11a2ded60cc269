// step_streams.cc with a fault: a wait that is left out.
#define AwaitPoint RightAwaitPoint
#include "cuda/learn/step_streams.cc"
#undef AwaitPoint
#include "unit/cuda/planted_streams.h"

namespace tacit::cuda {
namespace {

std::optional<StepPoint> planted_wait;

}  // namespace

void testing::PlantMissingWait(std::optional<StepPoint> point) { planted_wait = point; }

Status AwaitPoint(Stream& stream, const Event& event, StepPoint point) {
  if (planted_wait == point) return {};
  return RightAwaitPoint(stream, event, point);
}

}  // namespace tacit::cuda
