#pragma once

#include "cuda/kernels/rows/scales.h"
#include "mechanism/recipe.h"

namespace tacit::cuda {

inline ClipLaw LawOf(mechanism::Recipe::Clip clip) {
  switch (clip) {
    case mechanism::Recipe::Clip::kFlat:
      return ClipLaw::kFlat;
    case mechanism::Recipe::Clip::kAutomatic:
      return ClipLaw::kAutomatic;
    case mechanism::Recipe::Clip::kPerLayer:
      return ClipLaw::kPerLayer;
  }
  return ClipLaw::kFlat;
}

}  // namespace tacit::cuda
