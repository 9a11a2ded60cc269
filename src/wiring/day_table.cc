#include "wiring/day_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/interval.h"
#include "base/text.h"
#include "base/words.h"
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

// The sentence on users whose allowance was used up; "" if there was no such user.
std::string LeftOutLine(const UsersCame& came) {
  if (came.users_left_out == 0) return "";
  const auto share = [](uint64_t left_out, uint64_t all) {
    return PercentText(static_cast<double>(left_out) / static_cast<double>(all));
  };
  return fmt::format(
      "{} of users and {} of records ({} of {}) were left out: allowances "
      "(participation.max_participations)\nwere used up. A user is counted once in each step.\n",
      share(came.users_left_out, came.users), share(came.records_left_out, came.records),
      WithThousands(came.records_left_out), WithThousands(came.records));
}

// The name of a learner's row; `last_file`: of the row before it.
std::string NameOf(const train::DayRow& day, const std::string& last_file) {
  if (!day.name.empty()) return day.name;
  return last_file.empty() ? "-" : "after " + last_file;
}

// The place of a row in the log. Rows of two learners are of one day where they end with the same
// files, or where both come after the same one.
using DayPlace = std::tuple<bool, uint64_t, uint64_t>;
DayPlace PlaceOf(const train::DayRow& day, const train::DayRow* before) {
  constexpr uint64_t kRest = UINT64_MAX;  // no file ends in it
  if (day.end.files > 0) return {day.held_out, day.end.offset, day.end.files};
  return {day.held_out, before == nullptr ? 0 : before->end.offset, kRest};
}

// The width of the names of rows.
size_t NameWidth(const LearnerDays& learner) {
  size_t width = 18;
  std::string last_file;
  for (const train::DayRow& day : learner.days) {
    width = std::max(width, NameOf(day, last_file).size());
    last_file = day.name;
  }
  return width;
}

// Calls `write` with a day's name, figures and row, once more with the part of the day that was
// predicted after the learner's first release, where the day has such a part, and at last with all
// predictions that are judged, where they are of several rows: `day` is null in both.
template <class Write>
void ForRows(const LearnerDays& learner, const Write& write) {
  const bool held_out = std::ranges::any_of(learner.days, &train::DayRow::held_out);
  size_t judged = 0;
  std::string last_file;
  for (const train::DayRow& day : learner.days) {
    write(NameOf(day, last_file), day, &day);
    if (day.after_release) write("  since release 1", *day.after_release, nullptr);
    if (day.held_out == held_out && day.Judged() != nullptr) ++judged;
    last_file = day.name;
  }
  if (judged > 1 && learner.judged)
    write(held_out ? "all held out" : "since release 1", *learner.judged, nullptr);
}

// The sentence on days when a baseline was the better answer, and why; "" if there is none.
template <class IsBelow>
std::string BelowBaseline(const std::vector<train::DayRow>& days, const IsBelow& is_below,
                          std::string_view words) {
  const auto below = std::ranges::count_if(days, [&](const train::DayRow& day) {
    return day.Judged() != nullptr && is_below(*day.Judged());
  });
  return below == 0 ? ""
                    : fmt::format("On {} of {} {}.\n", below, Counted(days.size(), "day"), words);
}

// The columns of predictions: log loss, NE, predicted clicks over clicks, AUC and its interval.
std::string PredictedOf(const train::PredictedFigures& figures) {
  if (figures.events == 0)
    return fmt::format(" {:>8} {:>7} {:>7} {:>8} {:>11}", "-", "-", "-", "-", "-");
  return fmt::format(" {:>8} {:>7} {:>7} {:>8} {:>11}",
                     Figure(figures.loss_sum / static_cast<double>(figures.events)),
                     Figure(train::EntropyOf(figures)),
                     Figure(train::Calibration(figures.predicted, figures.clicks)),
                     Figure(figures.auc), Range(figures.AucInterval()));
}

// HIT@10 and NDCG@10 of a baseline.
std::string PlacedOf(const train::RankTotals& ranked, const train::RankScore& score) {
  return fmt::format("{:>9} {:>7}", Figure(ranked.Hit(score)), Figure(ranked.Ndcg(score)));
}

