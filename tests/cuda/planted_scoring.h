#pragma once

namespace tacit::cuda::testing {

// Whether a shelf keeps the rows of the version that it had before (planted_served_places.cc).
void PlantKeptRows(bool keeps);

}  // namespace tacit::cuda::testing
