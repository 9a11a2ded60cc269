#pragma once

#include <cstdint>

#include "cuda/device/buffer.h"

// Faults of the cache of rows, planted where tests ask for them: planted_row_index.cu and
// planted_row_mover.cc in the place of the files that they include.
namespace tacit::cuda::testing {

enum class CacheFault {
  kNone,
  kEvictsChanged,  // PlaceRows takes changed places: `memory` has zeros for its flags
  kEvictsInUse,    // PlaceRows takes places of the steps in use
  kMarksTouched,   // FindRows reports what it finds as changed, in `memory`, the cache's flags
  kKeepsNoAges,    // FindRows leaves ages as they are
  kMissingWait,    // the engine's stream does not wait for fetched rows
};
void PlantInIndex(CacheFault fault, DeviceSpan<uint8_t> memory = {});
void PlantInMover(CacheFault fault);

}  // namespace tacit::cuda::testing
