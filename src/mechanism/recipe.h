#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mechanism/grid.h"

namespace tacit::mechanism {

// All that a step of a mechanism does, as numbers: for an engine that carries it out elsewhere,
// such as on a GPU. It holds for the step under way; spans are valid until the mechanism changes.
struct Recipe {
  // False: every touched row is written, and nothing is clipped or noised. Of what follows `factor`
  // alone counts then.
  bool is_private = true;
  // The choice among touched rows. Mechanism::DrawExtra draws those that no unit touched.
  enum class Rows {
    kInside,     // those of the vocabulary, or all where there is none
    kThreshold,  // the same, but only those whose noisy contributions reach the threshold
    kEvery,      // every row of the space, touched or not
  };
  Rows rows = Rows::kInside;
  bool has_vocabulary = false;
  std::span<const uint64_t> vocabulary = {};  // ascending
  // For kThreshold: a unit adds ContributionSteps(clip, grid, rows inside) to each of its rows; the
  // noise and the threshold are in steps.
  double selection_clip = 0;
  Grid selection_grid = {};
  int64_t threshold = 0;

  // The law that scales units, as the clips of clipper.h.
  enum class Clip { kFlat, kAutomatic, kPerLayer };
  Clip clip = Clip::kFlat;
  double bound = 0;                      // C
  std::vector<double> root_shares = {};  // for kPerLayer, C_g / C, a little less; if empty, equal
  Grid grid = {};                        // of the sums and their noise
  double factor = 0;                     // 1 / B
};

}  // namespace tacit::mechanism
