#include "lab/next_item/sequence_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <string_view>

#include "console/json_number.h"
#include "console/text_table.h"
#include "lab/line_figure.h"

namespace tacit::lab {
namespace {

namespace json = boost::json;

// The distinct values, in order of first appearance.
template <class T, class Of>
std::vector<T> Distinct(const std::vector<SequenceRow>& rows, const Of& of) {
  std::vector<T> values;
  for (const SequenceRow& row : rows)
    if (std::ranges::find(values, of(row)) == values.end()) values.push_back(of(row));
  return values;
}
std::vector<std::string> Learners(const std::vector<SequenceRow>& rows) {
  return Distinct<std::string>(rows, [](const SequenceRow& row) { return row.learner; });
}
std::vector<double> Epsilons(const std::vector<SequenceRow>& rows) {
  return Distinct<double>(rows, [](const SequenceRow& row) { return row.epsilon; });
}

console::TextLines Table(const std::vector<SequenceRow>& rows) {
  console::TextLines table{{"NDCG@10 / HIT@10, %"}};
  const auto epsilons = Epsilons(rows);
  for (const double epsilon : epsilons)
    table[0].push_back(std::isfinite(epsilon) ? fmt::format("epsilon {:g}", epsilon)
                                              : "no privacy");
  for (const std::string& learner : Learners(rows)) {
    std::vector<std::string> line{learner};
    for (const double epsilon : epsilons) {
      const auto row = std::ranges::find_if(
          rows, [&](const SequenceRow& r) { return r.learner == learner && r.epsilon == epsilon; });
      line.push_back(
          row == rows.end() ? "" : PercentText(row->ndcg10) + " / " + PercentText(row->hit10));
    }
    table.push_back(std::move(line));
  }
  return table;
}

std::string Notes(const std::vector<SequenceRow>& rows) {
  const uint64_t seeds = rows[0].seeds;
  return fmt::format(
      "{} users asked about, every item ranked, those of the history excluded; {}; epsilon is at "
      "delta {:g}, unit user\n",
      rows[0].users,
      seeds == 1 ? "one seed of noise"
                 : fmt::format("mean and deviation over {} seeds of noise", seeds),
      rows[0].delta);
}

}  // namespace

SequenceRow MakeSequenceRow(const std::vector<SequenceRun>& runs) {
  SequenceRow row{.learner = runs[0].learner, .epsilon = runs[0].epsilon, .delta = runs[0].delta};
  std::vector<double> ndcg10, hit10;
  for (const SequenceRun& run : runs) {
    ndcg10.push_back(run.ndcg10);
    hit10.push_back(run.hit10);
    row.epsilon_spent = std::max(row.epsilon_spent, run.epsilon_spent);
    row.fit_seconds += run.fit_seconds / static_cast<double>(runs.size());
    row.microseconds_a_user += 1e6 * run.score_seconds /
                               static_cast<double>(runs.size() * std::max<uint64_t>(1, run.users));
  }
  row.ndcg10 = Moments::Of(ndcg10);
  row.hit10 = Moments::Of(hit10);
  for (size_t t = 0; t < runs[0].tenths.size(); ++t) {
    std::vector<double> ndcg, hit;
    for (const SequenceRun& run : runs) {
      ndcg.push_back(run.tenths[t].ndcg10);
      hit.push_back(run.tenths[t].hit10);
    }
    row.tenths.push_back({.events = runs[0].tenths[t].events,
                          .ndcg10 = Moments::Of(ndcg),
                          .hit10 = Moments::Of(hit)});
  }
  for (size_t i = 0; i < runs[0].curve.size(); ++i) {
    std::vector<double> ndcg, hit;
    for (const SequenceRun& run : runs) {
      ndcg.push_back(run.curve[i].ndcg10);
      hit.push_back(run.curve[i].hit10);
    }
    row.curve.push_back({.epochs = runs[0].curve[i].epochs,
                         .ndcg10 = Moments::Of(ndcg),
                         .hit10 = Moments::Of(hit)});
  }
  row.user_periods = runs[0].user_periods;
  row.seeds = runs.size();
  row.users = runs[0].users;
  return row;
}

json::object SequenceJson(const std::vector<SequenceRow>& rows) {
  json::array lines;
  for (const SequenceRow& row : rows) {
    const bool streamed = row.user_periods > 0;
    json::object line{
        {"model", row.learner},
        {"epsilon", console::FiniteOrNull(row.epsilon)},
        {"delta", row.delta},
        {"seeds", row.seeds},
        {"ndcg10", MomentsJson(row.ndcg10)},
        {"hit10", MomentsJson(row.hit10)},
        {streamed ? "events" : "users", row.users},
        {"epsilon_spent", console::FiniteOrNull(row.epsilon_spent)},
        {"fit_seconds", row.fit_seconds},
        {streamed ? "microseconds_an_event" : "microseconds_a_user", row.microseconds_a_user}};
    for (const SequenceRow::Look& look : row.curve) {
      if (!line.contains("curve")) line["curve"] = json::array();
      line["curve"].as_array().push_back({{"epochs", look.epochs},
                                          {"ndcg10", MomentsJson(look.ndcg10)},
                                          {"hit10", MomentsJson(look.hit10)}});
    }
    if (streamed) {
      line["user_periods"] = row.user_periods;
      json::array tenths;
      for (const SequenceRow::Tenth& tenth : row.tenths)
        tenths.push_back({{"events", tenth.events},
                          {"ndcg10", MomentsJson(tenth.ndcg10)},
                          {"hit10", MomentsJson(tenth.hit10)}});
      line["tenths"] = std::move(tenths);
    }
    lines.push_back(std::move(line));
  }
  return {{"rows", std::move(lines)}};
}

std::string SequenceTextTable(const std::vector<SequenceRow>& rows) {
  return console::LayOut(Table(rows), {0}) + Notes(rows);
}

std::string SequenceMarkdownTable(const std::vector<SequenceRow>& rows) {
  return console::LayOutMarkdown(Table(rows), {0}) + "\n" + Notes(rows);
}

std::string DrawSequenceFigure(const std::vector<SequenceRow>& rows) {
  constexpr double kWidth = 560, kHeight = 320, kLeft = 64, kTop = 28, kBottom = 52, kLegend = 190;
  // Okabe and Ito's palette: distinguishable with every common colour blindness, and in print.
  constexpr std::array<std::string_view, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                        "#e69f00", "#56b4e9", "#000000"};
  std::vector<double> epsilons = Epsilons(rows);
  std::ranges::sort(epsilons);
  double most = 0;
  for (const SequenceRow& row : rows)
    most = std::max(most, 100 * (row.ndcg10.mean + row.ndcg10.std.value_or(0)));
  const double top = std::max(1.0, std::ceil(most / 5) * 5);
  // Epsilons are evenly spaced; "none" is the last.
  const auto x_of = [&](double epsilon) {
    const auto at = std::ranges::find(epsilons, epsilon) - epsilons.begin();
    return kLeft + kWidth * (static_cast<double>(at) + 0.5) / static_cast<double>(epsilons.size());
  };
  const auto y_of = [&](double percent) { return kTop + kHeight * (1 - percent / top); };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 "
      "{0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "<title>NDCG@10 against epsilon</title>\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#ffffff\"/>\n",
      kLeft + kWidth + kLegend, kTop + kHeight + kBottom);
  for (int i = 0; i <= 5; ++i) {
    const double value = top * i / 5;
    svg += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
        kLeft, kLeft + kWidth, y_of(value), y_of(value), kLeft - 8, y_of(value) + 4, value);
  }
  for (const double epsilon : epsilons)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                       x_of(epsilon), kTop + kHeight + 20,
                       std::isfinite(epsilon) ? fmt::format("{:g}", epsilon) : "none");
  svg += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">epsilon</text>\n"
      "<text x=\"{:.1f}\" y=\"{:.1f}\">NDCG@10, %</text>\n",
      kLeft + kWidth / 2, kTop + kHeight + 42, kLeft, kTop - 10);
  const auto learners = Learners(rows);
  for (size_t i = 0; i < learners.size(); ++i) {
    const std::string_view colour = kColours[i % kColours.size()];
    std::vector<SequenceRow> own;
    for (const SequenceRow& row : rows)
      if (row.learner == learners[i]) own.push_back(row);
    std::ranges::sort(own, {}, &SequenceRow::epsilon);
    std::string points, marks;
    for (const SequenceRow& row : own) {
      const double x = x_of(row.epsilon), y = y_of(100 * row.ndcg10.mean);
      const double error = 100 * row.ndcg10.std.value_or(0);
      points += fmt::format("{:.1f},{:.1f} ", x, y);
      marks += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n"
          "<circle cx=\"{0:.1f}\" cy=\"{4:.1f}\" r=\"4\" fill=\"{3}\"><title>{5}: {6}</title>"
          "</circle>\n",
          x, y_of(100 * row.ndcg10.mean - error), y_of(100 * row.ndcg10.mean + error), colour, y,
          row.learner, PercentText(row.ndcg10));
    }
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                       points, colour) +
           marks;
    const double y = kTop + 12 + 22 * static_cast<double>(i);
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n<text x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}</text>\n",
        kLeft + kWidth + 14, y - 4, colour, kLeft + kWidth + 24, y, learners[i]);
  }
  return svg + "</svg>\n";
}

