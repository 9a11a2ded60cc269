#pragma once

namespace tacit::cuda::testing {

// Has a shelf keep the rows of the version that it had before, or not (planted_served_places.cc).
void PlantKeptRows(bool keeps);

}  // namespace tacit::cuda::testing
