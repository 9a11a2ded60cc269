#include "lab/clicks/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lab/line_figure.h"

namespace tacit::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FigurePoint Point(double reduction, double difference) {
  return {.series = "fest",
          .label = "<a & b>",
          .epsilon = 1,
          .reduction = reduction,
          .difference = difference,
          .error = 0};
}

std::vector<double> Reductions(const std::vector<FigurePoint>& points) {
  std::vector<double> reductions;
  for (const FigurePoint& p : points) reductions.push_back(p.reduction);
  return reductions;
}

TEST(ParetoFront, KeepsWhatNothingBeatsInBoth) {
  EXPECT_THAT(Reductions(ParetoFront({Point(1, 0), Point(10, -0.01), Point(5, -0.02),
                                      Point(100, -0.03), Point(50, -0.05), Point(2, 0.01)})),
              ElementsAre(2, 10, 100));
  EXPECT_THAT(Reductions(ParetoFront({Point(3, 0), Point(3, 0.1)})), ElementsAre(3));
  EXPECT_THAT(Reductions(ParetoFront({Point(INFINITY, -1), Point(3, 0.1)})),
              ElementsAre(3, INFINITY));
  EXPECT_TRUE(ParetoFront({}).empty());
}

// Every element is closed, in order: what a parser would find out first.
void ExpectWellFormed(const std::string& svg) {
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = svg.substr(at + 1, end - at - 1);
    ASSERT_EQ(tag.find('<'), std::string::npos) << tag;
    if (tag.ends_with('/')) continue;
    const std::string name = tag.substr(0, tag.find_first_of(" >"));
    if (!name.starts_with('/')) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    ASSERT_EQ("/" + open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(DrawFigure, IsWellFormedAndHasEveryPoint) {
  std::vector<FigurePoint> points = {Point(1, 0), Point(1e5, -0.02), Point(INFINITY, -0.1)};
  points.push_back(Point(30, -0.004));
  points.back().series = "dp-sgd & co";
  points.back().epsilon = 8;
  points.back().error = 0.002;
  const std::string svg = DrawFigure(points, {.title = "a < b", .y_axis = "AUC"});
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("&lt;a &amp; b&gt;"));
  EXPECT_THAT(svg, HasSubstr("dp-sgd &amp; co"));
  EXPECT_THAT(svg, HasSubstr("ε = 8"));
  for (const char* number : {"nan", "inf\"", "-nan"})
    EXPECT_EQ(svg.find(number), std::string::npos) << number;
  size_t titles = 0;
  for (size_t at = svg.find("<g><title>"); at != std::string::npos;
       at = svg.find("<g><title>", at + 1))
    ++titles;
  EXPECT_EQ(titles, points.size());
}

TEST(DrawFigure, OfNothingIsNothing) { EXPECT_EQ(DrawFigure({}, {}), ""); }

TEST(DrawFigure, OfASinglePointHasAxes) {
  const std::string svg = DrawFigure({Point(1, 0)}, {.title = "", .y_axis = ""});
  ExpectWellFormed(svg);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(LineFigure, EscapesWhatItIsGiven) {
  LineFigure figure({.title = "a & b", .x_axis = "x", .y_axis = "y", .x_ticks = {}});
  figure.Add("<label>", 0, 0, {{0.5, 1, "1 < 2"}});
  const std::string svg = std::move(figure).Take();
  EXPECT_THAT(svg, HasSubstr("<title>a &amp; b</title>"));
  EXPECT_THAT(svg, HasSubstr(">&lt;label&gt;</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>&lt;label&gt;: 1 &lt; 2</title>"));
}

}  // namespace
}  // namespace tacit::lab
