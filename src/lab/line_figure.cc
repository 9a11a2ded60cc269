#include "lab/line_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/markup.h"

namespace tacit::lab {
namespace {

// The layout of the figure.
constexpr double kWidth = 560, kHeight = 320, kLeft = 64, kTop = 28, kBottom = 52;
// The layout of the legend, and the approximate width of a letter.
constexpr double kGap = 12, kLegendStroke = 24, kLegendText = kLegendStroke + 6, kLegendLine = 22,
                 kLetter = 7.2;

// Okabe and Ito's palette: distinguishable with every common colour blindness, and in print.
constexpr std::array<std::string_view, LineFigure::kColours> kPalette = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
constexpr std::array<std::string_view, LineFigure::kDashes> kPatterns = {"none", "7 4", "2 3",
                                                                         "9 3 2 3"};

}  // namespace

LineFigure::LineFigure(const Axes& axes)
    : title_(axes.title),
      x_most_(axes.x_most),
      top_(std::max(1.0, std::ceil(axes.percent_most / 5) * 5)) {
  for (int i = 0; i <= 5; ++i) {
    const double value = top_ * i / 5;
    svg_ += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
        kLeft, kLeft + kWidth, Y(value), Y(value), kLeft - 8, Y(value) + 4, value);
  }
  for (const auto& [x, text] : axes.x_ticks)
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", X(x),
                        kTop + kHeight + 20, text);
  svg_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n"
      "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
      kLeft + kWidth / 2, kTop + kHeight + 42, axes.x_axis, kLeft, kTop - 10, axes.y_axis);
}

double LineFigure::X(double x) const { return kLeft + kWidth * x / x_most_; }
double LineFigure::Y(double percent) const { return kTop + kHeight * (1 - percent / top_); }

void LineFigure::Add(const std::string& label, size_t colour, size_t dash,
                     const std::vector<Point>& points) {
  const std::string_view stroke = kPalette[colour % kColours], pattern = kPatterns[dash % kDashes];
  std::string line, marks;
  for (const Point& point : points) {
    line += fmt::format("{:.1f},{:.1f} ", X(point.x), Y(point.percent));
    if (point.error > 0)
      marks += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n",
          X(point.x), Y(point.percent - point.error), Y(point.percent + point.error), stroke);
    if (!point.tip.empty())
      marks += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {}</title>"
          "</circle>\n",
          X(point.x), Y(point.percent), stroke, EscapeMarkup(label), EscapeMarkup(point.tip));
  }
  const double x = kLeft + kWidth + kGap,
               y = kTop + 12 + kLegendLine * static_cast<double>(added_++);
  longest_ = std::max(longest_, label.size());
  svg_ += fmt::format(
              "<polyline points=\"{0}\" fill=\"none\" stroke=\"{1}\" stroke-width=\"2\" "
              "stroke-dasharray=\"{2}\"/>\n"
              "<line x1=\"{3:.1f}\" x2=\"{4:.1f}\" y1=\"{5:.1f}\" y2=\"{5:.1f}\" "
              "stroke=\"{1}\" stroke-width=\"2\" stroke-dasharray=\"{2}\"/>\n"
              "<text x=\"{6:.1f}\" y=\"{7:.1f}\">{8}</text>\n",
              line, stroke, pattern, x, x + kLegendStroke, y - 4, x + kLegendText, y,
              EscapeMarkup(label)) +
          marks;
}

// Wide enough for the longest label, and high enough for all labels.
std::string LineFigure::Take() && {
  const double legend = kGap + kLegendText + kLetter * static_cast<double>(longest_);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "{3}</svg>\n",
      kLeft + kWidth + legend + kGap,
      std::max(kTop + kHeight + kBottom, kTop + kLegendLine * static_cast<double>(added_ + 1)),
      EscapeMarkup(title_), svg_);
}

std::vector<std::pair<double, std::string>> RoundTicks(double most) {
  constexpr double kTicksMost = 6;
  most *= 1 + 1e-9;
  const double power = std::pow(10, std::floor(std::log10(most / kTicksMost)));
  double step = 10 * power;
  for (const double times : {5.0, 2.0, 1.0})
    if (most / (times * power) < kTicksMost) step = times * power;
  std::vector<std::pair<double, std::string>> ticks;
  for (int i = 0; i * step <= most; ++i)
    ticks.emplace_back(i * step, fmt::format("{:.4g}", i * step));
  return ticks;
}

}  // namespace tacit::lab
