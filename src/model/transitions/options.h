#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace tacit::model::transitions {

inline constexpr size_t kStages = 3;

// The constants of the shaped count model (docs/internals/model.md, Transitions), and of its
// rules (rules.h). All of them are public: they are set before the data is seen, and none depends
// on it except through what was released.
struct Options {
  // The reading of a history.
  uint32_t popularity_items = 600;  // the last ones count
  uint32_t lags = 10;               // items b at most this far after a make a pair (a, b)
  double lag_decay = 0.8;           // of a pair's weight, per lag

  // The split of mu: the shares of mu of the popularity and of each table; the rest of mu^2 is
  // split between the measurements.
  double popularity_share = 0.25;
  double table_share = 0.08;
  // If the released numbers so far say that counts hardly stand out (the signal for each item is
  // under `share_signal`), popularity has more: popularity_share (share_signal items /
  // signal)^share_power, at most popularity_share_most. The signal counts for less here where
  // popularity hardly differs between items: by the deviation of the items' popularity over its
  // mean, over share_spread, if that is below 1.
  double share_signal = 8, share_power = 1.0 / 3, popularity_share_most = 0.95, share_spread = 3;
  std::array<double, kStages> stage_shares = {0.34, 0.33, 0.33};
  // The table of ranks has table_share (signal / (ranks_signal items))^ranks_power where the signal
  // for each item is under `ranks_signal`, at least ranks_share_least.
  double ranks_signal = 0.4, ranks_power = 2, ranks_share_least = 8e-4;
  // Each of the other tables, those of what is described, has table_share
  // (tables_signal / signal)^tables_power where the signal of all items together is under
  // tables_signal, at most tables_share_most. Then popularity has described_share_most at most.
  double tables_signal = 225e3, tables_power = 0.5, tables_share_most = 0.28;
  double described_share_most = 0.85;

  // Popularity is raised to at least these: a count, and deviations of the noise.
  double popularity_least = 1;
  double popularity_deviations = 0.3;

  // The prior. A table's buckets are believed as all of them together say (trust.h).
  uint32_t rank_bins = 12;
  uint32_t fitting_rounds = 2;
  double ratio_least = 0.05, ratio_most = 30;

  // The cells to measure: the best by estimate / (p_a^from p_b^to). The first stage measures
  // `support` = cells_at_signal (signal / signal_unit)^cells_power (items / items_unit)^items_power
  // times stage_cells[0] of them. The signal is mu times the noisy sum of all popularity: it says
  // how far counts stand out.
  double support_from = 0.3, support_to = 0.4;
  std::array<double, kStages> stage_cells = {1.3, 1.0 / 4, 1.0 / 15};
  double cells_at_signal = 1e6, signal_unit = 75e3, cells_power = 1.4;
  double items_unit = 3416, items_power = 0.25;
  uint64_t cells_most = uint64_t{1} << 27;  // for any signal: memory is bounded

  // In a stream: the factor by which a period's numbers count in the next one. Below 1, what people
  // no longer do fades.
  double forget = 1;

  double prior_log_deviation = 1.8;  // of a cell's weight around kappa times the prior

  // Scores.
  double reverse_weight = 0.1;  // of b before a
  // The last items of a history count with weight (1 + age / recent_age)^-recent_power.
  uint32_t recent_items = 20;
  double recent_age = 2, recent_power = 1.5;
  // Per item of age, where a decay is what counts: in the ranker's features and logits of counts.
  double recent_decay = 0.7;
  double score_from = 0.8, score_to = 0.4, score_power = 0.3;
  // The pairs that are most likely by the descriptions of their items, this many for each item and
  // in all, are scored by their kinship, measured or not, if items are described and not all pairs
  // have room.
  uint64_t kin_for_each = 64, kin_most = uint64_t{1} << 24;

  // The most cells for which work goes over every cell; where there are more, samples or the listed
  // cells stand for all.
  uint64_t dense_cells_most = uint64_t{1} << 25;
  bool IsDense(uint64_t items) const { return items * items <= dense_cells_most; }

  // The most cells that a stage measures of this many items; the pairs of an item with itself are
  // none.
  uint64_t CellsMost(uint64_t items) const {
    return items == 0 ? 0 : std::min(cells_most, items * (items - 1));
  }

  // The pairs that are listed for their kinship.
  uint64_t KinListed(uint64_t items) const {
    return std::min({kin_for_each * items, kin_most, CellsMost(items)});
  }

  // All of the constants, in words: a model made with others is another model.
  std::string Text() const;
};

}  // namespace tacit::model::transitions
