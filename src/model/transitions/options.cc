#include "model/transitions/options.h"

#include <fmt/ranges.h>

#include <charconv>

#include "base/check.h"

namespace tacit::model::transitions {
namespace {

constexpr std::string_view kRules = "rules ";

}  // namespace

// The words of rules 1 are those of programs that had no others, to the letter.
std::string Options::Text() const {
  const auto history = fmt::format(
      "history {} {} {} shares {} {} {} popularity {} {} prior {} {} {} {} {} cells {} {} {} {} {} "
      "{}",
      popularity_items, lags, lag_decay, popularity_share, table_share, stage_shares,
      popularity_least, popularity_deviations, rank_bins, fitting_rounds, ratio_least, ratio_most,
      prior_log_deviation, support_from, support_to, stage_cells, cells_at_signal, signal_unit,
      cells_power);
  const auto of_items = fmt::format(" {} {}", items_unit, items_power);
  const auto of_age = fmt::format(" {} {}", recent_age, recent_power);
  const auto words = [&](std::string_view items, std::string_view age) {
    return fmt::format("{}{} {} scores {} {}{} {} {} {} {} dense {} forget {} stream {} {} {}",
                       history, items, cells_most, reverse_weight, recent_items, age, recent_decay,
                       score_from, score_to, score_power, dense_cells_most, forget, share_signal,
                       share_power, popularity_share_most);
  };
  if (rules == 1) return words("", "");
  const auto of_rules = fmt::format("{}{} {}", kRules, rules, words(of_items, of_age));
  if (rules == 2) return of_rules;
  const auto of_ranks =
      fmt::format("{} ranks {} {} {}", of_rules, ranks_signal, ranks_power, ranks_share_least);
  if (rules == 3) return of_ranks;
  const auto of_kin =
      fmt::format("{} spread {} kin {} {}", of_ranks, share_spread, kin_for_each, kin_most);
  if (rules == 4) return of_kin;
  return fmt::format("{} tables {} {} {} {}", of_kin, tables_signal, tables_power,
                     tables_share_most, described_share_most);
}

Options Options::WithRules(uint32_t which) const {
  TACIT_CHECK(which >= 1 && which <= kNewestRules, "rules that this program knows");
  Options other = *this;
  const Options newest;
  other.rules = which;
  if (which == 1 && rules > 1) {
    other.share_signal = 2e4, other.share_power = 0.3, other.popularity_share_most = 0.75;
  } else if (which > 1 && rules == 1) {
    other.share_signal = newest.share_signal, other.share_power = newest.share_power;
    other.popularity_share_most = newest.popularity_share_most;
  }
  if (which < 3 && rules >= 3)
    other.reverse_weight = 0.25;
  else if (which >= 3 && rules < 3)
    other.reverse_weight = newest.reverse_weight;
  return other;
}

Result<uint32_t> RulesOf(std::string_view words) {
  if (!words.starts_with(kRules)) return 1;
  const std::string_view number =
      words.substr(kRules.size(), words.find(' ', kRules.size()) - kRules.size());
  uint32_t rules = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), rules);
  if (read.ec == std::errc() && read.ptr == number.data() + number.size() && rules > 1 &&
      rules <= kNewestRules)
    return rules;
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("rules '{}' of the counts are unknown, this program knows 1 to {}: a "
                          "later one made them",
                          number, kNewestRules));
}

}  // namespace tacit::model::transitions
