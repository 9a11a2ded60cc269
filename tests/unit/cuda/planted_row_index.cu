// row_index.cu with faults: look-up and placing go through functions that may change what they are
// given.
#define FindRows RightFindRows
#define PlaceRows RightPlaceRows
#include "cuda/rows/row_index.cu"
#undef FindRows
#undef PlaceRows
#include "unit/cuda/planted_rows.h"

namespace tacit::cuda {
namespace {

using testing::CacheFault;

CacheFault planted = CacheFault::kNone;
DeviceSpan<uint8_t> planted_memory;

TACIT_KERNEL MarkFoundKernel(DeviceSpan<const uint32_t> name, DeviceSpan<uint8_t> changed) {
  const uint64_t i = GlobalThread();
  if (i < name.size && name[i] != kNone) changed[name[i]] = 1;
}

}  // namespace

void testing::PlantInIndex(CacheFault fault, DeviceSpan<uint8_t> memory) {
  planted = fault;
  planted_memory = memory;
}

Status FindRows(Stream& stream, const RowIndex& index, DeviceSpan<const uint32_t> row, uint32_t age,
                DeviceSpan<uint32_t> name, DeviceSpan<uint8_t> missing) {
  if (planted == CacheFault::kKeepsNoAges) age = kNone;
  TACIT_RETURN_IF_ERROR(RightFindRows(stream, index, row, age, name, missing));
  if (planted != CacheFault::kMarksTouched) return {};
  return Launch(stream, "MarkFound", Threads(name.size), MarkFoundKernel, name, planted_memory);
}

Status PlaceRows(Stream& stream, const RowIndex& index, const RowsToPlace& rows,
                 DeviceSpan<const uint8_t> changed, DeviceSpan<uint32_t> name) {
  RowsToPlace given = rows;
  if (planted == CacheFault::kEvictsInUse) given.in_use = 0;
  return RightPlaceRows(stream, index, given,
                        planted == CacheFault::kEvictsChanged ? planted_memory : changed, name);
}

}  // namespace tacit::cuda