// Says why no user could be asked for a next item on some days; "" if users were asked on all.
std::string WhyNobodyWasAsked(const std::vector<train::DayRow>& days,
                              const privacy::Promise& promise) {
  size_t silent = 0;
  train::RankTotals not_asked;
  for (const train::DayRow& day : days)
    if (day.ranked.asked == 0) {
      ++silent;
      not_asked.Merge(day.ranked);
    }
  if (silent == 0) return "";
  std::string text = fmt::format(
      "On {} of {} nobody was asked for a next item: {} came before anything had been "
      "learnt,\n{} had no history, {} took nothing that they had not had before.\n",
      silent, Counted(days.size(), "day"), Counted(not_asked.without_model, "user"),
      WithThousands(not_asked.without_history), WithThousands(not_asked.without_news));
  const bool once = promise.unit == privacy::Unit::kUser && promise.bounds.allowance == 1;
  if (once && not_asked.without_history > 0)
    text +=
        "participation.max_participations 1 learns from each user once, so that nobody comes back "
        "with a history.\n`tacit evaluate --config X --held-out 20%` asks all users of the last "
        "records.\n";
  return text;
}

}  // namespace

std::string Figure(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-";
}

std::string Range(const Interval& interval) {
  return std::isfinite(interval.low) ? fmt::format("{:.3f}-{:.3f}", interval.low, interval.high)
                                     : "-";
}

std::string DayTable(const LearnerDays& learner, const std::map<std::string, double>& best_auc,
                     const privacy::Promise& promise) {
  const bool known = !best_auc.empty();
  const size_t width = NameWidth(learner);
  std::string table = fmt::format("{:<{}} {:>9} {:>7} {:>8} {:>7} {:>7} {:>8} {:>11}", "log", width,
                                  "events", "steps", "log loss", "NE", "calib.", "AUC", "95 %");
  if (known) table += fmt::format(" {:>8} {:>11}", "best", "gap closed");
  table += fmt::format(" {:>9} {:>13}\n", "epsilon", "rows written");
  ForRows(learner, [&](const std::string& name, const train::PredictedFigures& figures,
                       const train::DayRow* day) {
    table += fmt::format("{:<{}} {:>9} {:>7}", name, width, WithThousands(figures.events),
                         day == nullptr ? "" : StepsOf(*day)) +
             PredictedOf(figures);
    if (known) {
      const auto best = day == nullptr ? best_auc.end() : best_auc.find(day->name);
      table += best == best_auc.end()
                   ? fmt::format(" {:>8} {:>11}", "-", "-")
                   : fmt::format(" {:>8.4f} {:>9.0f} %", best->second,
                                 100 * (figures.auc - 0.5) / (best->second - 0.5));
    }
    if (day != nullptr)
      table += fmt::format(" {:>9} {:>13}", EpsilonOf(*day), WithThousands(day->rows_written));
    table += '\n';
  });
  table +=
      "\nNE: log loss over that of the best constant. calib.: labels of 1 predicted over those "
      "that came.\n";
  table += BelowBaseline(
      learner.days,
      [](const train::QualityPoint& predicted) { return train::EntropyOf(predicted) >= 1; },
      "the best constant would have predicted no worse (NE of 1 and more)");
  return table + LeftOutLine(learner.came) + CostLine(learner.epsilon, promise, "AUC and loss are");
}

std::string SideBySide(const std::vector<LearnerDays>& learners,
                       const std::map<std::string, double>& best_auc) {
  if (learners.size() < 2) return "";
  struct Row {
    std::string name;
    std::map<size_t, double> auc;  // by the learner's place among them
  };
  std::map<DayPlace, Row> rows;
  for (size_t i = 0; i < learners.size(); ++i) {
    const train::DayRow* before = nullptr;
    for (const train::DayRow& day : learners[i].days) {
      Row& row = rows[PlaceOf(day, before)];
      if (row.name.empty()) row.name = NameOf(day, before == nullptr ? "" : before->name);
      row.auc[i] = day.auc;
      before = &day;
    }
  }
  std::map<std::pair<bool, std::string>, size_t> alike;  // rows by what is held out, and by name
  for (const auto& [place, row] : rows) ++alike[{std::get<0>(place), row.name}];
  console::TextLines lines = {{"AUC"}, {"epsilon"}};
  for (const LearnerDays& learner : learners) {
    lines[0].push_back(learner.id);
    lines[1].push_back(DayEpsilon(learner.epsilon));
  }
  if (!best_auc.empty()) {
    lines[0].emplace_back("best");
    lines[1].emplace_back();
  }
  for (const auto& [place, row] : rows) {
    std::vector<std::string>& line = lines.emplace_back();
    const auto& [held_out, offset, files] = place;
    // Files of two folders may have one name.
    line.push_back(row.name +
                   (alike[{held_out, row.name}] > 1
                        ? fmt::format(", to offset {}", WithThousands(offset))
                        : "") +
                   (held_out ? ", held out" : ""));
    for (size_t i = 0; i < learners.size(); ++i)
      line.push_back(Figure(row.auc.contains(i) ? row.auc.at(i) : NAN));
    if (best_auc.empty()) continue;
    const auto best = best_auc.find(row.name);
    line.push_back(Figure(best == best_auc.end() ? NAN : best->second));
  }
  return console::LayOut(lines, {0});
}

