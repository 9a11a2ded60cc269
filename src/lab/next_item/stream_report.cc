#include "lab/next_item/stream_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "console/text_table.h"
#include "lab/line_figure.h"

namespace tacit::lab {
namespace {

std::string EpsilonText(double epsilon) {
  return std::isfinite(epsilon) ? fmt::format("epsilon {:g}", epsilon) : "no privacy";
}

std::string LearnerText(const SequenceRow& row) {
  return fmt::format("{}, {} period{} a user", row.learner, row.user_periods,
                     row.user_periods == 1 ? "" : "s");
}

console::TextLines OverallTable(const std::vector<SequenceRow>& rows) {
  console::TextLines lines{{"NDCG@10 / HIT@10, %"}};
  std::vector<double> epsilons;
  for (const SequenceRow& row : rows)
    if (std::ranges::find(epsilons, row.epsilon) == epsilons.end()) {
      epsilons.push_back(row.epsilon);
      lines[0].push_back(EpsilonText(row.epsilon));
    }
  for (const SequenceRow& row : rows) {
    const std::string learner = LearnerText(row);
    auto line = std::ranges::find_if(lines, [&](const auto& l) { return l[0] == learner; });
    if (line == lines.end()) {
      line = lines.insert(line, std::vector<std::string>(epsilons.size() + 1));
      line->front() = learner;
    }
    const auto column = std::ranges::find(epsilons, row.epsilon) - epsilons.begin();
    (*line)[static_cast<size_t>(column) + 1] =
        PercentText(row.ndcg10) + " / " + PercentText(row.hit10);
  }
  return lines;
}

console::TextLines TenthsTable(const std::vector<SequenceRow>& rows) {
  console::TextLines lines{{"NDCG@10, %, by tenths of the stream", ""}};
  for (size_t t = 1; t <= rows[0].tenths.size(); ++t) lines[0].push_back(fmt::format("{}", t));
  for (const SequenceRow& row : rows) {
    std::vector<std::string> line{LearnerText(row), EpsilonText(row.epsilon)};
    for (const SequenceRow::Tenth& tenth : row.tenths)
      line.push_back(tenth.events == 0 ? "-" : fmt::format("{:.2f}", 100 * tenth.ndcg10.mean));
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string Notes(const std::vector<SequenceRow>& rows, uint64_t period_events) {
  return fmt::format(
      "{} events asked about, each before its period of {} records was learnt; every item ranked, "
      "those the user had excluded; {}; epsilon is at delta {:g}, unit user over the whole stream, "
      "split evenly over the periods that the table states; a user's later periods are not learnt "
      "from\n",
      WithThousands(rows[0].users), WithThousands(period_events),
      rows[0].seeds == 1 ? "one seed of noise"
                         : fmt::format("mean and deviation over {} seeds of noise", rows[0].seeds),
      rows[0].delta);
}

}  // namespace

std::string StreamTextTable(const std::vector<SequenceRow>& rows, uint64_t period_events) {
  return console::LayOut(OverallTable(rows), {0}) + "\n" +
         console::LayOut(TenthsTable(rows), {0, 1}) + Notes(rows, period_events);
}

std::string StreamMarkdownTable(const std::vector<SequenceRow>& rows, uint64_t period_events) {
  return console::LayOutMarkdown(OverallTable(rows), {0}) + "\n" +
         console::LayOutMarkdown(TenthsTable(rows), {0, 1}) + "\n" + Notes(rows, period_events);
}

std::string DrawStreamFigure(const std::vector<SequenceRow>& rows) {
  const size_t tenths = rows[0].tenths.size();
  LineFigure::Axes axes{.title = "NDCG@10 over the stream",
                        .x_axis = "tenth of the stream",
                        .y_axis = "NDCG@10, %",
                        .x_most = static_cast<double>(tenths),
                        .x_ticks = {}};
  for (size_t t = 0; t < tenths; ++t)
    axes.x_ticks.emplace_back(static_cast<double>(t) + 0.5, std::to_string(t + 1));
  for (const SequenceRow& row : rows)
    for (const SequenceRow::Tenth& tenth : row.tenths)
      axes.percent_most = std::max(axes.percent_most, 100 * tenth.ndcg10.mean);
  LineFigure figure(axes);
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<LineFigure::Point> points;
    for (size_t t = 0; t < tenths; ++t) {
      const SequenceRow::Tenth& tenth = rows[r].tenths[t];
      if (tenth.events > 0)
        points.push_back(
            {static_cast<double>(t) + 0.5, 100 * tenth.ndcg10.mean, PercentText(tenth.ndcg10)});
    }
    figure.Add(LearnerText(rows[r]) + ", " + EpsilonText(rows[r].epsilon), r,
               r / LineFigure::kColours, points);
  }
  return std::move(figure).Take();
}

}  // namespace tacit::lab