std::string DrawLearningCurves(const std::vector<SequenceRow>& rows) {
  LineFigure::Axes axes{.title = "NDCG@10 and HIT@10 against epochs",
                        .x_axis = "epochs",
                        .y_axis = "%",
                        .x_ticks = {}};
  for (const SequenceRow& row : rows)
    for (const SequenceRow::Look& look : row.curve) {
      axes.x_most = std::max(axes.x_most, look.epochs);
      axes.percent_most = std::max(axes.percent_most, 100 * look.hit10.mean);
    }
  axes.x_ticks = RoundTicks(axes.x_most);
  LineFigure figure(axes);
  for (size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].curve.empty()) continue;
    std::vector<LineFigure::Point> ndcg, hit;
    for (const SequenceRow::Look& look : rows[r].curve) {
      ndcg.push_back({look.epochs, 100 * look.ndcg10.mean, PercentText(look.ndcg10)});
      hit.push_back({look.epochs, 100 * look.hit10.mean, PercentText(look.hit10)});
    }
    const std::string who = rows[r].learner + (std::isfinite(rows[r].epsilon)
                                                   ? fmt::format(", epsilon {:g}", rows[r].epsilon)
                                                   : ", no privacy");
    figure.Add("NDCG@10, " + who, r, 0, ndcg);
    figure.Add("HIT@10, " + who, r, 1, hit);
  }
  return std::move(figure).Take();
}

}  // namespace tacit::lab
