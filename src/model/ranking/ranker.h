#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/ranking/candidates.h"

namespace tacit::model::ranking {

// What candidates are put in order by: z(x) = a x + o max(0, V' x + c), x what speaks for a
// candidate. So few parameters that the noise they are released with is next to nothing beside what
// all users say of them. Laid out as [a | V, a row per feature | c | o].
inline constexpr size_t kHidden = 16;
inline constexpr size_t kRankerParameters = kFeatures + kFeatures * kHidden + 2 * kHidden;

// Orders as the counts do; V is drawn by the seed, which is public.
std::vector<float> InitialRanker(uint64_t seed);

// One worker's way through the model; not thread-safe.
class RankerPass {
 public:
  // z of every candidate. REQUIRES rows of kFeatures numbers, one after the other.
  std::span<const float> Score(std::span<const float> parameters, std::span<const float> rows);
  // Adds the gradient of (1 - p^q) / q, p what the softmax over the candidates gives to the one at
  // `answer`: between likelihood (q to 0) and how often it comes first (q = 1), so that what cannot
  // be guessed anyway pulls little. The loss is returned. REQUIRES q in (0, 1] and an answer among
  // the candidates.
  double AddGradient(std::span<const float> parameters, std::span<const float> rows, size_t answer,
                     double q, std::span<float> gradient);

 private:
  std::vector<float> z_, hidden_;  // per candidate; with kHidden numbers each
};

}  // namespace tacit::model::ranking
