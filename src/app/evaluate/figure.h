#pragma once

#include <string>
#include <vector>

namespace tacit::app {

// Utility against gradient size, as in figure 3 of paper 003: one panel for each epsilon, one
// colour and shape for each mechanism, its best points joined.
struct FigurePoint {
  std::string series;
  std::string label;  // shown when pointed at
  double epsilon = 0;
  double reduction = 0;   // of the gradient's size, at least 1; infinite: nothing is written
  double difference = 0;  // of the AUC to the reference's
  double error = 0;       // a deviation of it; 0: not drawn
};

struct FigureText {
  std::string title;
  std::string y_axis;
};

// An SVG document without anything from outside; "" when there is no point.
std::string DrawFigure(const std::vector<FigurePoint>& points, const FigureText& text);

// The points that no other of theirs beats in both size and utility, by ascending reduction.
std::vector<FigurePoint> ParetoFront(std::vector<FigurePoint> points);

}  // namespace tacit::app
