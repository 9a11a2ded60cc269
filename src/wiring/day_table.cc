#include "wiring/day_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "console/text_table.h"
#include "train/learner/baseline.h"
#include "wiring/plans/ground_truth.h"

namespace tacit::wiring {
namespace {

std::string DayEpsilon(double epsilon) {
  return std::isfinite(epsilon) ? fmt::format("{:.4f}", epsilon) : "-";
}

// The parts of a line that a held-out day has nothing to say of.
std::string StepsOf(const train::DayRow& day) {
  return day.held_out ? "held" : fmt::format("{}", day.steps);
}
std::string EpsilonOf(const train::DayRow& day) {
  return day.held_out ? "out" : DayEpsilon(day.epsilon);
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

// A figure with four digits, or "-" where there is none.
std::string Figure(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-";
}

// The sentence on days when a constant would have predicted better; "" if there is none.
std::string BelowConstant(const std::vector<train::DayRow>& days) {
  const auto below = std::ranges::count_if(
      days, [](const train::DayRow& day) { return train::EntropyOf(day) >= 1; });
  if (below == 0) return "";
  return fmt::format(
      "On {} of {} days the best constant would have predicted no worse (NE of 1 and more).\n",
      below, days.size());
}

// The columns of one day's predictions: log loss, NE, predicted clicks over clicks, AUC.
std::string PredictedOf(const train::DayRow& day) {
  if (day.events == 0)
    return fmt::format(" {:>8} {:>7} {:>7} {:>8} {:>7}", "-", "-", "-", "-", "-");
  return fmt::format(
      " {:>8} {:>7} {:>7} {:>8} {:>7}", Figure(day.loss_sum / static_cast<double>(day.events)),
      Figure(train::EntropyOf(day)), Figure(train::Calibration(day.predicted, day.clicks)),
      Figure(day.auc), Figure(day.auc_deviation));
}

std::string DayTable(const std::vector<train::DayRow>& days,
                     const std::map<std::string, double>& best_auc, double epsilon,
                     const privacy::Promise& promise) {
  const bool known = !best_auc.empty();
  std::string table = fmt::format("{:<18} {:>9} {:>7} {:>8} {:>7} {:>7} {:>8} {:>7}", "log",
                                  "events", "steps", "log loss", "NE", "calib.", "AUC", "+-");
  if (known) table += fmt::format(" {:>8} {:>11}", "best", "gap closed");
  table += fmt::format(" {:>9} {:>13}\n", "epsilon", "rows written");
  for (const train::DayRow& day : days) {
    table += fmt::format("{:<18} {:>9} {:>7}", day.name.empty() ? "-" : day.name,
                         WithThousands(day.events), StepsOf(day)) +
             PredictedOf(day);
    if (known) {
      const auto best = best_auc.find(day.name);
      table += best == best_auc.end() ? fmt::format(" {:>8} {:>11}", "-", "-")
                                      : fmt::format(" {:>8.4f} {:>9.0f} %", best->second,
                                                    100 * (day.auc - 0.5) / (best->second - 0.5));
    }
    table += fmt::format(" {:>9} {:>13}\n", EpsilonOf(day), WithThousands(day.rows_written));
  }
  table +=
      "\nNE: log loss over that of the best constant. calib.: labels of 1 predicted over those "
      "that came.\n";
  return table + BelowConstant(days) + CostLine(epsilon, promise, "AUC and loss are");
}

std::string SideBySide(const std::vector<LearnerDays>& learners,
                       const std::map<std::string, double>& best_auc) {
  if (learners.size() < 2) return "";
  console::TextLines lines(2);
  lines[0] = {"AUC"};
  lines[1] = {"epsilon"};
  std::map<std::string, size_t> line_of;  // by the day's name
  for (const LearnerDays& learner : learners)
    for (const train::DayRow& day : learner.days)
      if (line_of.emplace(day.name, lines.size()).second)
        lines.push_back({day.name.empty() ? "-" : day.name});
  const auto add = [&](const std::string& title, const std::string& under, const auto& auc_of) {
    lines[0].push_back(title);
    lines[1].push_back(under);
    for (const auto& [day, line] : line_of) {
      const std::optional<double> auc = auc_of(day);
      lines[line].push_back(auc ? fmt::format("{:.4f}", *auc) : "-");
    }
  };
  for (const LearnerDays& learner : learners)
    add(learner.id, DayEpsilon(learner.epsilon),
        [&](const std::string& name) -> std::optional<double> {
          const auto day = std::ranges::find(learner.days, name, &train::DayRow::name);
          if (day == learner.days.end()) return std::nullopt;
          return day->auc;
        });
  if (!best_auc.empty())
    add("best", "", [&](const std::string& name) -> std::optional<double> {
      const auto best = best_auc.find(name);
      if (best == best_auc.end()) return std::nullopt;
      return best->second;
    });
  return console::LayOut(lines, {0});
}

// HIT@10 and NDCG@10 of the model or of a baseline.
std::string PlacedOf(const train::DayRow& day, const train::RankScore& score) {
  return fmt::format("{:>9} {:>7}", Figure(day.ranked.Hit(score)), Figure(day.ranked.Ndcg(score)));
}

std::string RankedDayTable(const std::vector<train::DayRow>& days, double epsilon,
                           const privacy::Promise& promise) {
  std::string table =
      fmt::format("{:<18} {:>9} {:>7} {:>9} {:>9} {:>7} {:>17} {:>17} {:>9}\n", "log", "events",
                  "steps", "asked", "HIT@10", "NDCG@10", "popularity's", "successor's", "epsilon");
  for (const train::DayRow& day : days)
    table +=
        fmt::format("{:<18} {:>9} {:>7} {:>9} {} {} {} {:>9}\n", day.name.empty() ? "-" : day.name,
                    WithThousands(day.events), StepsOf(day), WithThousands(day.ranked.asked),
                    PlacedOf(day, day.ranked.model), PlacedOf(day, day.ranked.popular),
                    PlacedOf(day, day.ranked.successor), EpsilonOf(day));
  table +=
      "\npopularity: the most popular items so far; successor: those that came most often right "
      "after the\nlast item. Both are counted without noise, and know no more than the model "
      "does.\n";
  const auto below = std::ranges::count_if(
      days, [](const train::DayRow& day) { return train::IsBelowPopularity(day.ranked); });
  if (below > 0)
    table +=
        fmt::format("On {} of {} days the most popular items had more hits.\n", below, days.size());
  return table + CostLine(epsilon, promise, "Hits are");
}

std::string LearntTables(const Assembly& assembly, const train::Progress& progress) {
  const auto best = ReadBestAuc(assembly.config.source.files);
  std::string tables;
  std::vector<LearnerDays> clicks;
  for (const LearnerPlan& plan : assembly.learners) {
    const auto days = progress.days(plan.index.value);
    if (days.empty()) continue;
    const double epsilon = progress.view(plan.index.value).epsilon;
    tables += fmt::format("\nlearner {}\n{}", plan.id,
                          plan.recommends ? RankedDayTable(days, epsilon, plan.promise)
                                          : DayTable(days, best, epsilon, plan.promise));
    if (!plan.recommends) clicks.push_back({plan.id, epsilon, days});
  }
  if (clicks.size() > 1) tables += fmt::format("\nside by side\n{}", SideBySide(clicks, best));
  return tables;
}

}  // namespace tacit::wiring
