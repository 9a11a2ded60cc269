#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace tacit::model::transitions {

inline constexpr size_t kStages = 3;

// The constants of the shaped count model (model/README.md, Transitions). All of them are public:
// they are set before the data is seen, and none depends on it except through what was released.
struct Options {
  // The reading of a history.
  uint32_t popularity_items = 600;  // the last ones count
  uint32_t lags = 10;               // items b at most this far after a make a pair (a, b)
  double lag_decay = 0.8;           // of a pair's weight, per lag

  // The split of mu: the shares of mu of the popularity and of each table; the rest of mu^2 is
  // split between the measurements.
  double popularity_share = 0.25;
  double table_share = 0.08;
  // In a stream, if the released numbers so far say that pairs hardly stand out (the signal, below,
  // is under `share_signal`), popularity has more: popularity_share (share_signal /
  // signal)^share_power, at most popularity_share_most.
  double share_signal = 2e4, share_power = 0.3, popularity_share_most = 0.75;
  std::array<double, kStages> stage_shares = {0.34, 0.33, 0.33};

  // Popularity is raised to at least these: a count, and deviations of the noise.
  double popularity_least = 1;
  double popularity_deviations = 0.3;

  // The prior.
  uint32_t rank_bins = 12;
  uint32_t fitting_rounds = 2;
  double ratio_least = 0.05, ratio_most = 30;

  // The cells to measure: the best by estimate / (p_a^from p_b^to). The first stage measures
  // `support` = cells_at_signal (signal / signal_unit)^cells_power times stage_cells[0] of them.
  // The signal is mu times the noisy sum of all popularity: it says how far counts stand out.
  double support_from = 0.3, support_to = 0.4;
  std::array<double, kStages> stage_cells = {1.3, 1.0 / 4, 1.0 / 15};
  double cells_at_signal = 1e6, signal_unit = 75e3, cells_power = 1.4;
  uint64_t cells_most = uint64_t{1} << 27;  // whatever the signal: memory is bounded

  // In a stream: the factor by which a period's numbers count in the next one. Below 1, what people
  // no longer do fades.
  double forget = 1;

  double prior_log_deviation = 1.8;  // of a cell's weight around kappa times the prior

  // Scores.
  double reverse_weight = 0.25;  // of b before a
  uint32_t recent_items = 20;
  double recent_decay = 0.7;
  double score_from = 0.8, score_to = 0.4, score_power = 0.3;

  // The most cells for which work goes over every cell; where there are more, samples or the listed
  // cells stand for all.
  uint64_t dense_cells_most = uint64_t{1} << 25;
  bool IsDense(uint64_t items) const { return items * items <= dense_cells_most; }

  // The most cells that a stage measures of this many items; the pairs of an item with itself are
  // none.
  uint64_t CellsMost(uint64_t items) const {
    return items == 0 ? 0 : std::min(cells_most, items * (items - 1));
  }

  // All of the constants, in words: a model made with others is another model.
  std::string Text() const;
};

}  // namespace tacit::model::transitions
