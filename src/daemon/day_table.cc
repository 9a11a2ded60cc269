#include "daemon/day_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace tacit::daemon {
namespace {

std::string DayEpsilon(double epsilon) {
  return std::isfinite(epsilon) ? fmt::format("{:.4f}", epsilon) : "-";
}

// The line on what privacy a table of days cost; `seen` names the columns that carry no noise.
std::string CostLine(double epsilon, const privacy::Promise& promise, std::string_view seen) {
  if (!std::isfinite(epsilon)) return "\nThis run was not private.\n";
  const bool of_users = promise.unit == privacy::Unit::kUser;
  return fmt::format(
      "\nepsilon {:.4f} at delta {} for the whole stream: {},\nso a longer stream costs {} more. "
      "{} not noised: for the operator's eyes.\n",
      epsilon, promise.delta,
      of_users ? fmt::format("no user is ever in more than {} steps", promise.bounds.allowance)
               : "every event took part in its steps only",
      of_users ? "no user" : "no event", seen);
}

}  // namespace

std::string DayTable(const std::vector<train::DayRow>& days,
                     const std::map<std::string, double>& best_auc, double epsilon,
                     const privacy::Promise& promise) {
  const bool known = !best_auc.empty();
  std::string table =
      fmt::format("{:<18} {:>9} {:>7} {:>8} {:>8}", "log", "events", "steps", "log loss", "AUC");
  if (known) table += fmt::format(" {:>8} {:>11}", "best", "gap closed");
  table += fmt::format(" {:>9} {:>13}\n", "epsilon", "rows written");
  for (const train::DayRow& day : days) {
    const double auc = day.auc.Auc();
    table += fmt::format("{:<18} {:>9} {:>7} {:>8.4f} {:>8.4f}", day.name.empty() ? "-" : day.name,
                         WithThousands(day.events), day.steps,
                         day.loss_sum / std::max<double>(1, static_cast<double>(day.events)), auc);
    if (known) {
      const auto best = best_auc.find(day.name);
      table += best == best_auc.end() ? fmt::format(" {:>8} {:>11}", "-", "-")
                                      : fmt::format(" {:>8.4f} {:>9.0f} %", best->second,
                                                    100 * (auc - 0.5) / (best->second - 0.5));
    }
    table +=
        fmt::format(" {:>9} {:>13}\n", DayEpsilon(day.epsilon), WithThousands(day.rows_written));
  }
  return table + CostLine(epsilon, promise, "AUC and loss are");
}

std::string RankedDayTable(const std::vector<train::DayRow>& days, double epsilon,
                           const privacy::Promise& promise) {
  std::string table = fmt::format("{:<18} {:>9} {:>7} {:>9} {:>8} {:>9}\n", "log", "events",
                                  "steps", "asked", "HIT@10", "epsilon");
  for (const train::DayRow& day : days)
    table += fmt::format(
        "{:<18} {:>9} {:>7} {:>9} {:>8} {:>9}\n", day.name.empty() ? "-" : day.name,
        WithThousands(day.events), day.steps, WithThousands(day.asked),
        day.asked == 0
            ? "-"
            : fmt::format("{:.4f}", static_cast<double>(day.hits) / static_cast<double>(day.asked)),
        DayEpsilon(day.epsilon));
  return table + CostLine(epsilon, promise, "Hits are");
}

}  // namespace tacit::daemon
