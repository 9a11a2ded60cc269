#pragma once

#include <string>
#include <vector>

namespace tacit::lab {

// A point of the figure of utility against gradient size, like figure 3 of paper 003: one panel per
// epsilon, one colour and shape per mechanism, its best points joined.
struct FigurePoint {
  std::string series;
  std::string label;  // shown on hover
  double epsilon = 0;
  double reduction = 0;   // of the gradient's size, at least 1; infinite: nothing is written
  double difference = 0;  // the AUC minus the reference's
  double error = 0;       // standard deviation of the AUC; 0: not drawn
};

struct FigureText {
  std::string title;
  std::string y_axis;
};

// A self-contained SVG document; "" if there are no points.
std::string DrawFigure(const std::vector<FigurePoint>& points, const FigureText& text);

// The points that no other point beats in both size and utility, by ascending reduction.
std::vector<FigurePoint> ParetoFront(std::vector<FigurePoint> points);

}  // namespace tacit::lab
