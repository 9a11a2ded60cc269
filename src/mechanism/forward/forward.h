#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "mechanism/grid.h"
#include "mechanism/mechanism.h"
#include "noise/noise.h"

namespace tacit::mechanism {

// The noise on what a model is shown of each record, in slots of the same number of floats.
struct RepresentationNoise {
  double clip = 0;  // C: the length of a record's slot
  Grid grid = {};   // of its numbers and their noise
  // Public: slots come in multiples of it, and gradients are divided by it.
  double expected_batch = 0;

  // Clips each slot to C, again if it was clipped before, less what rounding to the grid can add,
  // and adds noise to every number of every slot. A slot that is not finite counts as empty.
  void Add(noise::NoiseSource& source, size_t width, std::span<float> slots) const;
};

struct ForwardOptions {
  double clip = 1;            // C
  double sigma = 0;           // noise on a representation, in units of the clip
  double expected_batch = 0;  // public
  double sampling_rate = 1;   // of the participation that cuts its steps; for the charge
};
// DP-FP (paper 001): noise on each record's representation. All that lies below the noise must be
// frozen, or trained by a mechanism that is charged. Labels are not covered, and coins count as
// known.
std::unique_ptr<Mechanism> MakeForward(const ForwardOptions& options);

}  // namespace tacit::mechanism