std::string RankedDayTable(const LearnerDays& learner, const privacy::Promise& promise) {
  const size_t width = NameWidth(learner);
  std::string table = fmt::format(
      "{:<{}} {:>9} {:>7} {:>9} {:>9} {:>11} {:>7} {:>17} {:>17} {:>9}\n", "log", width, "events",
      "steps", "asked", "HIT@10", "95 %", "NDCG@10", "popularity's", "successor's", "epsilon");
  ForRows(learner, [&](const std::string& name, const train::PredictedFigures& figures,
                       const train::DayRow* day) {
    const train::RankTotals& ranked = figures.ranked;
    table += fmt::format("{:<{}} {:>9} {:>7} {:>9} {:>9} {:>11} {:>7} {} {} {:>9}\n", name, width,
                         WithThousands(figures.events), day == nullptr ? "" : StepsOf(*day),
                         WithThousands(ranked.asked), Figure(ranked.Hit(ranked.model)),
                         Range(ranked.HitInterval(ranked.model)), Figure(ranked.Ndcg(ranked.model)),
                         PlacedOf(ranked, ranked.popular), PlacedOf(ranked, ranked.successor),
                         day == nullptr ? "" : EpsilonOf(*day));
  });
  table +=
      "\npopularity: the most popular items so far; successor: those that came most often right "
      "after the\nlast item. Both are counted without noise, and know no more than the model "
      "does.\n";
  table += WhyNobodyWasAsked(learner.days, promise);
  table += BelowBaseline(
      learner.days,
      [](const train::QualityPoint& predicted) {
        return train::IsBelowPopularity(predicted.ranked);
      },
      "the most popular items were the better answer (HIT@10 or NDCG@10)");
  return table + LeftOutLine(learner.came) + CostLine(learner.epsilon, promise, "Hits are");
}

std::vector<LearnerDays> LearntDays(const Assembly& assembly, const train::Progress& progress,
                                    const train::StepTotals::View& totals) {
  std::vector<LearnerDays> learners;
  for (const LearnerPlan& plan : assembly.learners) {
    const train::Progress::View view = progress.view(plan.index.value);
    learners.push_back({.id = plan.id,
                        .epsilon = view.epsilon,
                        .days = progress.days(plan.index.value),
                        .judged = progress.judged(plan.index.value),
                        .came = totals.learners[plan.index.value].came,
                        .recommends = plan.recommends,
                        .promised = plan.promise.epsilon,
                        .delta = plan.promise.delta,
                        .items = assembly.items == nullptr ? 0 : assembly.items->items(),
                        .last_period = view.last_period,
                        .longest_period = view.longest_period,
                        .noise_in_units = plan.charge.Bounded() ? plan.model->NoiseInUnits() : 0});
  }
  return learners;
}

std::string LearntTables(const Assembly& assembly, const std::vector<LearnerDays>& learners) {
  const auto best = ReadBestAuc(assembly.config.source.files);
  std::string tables;
  std::vector<LearnerDays> clicks;
  for (size_t i = 0; i < learners.size(); ++i) {
    const LearnerDays& learner = learners[i];
    const privacy::Promise& promise = assembly.learners[i].promise;
    if (learner.days.empty()) continue;
    tables += fmt::format(
        "\nlearner {}\n{}{}\n{}", learner.id,
        learner.recommends ? RankedDayTable(learner, promise) : DayTable(learner, best, promise),
        PlainTable(learner), Verdict(learner));
    if (!learner.recommends) clicks.push_back(learner);
  }
  if (clicks.size() > 1) tables += fmt::format("\nside by side\n{}", SideBySide(clicks, best));
  return tables;
}

}  // namespace tacit::wiring
