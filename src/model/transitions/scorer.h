#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/threads/worker_pool.h"
#include "model/transitions/estimate.h"

namespace tacit::model::transitions {

// An item and its score.
struct ScoredItem {
  uint32_t item = 0;
  float score = 0;
};

// Returns the cells that a scorer lists where not all pairs have room: those of the estimate, and
// with noise those whose scores are the largest by what is known of the items
// (Options::KinListed). None where all pairs have room.
Cells ListedCells(const Estimate& estimate, const Options& options, WorkerPool& workers);

// The working memory of Scorer::Top: some 5 bytes an item. Kept from question to question, so that
// none allocates.
class TopMemory {
 private:
  friend class Scorer;
  struct Head {
    float score = 0;
    uint32_t item = 0, group = 0, at = 0;
  };
  std::vector<float> scores;    // per item: of the table; else what the listed cells add
  std::vector<uint8_t> listed;  // per item: one of `touched`
  std::vector<uint32_t> touched;
  std::vector<float> of_group;
  std::vector<Head> heads;
};

// Scores the items that may follow a history: score(b) = sum over its last items a of
// RecentWeights(age) ((W_ab + r W_ba) / (p_a^from p_b^to))^power. Keeps nothing of the estimate.
// Thread-safe.
//
// If the items are few enough it is a table of all cells. Beyond that, the cells that were measured
// are listed, and those that are likely by their kinship (Options::KinListed). A cell that is
// listed in neither direction has the prior without kinship, kappa (F_ab + r F_ba) p_a p_b, where F
// depends on the groups of both items alone: their bins of popularity, years and genre. A row is
// that product and a list of differences, so that memory is that of the listed cells and of a table
// of groups; and the likeliest items are those listed and the first of each group.
class Scorer {
 public:
  Scorer(const Estimate& estimate, const Options& options, WorkerPool& workers);
  // The same, of ListedCells, which scorers with other weights of a pair backwards have in common.
  Scorer(const Estimate& estimate, const Options& options, const Cells& listed,
         WorkerPool& workers);

  uint32_t items() const { return items_; }
  // The score of item b after item a, for all pairs, if the items are few enough; else empty.
  std::span<const float> table() const { return dense_; }
  // The groups of a scorer without a table.
  uint32_t groups() const { return static_cast<uint32_t>(group_end_.size()); }

  // Sets every item's score; 0 for all if there is no history. REQUIRES items() scores, and a
  // history of items of the catalogue.
  void Score(std::span<const uint32_t> history, std::span<float> scores) const;
  // The mean of the scores of all pairs. Without a table it takes the work of the groups' pairs and
  // of the listed cells.
  double MeanScore() const;
  // Sets scores[i] to that of item to[i] after `item` alone, 0 if they are one. REQUIRES ascending
  // items.
  void ScorePairs(uint32_t item, std::span<const uint32_t> to, std::span<float> scores) const;
  // The item of a history that most of this item's score comes from, and its share of the score; a
  // share of 0 if there is no score, or no history. An item that comes again counts together.
  ScoredItem MostDue(std::span<const uint32_t> history, uint32_t item) const;
  // Sets `top` to the `most` items of the best scores, best first, without those that are marked in
  // `left_out` (it may be empty). Ties go to the earlier item, except where two popularities
  // round to one product. Takes the work of the listed cells of the history and of the
  // groups, not of the catalogue, unless these cells are as many or most of it is left out.
  void Top(std::span<const uint32_t> history, size_t most, std::span<const uint8_t> left_out,
           TopMemory* memory, std::vector<ScoredItem>* top) const;

 private:
  void FillDense(const Estimate& estimate, WorkerPool& workers);
  void FillSparse(const Estimate& estimate, const Cells& listed, WorkerPool& workers);
  void FillGroups(const Estimate& estimate, WorkerPool& workers);
  void FillRows(const Cells& cells);

  // Returns true if the history's lists are short beside the catalogue.
  bool IsShort(std::span<const uint32_t> history) const;
  // Calls visit(item, weight) for the last items of a history.
  template <class Visit>
  void ForRecent(std::span<const uint32_t> history, const Visit& visit) const;
  std::pair<uint64_t, uint64_t> Row(uint32_t a) const {
    return {a == 0 ? 0 : row_end_[a - 1], row_end_[a]};
  }
  // The factors of a's group with every group.
  const float* GroupFactors(uint32_t a) const {
    return &group_factor_[size_t{group_[a]} * groups()];
  }
  // The score of a pair that is not listed.
  float Unlisted(uint32_t a, uint32_t b) const {
    return from_[a] * GroupFactors(a)[group_[b]] * to_[b];
  }
  // Sets the score of each group's items after a history, over p_b's part.
  void ScoreGroups(std::span<const uint32_t> history, std::vector<float>* scores) const;

  const uint32_t items_;
  const Options options_;
  const std::vector<float> recent_;                // the weights of a history's last items
  std::vector<float> dense_;                       // items x items, where they fit
  std::vector<float> from_, to_;                   // else: what the unmeasured are products of
  std::vector<uint32_t> group_;                    //   per item
  std::vector<uint32_t> group_end_, group_items_;  // of a group, by falling popularity
  std::vector<float> group_factor_;                // groups x groups
  std::vector<uint64_t> row_end_;                  // and per item a, where it differs:
  std::vector<uint32_t> column_;                   //   b; a itself is always there
  std::vector<float> difference_;                  //   how much
};

}  // namespace tacit::model::transitions
