// homecoming.cc with a fault: rows that are copied after a later step.
#include "cuda/rows/row_index.h"

namespace tacit::cuda {
namespace {
Status PackOrNot(Stream& stream, const RowPlaces& places, const RowTransfer& transfer);
}  // namespace
}  // namespace tacit::cuda

#define PackRows PackOrNot
#include "cuda/rows/homecoming.cc"
#undef PackRows
#include <functional>
#include <utility>

#include "unit/cuda/planted_rows.h"

namespace tacit::cuda {
namespace {

using testing::CacheFault;

CacheFault planted_here = CacheFault::kNone;
std::function<Status()> pack_later;

Status PackOrNot(Stream& stream, const RowPlaces& places, const RowTransfer& transfer) {
  if (planted_here != CacheFault::kPacksLate) return PackRows(stream, places, transfer);
  // Zeros are numbers, too.
  TACIT_RETURN_IF_ERROR(stream.Fill(transfer.floats, 0));
  pack_later = [&stream, places, transfer]() -> Status {
    TACIT_RETURN_IF_ERROR(PackRows(stream, places, transfer));
    return stream.Synchronize();
  };
  return {};
}

}  // namespace

void testing::PlantInHomecoming(CacheFault fault) {
  planted_here = fault;
  pack_later = nullptr;
}
void testing::PackNow() {
  if (const auto pack = std::exchange(pack_later, nullptr)) static_cast<void>(pack());
}

}  // namespace tacit::cuda
