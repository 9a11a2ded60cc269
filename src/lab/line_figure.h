#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tacit::lab {

// Draws lines of percentages over an x axis that begins at 0, as a self-contained SVG document.
// Colours and dashes distinguish the lines.
class LineFigure {
 public:
  struct Axes {
    std::string title, x_axis, y_axis;
    double x_most = 1;
    std::vector<std::pair<double, std::string>> x_ticks;
    double percent_most = 1;  // the largest value shown
  };
  struct Point {
    double x = 0, percent = 0;
    std::string tip;   // shown on hover; "": a corner of the line, without a mark
    double error = 0;  // drawn up and down
  };
  explicit LineFigure(const Axes& axes);

  // `colour` and `dash` may be any numbers; this many different ones can be distinguished.
  static constexpr size_t kColours = 7, kDashes = 4;
  void Add(const std::string& label, size_t colour, size_t dash, const std::vector<Point>& points);
  std::string Take() &&;

 private:
  double X(double x) const;
  double Y(double percent) const;

  const std::string title_;
  const double x_most_;
  double top_ = 1;
  size_t added_ = 0, longest_ = 0;  // number of lines; letters of the longest label
  std::string svg_;
};

// Positions for ticks from 0 to `most`: multiples of 1, 2 or 5 times a power of ten, at most six.
// REQUIRES a number above 0.
std::vector<std::pair<double, std::string>> RoundTicks(double most);

}  // namespace tacit::lab
