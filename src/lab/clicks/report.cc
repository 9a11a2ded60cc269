#include "lab/clicks/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "console/json_number.h"
#include "console/text_table.h"

namespace tacit::lab {
namespace {

namespace json = boost::json;

json::object SettingsJson(const ReportRow& row) {
  json::object settings;
  for (const auto& [key, value] : row.settings) settings[key] = value;
  return settings;
}

json::object IntervalJson(const ReportRow::Difference& difference) {
  return {{"reference", difference.reference},
          {"mean", difference.auc.mean},
          {"low", difference.auc.low},
          {"high", difference.auc.high}};
}

json::object RowJson(const ReportRow& row, uint32_t seeds, uint64_t dead) {
  json::object o{{"learner", row.learner},
                 {"mechanism", row.mechanism},
                 {"epsilon", console::FiniteOrNull(row.epsilon)},
                 {"delta", row.delta},
                 {"seeds", seeds},
                 {"auc", MomentsJson(row.auc)},
                 {"log_loss", MomentsJson(row.log_loss)},
                 {"gradient_size_reduction", console::FiniteOrNull(row.gradient_size_reduction)},
                 {"rows_written_per_step", row.rows_per_step},
                 {"row_floats_per_step", row.row_floats_per_step},
                 {"steps", row.steps},
                 {"epsilon_spent", console::FiniteOrNull(row.epsilon_spent)},
                 {"settings", SettingsJson(row)},
                 {"events", row.events},
                 {"events_measured", row.events_measured},
                 {"dead_letters", dead},
                 {"events_per_second", row.events_per_second}};
  if (row.difference) o["auc_difference"] = IntervalJson(*row.difference);
  return o;
}

using Settings = std::map<std::string, std::string>;

// The settings that are the same in all rows, and so do not distinguish them. Empty if there is
// only one row.
Settings SharedSettings(const std::vector<ReportRow>& rows) {
  Settings shared;
  size_t seen = 0;
  for (const ReportRow& row : rows) {
    if (!row.refusal.empty()) continue;
    if (seen++ == 0) shared = row.settings;
    std::erase_if(shared, [&](const auto& setting) {
      const auto found = row.settings.find(setting.first);
      return found == row.settings.end() || found->second != setting.second;
    });
  }
  return seen > 1 ? shared : Settings{};
}

// The row's settings, except those with a column of their own and those in `shared`.
std::string SettingsText(const Settings& settings, const Settings& shared = {}) {
  std::string text;
  for (const auto& [key, value] : settings) {
    if (key == "mechanism.kind" || key == "privacy.epsilon" || shared.contains(key)) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", ShortKey(key), value);
  }
  return text;
}

std::string RefusedText(const ReportRow& row) {
  std::string text = row.learner;
  for (const auto& [key, value] : row.settings) text += fmt::format(" {}={}", key, value);
  return text + ": " + row.refusal;
}

std::string Finite(double number, std::string_view format) {
  return std::isfinite(number) ? fmt::format(fmt::runtime(format), number) : "-";
}

std::string WithDeviation(const Moments& moments) {
  const std::string mean = fmt::format("{:.4f}", moments.mean);
  return moments.std ? fmt::format("{} ± {:.4f}", mean, *moments.std) : mean;
}

std::string ReductionText(double reduction) {
  if (!std::isfinite(reduction)) return "inf";
  return reduction >= 1000 ? WithThousands(static_cast<uint64_t>(std::round(reduction)))
                           : fmt::format("{:.3g}", reduction);
}

// The cells of a row, in the order of Header.
std::vector<std::string> Cells(const ReportRow& row, const Settings& shared, bool differences) {
  std::vector<std::string> cells = {row.learner,
                                    row.mechanism,
                                    Finite(row.epsilon, "{:g}"),
                                    SettingsText(row.settings, shared),
                                    WithDeviation(row.auc),
                                    WithDeviation(row.log_loss),
                                    ReductionText(row.gradient_size_reduction),
                                    fmt::format("{:.0f}", row.rows_per_step),
                                    Finite(row.epsilon_spent, "{:.4g}"),
                                    WithThousands(static_cast<uint64_t>(row.events_per_second))};
  if (!differences) return cells;
  cells.push_back(row.difference
                      ? fmt::format("{:+.4f} [{:+.4f}, {:+.4f}]", row.difference->auc.mean,
                                    row.difference->auc.low, row.difference->auc.high)
                      : "");
  return cells;
}

std::vector<std::string> Header(bool differences) {
  std::vector<std::string> header = {"learner",  "mechanism", "epsilon",   "settings",  "AUC",
                                     "log loss", "smaller",   "rows/step", "eps spent", "events/s"};
  if (differences) header.push_back("AUC difference, 95 %");
  return header;
}

bool HasDifferences(const std::vector<ReportRow>& rows) {
  return std::ranges::any_of(rows, [](const ReportRow& row) { return row.difference.has_value(); });
}

console::TextLines Table(const std::vector<ReportRow>& rows) {
  const bool differences = HasDifferences(rows);
  const Settings shared = SharedSettings(rows);
  console::TextLines table{Header(differences)};
  for (const ReportRow& row : rows)
    if (row.refusal.empty()) table.push_back(Cells(row, shared, differences));
  return table;
}

std::string References(const std::vector<ReportRow>& rows) {
  std::map<std::string, std::vector<std::string>> epsilons;  // by reference
  for (const ReportRow& row : rows) {
    if (!row.difference) continue;
    auto& of = epsilons[row.difference->reference];
    const std::string epsilon = Finite(row.epsilon, "{:g}");
    if (std::ranges::find(of, epsilon) == of.end()) of.push_back(epsilon);
  }
  std::string text;
  for (const auto& [reference, of] : epsilons)
    text += fmt::format("difference to {} at epsilon {}\n", reference, fmt::join(of, ", "));
  return text;
}

// Explains columns whose name does not say enough, and gives the deltas of the epsilons.
std::string Notes(const std::vector<ReportRow>& rows) {
  std::string text =
      "smaller: gradient size reduction, embedding coordinates of the model / coordinates written "
      "a step\n";
  if (const std::string shared = SettingsText(SharedSettings(rows)); !shared.empty())
    text += fmt::format("all rows: {}\n", shared);
  std::map<double, std::vector<std::string>> learners;  // by delta
  for (const ReportRow& row : rows) {
    if (!row.refusal.empty() || !std::isfinite(row.epsilon)) continue;
    auto& of = learners[row.delta];
    if (std::ranges::find(of, row.learner) == of.end()) of.push_back(row.learner);
  }
  for (const auto& [delta, of] : learners)
    text += learners.size() == 1
                ? fmt::format("epsilon is at delta {:g}\n", delta)
                : fmt::format("epsilon of {} is at delta {:g}\n", fmt::join(of, ", "), delta);
  return text;
}

}  // namespace

std::string ReportRow::Label() const {
  const std::string more = SettingsText(settings);
  return more.empty() ? fmt::format("{} ({})", learner, mechanism)
                      : fmt::format("{} ({} {})", learner, mechanism, more);
}

ReportRow MakeRow(const GridPoint& point, const std::vector<RunRecord>& records,
                  uint64_t embedding_floats) {
  const config::Learner& learner = point.config.learners[0];
  const auto moments = [&](double RunRecord::*field) {
    std::vector<double> values;
    for (const RunRecord& record : records) values.push_back(record.*field);
    return Moments::Of(values);
  };
  ReportRow row;
  row.learner = point.learner;
  row.mechanism = records[0].mechanism;
  row.settings = point.settings;
  row.epsilon = learner.privacy.epsilon;
  row.delta = learner.privacy.delta;
  row.embeddings = learner.model.categorical && embedding_floats > 0;
  row.auc = moments(&RunRecord::auc);
  row.log_loss = moments(&RunRecord::log_loss);
  row.rows_per_step = moments(&RunRecord::rows_per_step).mean;
  row.row_floats_per_step = moments(&RunRecord::row_floats_per_step).mean;
  row.gradient_size_reduction =
      row.row_floats_per_step > 0 ? static_cast<double>(embedding_floats) / row.row_floats_per_step
                                  : std::numeric_limits<double>::infinity();
  double seconds = 0;
  for (const RunRecord& record : records) {
    row.epsilon_spent = std::max(row.epsilon_spent, record.epsilon_spent);
    row.runs.push_back(record.id);
    seconds += record.seconds;
  }
  row.steps = records[0].steps;
  row.events = records[0].events;
  row.events_measured = records[0].events_measured;
  row.events_per_second =
      static_cast<double>(row.events * records.size()) / std::max(1e-9, seconds);
  return row;
}

ReportRow MakeRefusedRow(const GridPoint& point) {
  ReportRow row;
  row.learner = point.learner;
  row.settings = point.settings;
  row.refusal = point.refusal;
  return row;
}

const ReportRow* ReferenceOf(const std::vector<ReportRow>& rows, const ReportRow& row,
                             const std::string& name) {
  const auto best = [&](const auto& among) {
    const ReportRow* found = nullptr;
    for (const ReportRow& other : rows) {
      if (!other.refusal.empty() || other.epsilon != row.epsilon || !among(other)) continue;
      if (found == nullptr || other.auc.mean > found->auc.mean) found = &other;
    }
    return found;
  };
  const ReportRow* reference = best([&](const ReportRow& other) {
    return !name.empty() && (other.learner == name || other.mechanism == name);
  });
  if (reference == nullptr)
    reference = best(
        [](const ReportRow& other) { return other.mechanism == "dp-sgd" && other.embeddings; });
  if (reference == nullptr) reference = best([](const ReportRow&) { return true; });
  return reference == &row ? nullptr : reference;
}

std::string ReferenceNames(const std::vector<ReportRow>& rows, const std::string& name) {
  std::vector<std::string> names;
  for (const ReportRow& row : rows) {
    if (!row.refusal.empty() || !std::isfinite(row.epsilon)) continue;
    const ReportRow* other = ReferenceOf(rows, row, name);
    const ReportRow& reference = other == nullptr ? row : *other;
    std::string text = fmt::format("{} ({})", reference.learner, reference.mechanism);
    if (std::ranges::find(names, text) == names.end()) names.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(names, " or "));
}

json::object ToJson(const std::vector<ReportRow>& rows, uint32_t seeds, uint64_t dead) {
  json::array done, refused;
  for (const ReportRow& row : rows) {
    if (row.refusal.empty())
      done.push_back(RowJson(row, seeds, dead));
    else
      refused.push_back(json::object{
          {"learner", row.learner}, {"settings", SettingsJson(row)}, {"reason", row.refusal}});
  }
  json::object result{{"rows", std::move(done)}};
  if (!refused.empty()) result["refused"] = std::move(refused);
  return result;
}

std::string TextTable(const std::vector<ReportRow>& rows) {
  std::string text = console::LayOut(Table(rows), {0, 1, 3});
  text += Notes(rows) + References(rows);
  for (const ReportRow& row : rows)
    if (!row.refusal.empty()) text += "not run: " + RefusedText(row) + '\n';
  return text;
}

std::string MarkdownTable(const std::vector<ReportRow>& rows) {
  std::string text = console::LayOutMarkdown(Table(rows), {0, 1, 3});
  text += "\n" + Notes(rows) + References(rows);
  bool first = true;
  for (const ReportRow& row : rows) {
    if (row.refusal.empty()) continue;
    if (std::exchange(first, false)) text += "\nNot run:\n\n";
    text += "- " + RefusedText(row) + '\n';
  }
  return text;
}

}  // namespace tacit::lab
