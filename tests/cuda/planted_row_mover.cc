// row_mover.cc with a fault: a wait that is left out.
#define AwaitFetched RightAwaitFetched
#include "cuda/rows/row_mover.cc"
#undef AwaitFetched
#include "cuda/planted_rows.h"

namespace tacit::cuda {
namespace {

testing::CacheFault planted_in_mover = testing::CacheFault::kNone;

}  // namespace

void testing::PlantInMover(CacheFault fault) { planted_in_mover = fault; }

Status AwaitFetched(Stream& stream, const Event& fetched) {
  if (planted_in_mover == testing::CacheFault::kMissingWait) return {};
  return RightAwaitFetched(stream, fetched);
}

}  // namespace tacit::cuda
