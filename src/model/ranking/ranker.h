#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/ranking/candidates.h"

namespace tacit::model::ranking {

// The function that orders candidates: z(x) = a x + o max(0, V' x + c), x the features of a
// candidate. It has so few parameters that the noise they are released with is next to nothing
// beside what all users contribute. Laid out as [a | V, a row per feature | c | o].
inline constexpr size_t kHidden = 16;
inline constexpr size_t kRankerParameters = kFeatures + kFeatures * kHidden + 2 * kHidden;

// Returns parameters that order as the counts do; V is drawn by the seed, which is public.
std::vector<float> InitialRanker(uint64_t seed);

// One worker's pass through the model; not thread-safe.
class RankerPass {
 public:
  // Returns z of every candidate. REQUIRES rows of kFeatures numbers, one after the other.
  std::span<const float> Score(std::span<const float> parameters, std::span<const float> rows);
  // Adds the gradient of (1 - p^q) / q, where p is the softmax over the candidates at `answer`:
  // between likelihood (q to 0) and how often it comes first (q = 1), so that an answer that cannot
  // be guessed anyway pulls little. Returns the loss. REQUIRES q in (0, 1] and an answer among the
  // candidates.
  double AddGradient(std::span<const float> parameters, std::span<const float> rows, size_t answer,
                     double q, std::span<float> gradient);

 private:
  std::vector<float> z_, hidden_;  // per candidate; with kHidden numbers each
};

// Scores every item of the catalogue as the next one after this history: the source's `most`
// candidates in the ranker's order, at 1 and above, and below 0 all other items, as the counts
// order them. Usable from any thread.
void ScoreRanked(const CandidateSource& source, std::span<const float> parameters, size_t most,
                 std::span<const uint32_t> history, std::span<float> scores);

// Sets `top` to the `count` best of these scores, best first, without the items marked in
// `left_out` (per item; may be empty), nor those of the history. The source's `most` candidates are
// found among the others. Takes the work of the candidates, not of the catalogue, where the source
// has no table.
void TopRanked(const CandidateSource& source, std::span<const float> parameters, size_t most,
               std::span<const uint32_t> history, size_t count, std::span<const uint8_t> left_out,
               Candidates* candidates, RankerPass* pass, std::vector<transitions::ScoredItem>* top);

}  // namespace tacit::model::ranking
