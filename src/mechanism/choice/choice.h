#pragma once

#include <cstdint>
#include <memory>

#include "base/row_space.h"
#include "mechanism/row_selector.h"
#include "mechanism/vocabulary.h"

// Rows by one-shot Gumbel top-k (gumbel_top.h), which no sampling amplifies. `space` must outlive
// what is made here.
namespace tacit::mechanism {

struct ExponentialOptions {
  uint64_t rows = 0;   // k: how many are kept
  double epsilon = 0;  // eps_s: Gumbel scale = clip / epsilon; costs rows * epsilon^2 / 8 zCDP
  double clip = 1;     // of one unit's gradient norm of one row
};
// The k rows of the largest summed clipped gradient norms, over the whole id space.
std::unique_ptr<RowSelector> MakeExponentialRows(const RowSpace& space,
                                                 const ExponentialOptions& options);

// A vocabulary of the rows with the largest counts, to which a unit adds at most 1 each. Counts are
// not released, so nothing runs on. It costs the zCDP of one Gaussian of the noise multiplier, rho
// = 1 / (2 multiplier^2); paper 003 calls it (epsilon, 0)-DP, which it is not. 4 bytes per row of
// the space while a period is shown. REQUIRES a source that is not public.
std::unique_ptr<Vocabulary> MakeTopRows(const RowSpace& space, const VocabularyOptions& options);

}  // namespace tacit::mechanism
