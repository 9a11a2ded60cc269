// row_mover.cc with faults: waits that are left out.
#define AwaitFetched RightAwaitFetched
#define AwaitPiece RightAwaitPiece
#include "cuda/rows/row_mover.cc"
#undef AwaitFetched
#undef AwaitPiece
#include "unit/cuda/planted_rows.h"

namespace tacit::cuda {
namespace {

testing::CacheFault planted_in_mover = testing::CacheFault::kNone;

}  // namespace

void testing::PlantInMover(CacheFault fault) { planted_in_mover = fault; }

Status AwaitFetched(Stream& stream, const Event& fetched) {
  if (planted_in_mover == testing::CacheFault::kMissingWait) return {};
  return RightAwaitFetched(stream, fetched);
}

Status AwaitPiece(Event& arrived) {
  if (planted_in_mover == testing::CacheFault::kTakesUnarrived) return {};
  return RightAwaitPiece(arrived);
}

}  // namespace tacit::cuda
