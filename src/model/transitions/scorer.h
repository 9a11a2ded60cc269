#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/worker_pool.h"
#include "model/transitions/estimate.h"

namespace tacit::model::transitions {

// Scores the items that may follow a history: score(b) = sum over its last items a of decay^age
// ((W_ab + r W_ba) / (p_a^from p_b^to))^power. Keeps nothing of the estimate. Thread-safe.
//
// If the items are few enough it is a table of all cells. Beyond that, a cell that was measured in
// neither direction has the prior without its tables, kappa (1 + r) p_a p_b, which is a product of
// a's and b's parts: a row is that product and a list of differences, so that memory is that of the
// cells that were measured.
class Scorer {
 public:
  Scorer(const Estimate& estimate, const Options& options, WorkerPool& workers);

  uint32_t items() const { return items_; }
  // The score of item b after item a, for all pairs, if the items are few enough; else empty.
  std::span<const float> table() const { return dense_; }
  // Sets every item's score; 0 for all if there is no history. REQUIRES items() scores, and a
  // history of items of the catalogue.
  void Score(std::span<const uint32_t> history, std::span<float> scores) const;

 private:
  void FillDense(const Estimate& estimate, WorkerPool& workers);
  void FillSparse(const Estimate& estimate, WorkerPool& workers);

  const uint32_t items_;
  const Options options_;
  std::vector<float> dense_;       // items x items, where they fit
  std::vector<float> from_, to_;   // else: what the unmeasured are products of
  std::vector<uint64_t> row_end_;  // and per item a, where it differs:
  std::vector<uint32_t> column_;   //   b
  std::vector<float> difference_;  //   how much
};

}  // namespace tacit::model::transitions
