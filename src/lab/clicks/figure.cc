#include "lab/clicks/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "base/markup.h"

namespace tacit::lab {
namespace {

constexpr double kPanelWidth = 400, kPanelHeight = 280;  // the plotting area
constexpr double kPanelLeft = 86, kPanelTop = 66, kPanelBottom = 52, kPanelGap = 34;
constexpr size_t kPanelsPerLine = 3;
constexpr double kPanelLegendLine = 24;

// Okabe and Ito's palette: distinguishable with every common colour blindness, and in print.
constexpr std::array<std::string_view, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#e69f00", "#56b4e9", "#000000"};

// Draws a marker. Shapes differ as well as colours, so that series can be told apart without
// colour.
std::string Marker(size_t series, double x, double y, double opacity) {
  const std::string_view colour = kColours[series % kColours.size()];
  const std::string style =
      fmt::format(R"(fill="{}" stroke="#ffffff" stroke-width="1" opacity="{}")", colour, opacity);
  const auto polygon = [&](const std::vector<std::pair<double, double>>& corners) {
    std::string list;
    for (const auto& [dx, dy] : corners) list += fmt::format("{:.1f},{:.1f} ", x + dx, y + dy);
    list.pop_back();
    return fmt::format(R"(<polygon points="{}" {}/>)", list, style);
  };
  switch (series % 5) {
    case 0:
      return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="5" {}/>)", x, y, style);
    case 1:
      return polygon({{-4.6, -4.6}, {4.6, -4.6}, {4.6, 4.6}, {-4.6, 4.6}});
    case 2:
      return polygon({{0, -6}, {5.6, 4.4}, {-5.6, 4.4}});
    case 3:
      return polygon({{0, -6.4}, {6.4, 0}, {0, 6.4}, {-6.4, 0}});
    default:
      return polygon({{0, 6}, {5.6, -4.4}, {-5.6, -4.4}});
  }
}

std::string Text(double x, double y, std::string_view anchor, std::string_view text,
                 std::string_view more = {}) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}"{}{}>{}</text>)", x, y, anchor,
                     more.empty() ? "" : " ", more, EscapeMarkup(text)) +
         "\n";
}

// The axes shared by all panels, so that panels can be compared.
struct Axes {
  int decades = 1;        // decades of the reduction, from 1
  bool infinite = false;  // one more place, for an infinite reduction
  double low = 0, high = 0, step = 0.01;

  double X(double reduction) const {
    const double places = decades + (infinite ? 1 : 0);
    const double at = std::isfinite(reduction) ? std::log10(std::max(1.0, reduction)) : places;
    return 12 + at / places * (kPanelWidth - 24);
  }
  double Y(double difference) const {
    return kPanelHeight - (difference - low) / (high - low) * kPanelHeight;
  }
};

Axes AxesOf(const std::vector<FigurePoint>& points) {
  Axes axes;
  double most = 10;
  for (const FigurePoint& p : points) {
    if (std::isfinite(p.reduction))
      most = std::max(most, p.reduction);
    else
      axes.infinite = true;
    axes.low = std::min(axes.low, p.difference - p.error);
    axes.high = std::max(axes.high, p.difference + p.error);
  }
  axes.decades = static_cast<int>(std::ceil(std::log10(most) - 1e-9));
  const double span = std::max(1e-4, axes.high - axes.low);
  axes.step = std::pow(10, std::floor(std::log10(span / 4)));
  for (const double factor : {2.0, 2.5, 2.0})  // 1, 2, 5, 10
    if (span / axes.step > 6) axes.step *= factor;
  axes.low = std::floor((axes.low - 0.04 * span) / axes.step) * axes.step;
  axes.high = std::ceil((axes.high + 0.04 * span) / axes.step) * axes.step;
  return axes;
}

std::string ReductionTick(int decade) {
  return decade == 0 ? "1" : fmt::format("10{}", [&] {
    static constexpr std::array<std::string_view, 10> kRaised = {"⁰", "¹", "²", "³", "⁴",
                                                                 "⁵", "⁶", "⁷", "⁸", "⁹"};
    std::string raised;
    for (const char c : std::to_string(decade)) raised += kRaised[static_cast<size_t>(c - '0')];
    return raised;
  }());
}

std::string Grid(const Axes& axes, bool y_labels) {
  std::string svg;
  const auto line = [&](double x1, double y1, double x2, double y2, std::string_view colour) {
    svg += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}"/>)", x1,
                       y1, x2, y2, colour);
    svg += '\n';
  };
  for (int d = 0; d <= axes.decades; ++d) {
    const double x = axes.X(std::pow(10, d));
    line(x, 0, x, kPanelHeight, "#e3e3e3");
    svg += Text(x, kPanelHeight + 18, "middle", ReductionTick(d));
  }
  if (axes.infinite) {
    const double x = axes.X(INFINITY);
    line(x, 0, x, kPanelHeight, "#e3e3e3");
    svg += Text(x, kPanelHeight + 18, "middle", "none");
  }
  const auto ticks = static_cast<int>(std::lround((axes.high - axes.low) / axes.step));
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(axes.step) - 1e-9)));
  for (int t = 0; t <= ticks; ++t) {
    const double value = axes.low + t * axes.step;
    const bool zero = std::abs(value) < axes.step / 2;
    line(0, axes.Y(value), kPanelWidth, axes.Y(value), zero ? "#8a8a8a" : "#e3e3e3");
    if (y_labels)
      svg +=
          Text(-8, axes.Y(value) + 4, "end", zero ? "0" : fmt::format("{:+.{}f}", value, digits));
  }
  return svg +
         fmt::format(R"(<rect width="{}" height="{}" fill="none" stroke="#8a8a8a"/>)", kPanelWidth,
                     kPanelHeight) +
         "\n";
}

