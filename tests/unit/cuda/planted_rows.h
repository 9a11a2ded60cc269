#pragma once

#include <cstdint>

#include "cuda/device/buffer.h"

// Faults of the cache of rows, planted where tests ask for them: planted_row_index.cu and
// planted_row_mover.cc and planted_homecoming.cc in the place of the files that they include.
namespace tacit::cuda::testing {

enum class CacheFault {
  kNone,
  kEvictsChanged,   // PlaceRows takes changed places: `memory` has zeros for its flags
  kEvictsInUse,     // PlaceRows takes places of the steps in use
  kMarksTouched,    // FindRows reports what it finds as changed, in `memory`, the cache's flags
  kKeepsNoAges,     // FindRows leaves ages as they are
  kMissingWait,     // the engine's stream does not wait for fetched rows
  kPacksLate,       // rows on their way home are those of a later step: PackNow copies them
  kTakesUnarrived,  // rows that come home are read before they are there
};
void PlantInIndex(CacheFault fault, DeviceSpan<uint8_t> memory = {});
void PlantInMover(CacheFault fault);
void PlantInHomecoming(CacheFault fault);
void PackNow();

}  // namespace tacit::cuda::testing
