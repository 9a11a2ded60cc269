// served_places.cc with a fault: a shelf that begins anew keeps the rows that it had.
#include "cuda/learn/served_places.h"
#include "unit/cuda/planted_scoring.h"

namespace tacit::cuda {
namespace {

bool keeps_rows = false;

}  // namespace

void testing::PlantKeptRows(bool keeps) { keeps_rows = keeps; }

}  // namespace tacit::cuda

#define kGenerationsAhead (keeps_rows ? 0u : 1u)
#include "cuda/learn/served_places.cc"