std::string Series(const Axes& axes, size_t series, const std::vector<FigurePoint>& points) {
  const std::vector<FigurePoint> front = ParetoFront(points);
  const std::string_view colour = kColours[series % kColours.size()];
  std::string svg, path;
  for (const FigurePoint& p : front)
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", axes.X(p.reduction),
                        axes.Y(p.difference));
  if (front.size() > 1)
    svg += fmt::format(R"(<path d="{}" fill="none" stroke="{}" stroke-width="2"/>)", path, colour) +
           "\n";
  for (const FigurePoint& p : points) {
    const bool on_front = std::ranges::any_of(front, [&](const FigurePoint& f) {
      return f.reduction == p.reduction && f.difference == p.difference;
    });
    const double x = axes.X(p.reduction);
    svg += fmt::format("<g><title>{}</title>", EscapeMarkup(p.label));
    if (p.error > 0 && on_front)
      svg +=
          fmt::format(R"(<line x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}" stroke="{3}"/>)",
                      x, axes.Y(p.difference - p.error), axes.Y(p.difference + p.error), colour);
    svg += Marker(series, x, axes.Y(p.difference), on_front ? 1 : 0.3) + "</g>\n";
  }
  return svg;
}

std::string Legend(const std::vector<std::string>& names, double width, double y) {
  std::string svg;
  double x = kPanelLeft;
  for (size_t i = 0; i < names.size(); ++i) {
    const double needed = 40 + 7.5 * static_cast<double>(names[i].size());
    if (x + needed > width && x > kPanelLeft) {
      x = kPanelLeft;
      y += kPanelLegendLine;
    }
    svg += fmt::format(
        R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="2"/>)",
        x, y, x + 24, y, kColours[i % kColours.size()]);
    svg += Marker(i, x + 12, y, 1) + "\n" + Text(x + 30, y + 4, "start", names[i]);
    x += needed;
  }
  return svg;
}

}  // namespace

std::vector<FigurePoint> ParetoFront(std::vector<FigurePoint> points) {
  std::ranges::sort(points, [](const FigurePoint& a, const FigurePoint& b) {
    return std::pair(a.reduction, a.difference) > std::pair(b.reduction, b.difference);
  });
  std::vector<FigurePoint> front;
  for (FigurePoint& p : points)
    if (front.empty() || p.difference > front.back().difference) front.push_back(std::move(p));
  std::ranges::reverse(front);
  return front;
}

std::string DrawFigure(const std::vector<FigurePoint>& points, const FigureText& text) {
  if (points.empty()) return {};
  std::map<double, std::map<std::string, std::vector<FigurePoint>>> panels;
  std::set<std::string> distinct;
  for (const FigurePoint& p : points) {
    panels[p.epsilon][p.series].push_back(p);
    distinct.insert(p.series);
  }
  const std::vector<std::string> names(distinct.begin(), distinct.end());
  const Axes axes = AxesOf(points);
  const size_t columns = std::min(panels.size(), kPanelsPerLine);
  const size_t lines = (panels.size() + columns - 1) / columns;
  const double width = kPanelLeft + static_cast<double>(columns) * (kPanelWidth + kPanelGap);
  const double line_height = kPanelHeight + kPanelBottom + 30;
  const double legend_y = kPanelTop + static_cast<double>(lines) * line_height + 8;
  const double height =
      legend_y + kPanelLegendLine * (1 + std::ceil(static_cast<double>(names.size()) /
                                                   (2.5 * static_cast<double>(columns))));
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" font-family="sans-serif" font-size="13" fill="#222222">)",
      width, height);
  svg += fmt::format("\n<title>{}</title>\n", EscapeMarkup(text.title));
  svg += R"(<rect width="100%" height="100%" fill="#ffffff"/>)";
  svg += "\n" + Text(kPanelLeft, 24, "start", text.title, R"(font-size="16" font-weight="bold")");
  size_t at = 0;
  for (const auto& [epsilon, series] : panels) {
    const size_t column = at % columns, line = at / columns;
    svg += fmt::format("<g transform=\"translate({:.1f} {:.1f})\">\n",
                       kPanelLeft + static_cast<double>(column) * (kPanelWidth + kPanelGap),
                       kPanelTop + static_cast<double>(line) * line_height);
    svg += Text(kPanelWidth / 2, -10, "middle",
                std::isfinite(epsilon) ? fmt::format("ε = {:g}", epsilon) : "no privacy");
    svg += Grid(axes, column == 0);
    svg += Text(kPanelWidth / 2, kPanelHeight + 42, "middle",
                "gradient size reduction (all coordinates / written per step)");
    if (column == 0)
      svg += Text(0, 0, "middle", text.y_axis,
                  fmt::format("transform=\"translate(-68 {:.1f}) rotate(-90)\"", kPanelHeight / 2));
    for (const auto& [name, members] : series) {
      const auto index = std::ranges::find(names, name) - names.begin();
      svg += Series(axes, static_cast<size_t>(index), members);
    }
    svg += "</g>\n";
    ++at;
  }
  return svg + Legend(names, width, legend_y) + "</svg>\n";
}

}  // namespace tacit::lab
