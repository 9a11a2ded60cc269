#include "model/transitions/options.h"

#include <fmt/ranges.h>

namespace tacit::model::transitions {

std::string Options::Text() const {
  return fmt::format(
      "history {} {} {} shares {} {} {} popularity {} {} prior {} {} {} {} {} cells {} {} {} {} {} "
      "{} {} {} {} scores {} {} {} {} {} {} {} {} dense {} forget {} stream {} {} {} ranks {} {} "
      "{} "
      "spread {} kin {} {} tables {} {} {} {}",
      popularity_items, lags, lag_decay, popularity_share, table_share, stage_shares,
      popularity_least, popularity_deviations, rank_bins, fitting_rounds, ratio_least, ratio_most,
      prior_log_deviation, support_from, support_to, stage_cells, cells_at_signal, signal_unit,
      cells_power, items_unit, items_power, cells_most, reverse_weight, recent_items, recent_age,
      recent_power, recent_decay, score_from, score_to, score_power, dense_cells_most, forget,
      share_signal, share_power, popularity_share_most, ranks_signal, ranks_power,
      ranks_share_least, share_spread, kin_for_each, kin_most, tables_signal, tables_power,
      tables_share_most, described_share_most);
}

}  // namespace tacit::model::transitions
