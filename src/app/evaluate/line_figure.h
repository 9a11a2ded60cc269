#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tacit::app {

// Lines of per cents against something that begins at 0: an SVG document without anything from
// outside. Lines are told apart by colour and by dashes.
class LineFigure {
 public:
  struct Axes {
    std::string title, x_axis, y_axis;
    double x_most = 1;
    std::vector<std::pair<double, std::string>> x_ticks;
    double percent_most = 1;  // of all that will be shown
  };
  struct Point {
    double x = 0, percent = 0;
    std::string tip;  // shown when pointed at
  };
  explicit LineFigure(const Axes& axes);

  // `colour` and `dash` are numbers of any size: so many different ones are told apart.
  static constexpr size_t kColours = 7, kDashes = 4;
  void Add(const std::string& label, size_t colour, size_t dash, const std::vector<Point>& points);
  std::string Take() &&;

 private:
  double X(double x) const;
  double Y(double percent) const;

  const std::string title_;
  const double x_most_;
  double top_ = 1;
  size_t added_ = 0, longest_ = 0;  // lines, and letters of a label
  std::string svg_;
};

// Places for ticks from 0 to `most`: multiples of 1, 2 or 5 times a power of ten, six at most.
// REQUIRES a number above 0.
std::vector<std::pair<double, std::string>> RoundTicks(double most);

}  // namespace tacit::app
