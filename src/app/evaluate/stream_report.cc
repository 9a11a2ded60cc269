#include "app/evaluate/stream_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "app/evaluate/text_table.h"
#include "base/text.h"

namespace tacit::app {
namespace {

std::string EpsilonText(double epsilon) {
  return std::isfinite(epsilon) ? fmt::format("epsilon {:g}", epsilon) : "no privacy";
}

std::string LearnerText(const SequenceRow& row) {
  return fmt::format("{}, {} period{} a user", row.learner, row.user_periods,
                     row.user_periods == 1 ? "" : "s");
}

TextLines OverallTable(const std::vector<SequenceRow>& rows) {
  TextLines lines{{"NDCG@10 / HIT@10, %"}};
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

TextLines TenthsTable(const std::vector<SequenceRow>& rows) {
  TextLines lines{{"NDCG@10, %, by tenths of the stream", ""}};
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
      "those the user had excluded; {}; epsilon is at delta {:g}, unit user over the whole "
      "stream, split evenly over so many periods as the table says; a user's later periods are "
      "not learnt from\n",
      WithThousands(rows[0].users), WithThousands(period_events),
      rows[0].seeds == 1 ? "one seed of noise"
                         : fmt::format("mean and deviation over {} seeds of noise", rows[0].seeds),
      rows[0].delta);
}

// Where things are in the figure.
constexpr double kWidth = 560, kHeight = 320, kLeft = 64, kTop = 28, kBottom = 52, kLegend = 330;

class Figure {
 public:
  explicit Figure(const std::vector<SequenceRow>& rows) : tenths_(rows[0].tenths.size()) {
    for (const SequenceRow& row : rows)
      for (const SequenceRow::Tenth& tenth : row.tenths)
        top_ = std::max(top_, std::ceil(100 * tenth.ndcg10.mean / 5) * 5);
    svg_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<title>NDCG@10 over the stream</title>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        kLeft + kWidth + kLegend,
        std::max(kTop + kHeight + kBottom, kTop + 22 * static_cast<double>(rows.size() + 1)));
    DrawAxes();
  }

  void Add(const SequenceRow& row) {
    // Okabe and Ito's palette: told apart with every common colour blindness, and on paper.
    constexpr std::array<std::string_view, 7> kColours = {
        "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
    constexpr std::array<std::string_view, 4> kDashes = {"none", "7 4", "2 3", "9 3 2 3"};
    const std::string_view colour = kColours[series_ % kColours.size()];
    const std::string_view dash = kDashes[series_ / kColours.size() % kDashes.size()];
    const std::string label = LearnerText(row) + ", " + EpsilonText(row.epsilon);
    std::string points, marks;
    for (size_t t = 0; t < row.tenths.size(); ++t) {
      if (row.tenths[t].events == 0) continue;
      const double x = X(static_cast<double>(t) + 0.5), y = Y(100 * row.tenths[t].ndcg10.mean);
      points += fmt::format("{:.1f},{:.1f} ", x, y);
      marks += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {}</title>"
          "</circle>\n",
          x, y, colour, label, PercentText(row.tenths[t].ndcg10));
    }
    const double x = kLeft + kWidth + 12, y = kTop + 12 + 22 * static_cast<double>(series_++);
    svg_ += fmt::format(
                "<polyline points=\"{0}\" fill=\"none\" stroke=\"{1}\" stroke-width=\"2\" "
                "stroke-dasharray=\"{2}\"/>\n"
                "<line x1=\"{3:.1f}\" x2=\"{4:.1f}\" y1=\"{5:.1f}\" y2=\"{5:.1f}\" "
                "stroke=\"{1}\" stroke-width=\"2\" stroke-dasharray=\"{2}\"/>\n"
                "<text x=\"{6:.1f}\" y=\"{7:.1f}\">{8}</text>\n",
                points, colour, dash, x, x + 24, y - 4, x + 30, y, label) +
            marks;
  }

  std::string Take() && { return std::move(svg_) + "</svg>\n"; }

 private:
  double X(double tenth) const { return kLeft + kWidth * tenth / static_cast<double>(tenths_); }
  double Y(double percent) const { return kTop + kHeight * (1 - percent / top_); }

  void DrawAxes() {
    for (int i = 0; i <= 5; ++i) {
      const double value = top_ * i / 5;
      svg_ += fmt::format(
          "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
          kLeft, kLeft + kWidth, Y(value), Y(value), kLeft - 8, Y(value) + 4, value);
    }
    for (size_t t = 1; t <= tenths_; ++t)
      svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                          X(static_cast<double>(t) - 0.5), kTop + kHeight + 20, t);
    svg_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">tenth of the stream</text>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\">NDCG@10, %</text>\n",
        kLeft + kWidth / 2, kTop + kHeight + 42, kLeft, kTop - 10);
  }

  const size_t tenths_;
  double top_ = 1;
  size_t series_ = 0;
  std::string svg_;
};

}  // namespace

std::string StreamTextTable(const std::vector<SequenceRow>& rows, uint64_t period_events) {
  return LayOut(OverallTable(rows), {0}) + "\n" + LayOut(TenthsTable(rows), {0, 1}) +
         Notes(rows, period_events);
}

std::string StreamMarkdownTable(const std::vector<SequenceRow>& rows, uint64_t period_events) {
  return LayOutMarkdown(OverallTable(rows), {0}) + "\n" +
         LayOutMarkdown(TenthsTable(rows), {0, 1}) + "\n" + Notes(rows, period_events);
}

std::string DrawStreamFigure(const std::vector<SequenceRow>& rows) {
  Figure figure(rows);
  for (const SequenceRow& row : rows) figure.Add(row);
  return std::move(figure).Take();
}

}  // namespace tacit::app
