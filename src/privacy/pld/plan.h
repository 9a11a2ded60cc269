#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "privacy/pld/kind.h"

namespace tacit::privacy::pld {

// Cells per standard deviation of the composed law over the square root of its number of events.
inline constexpr double kUsualCells = 24;

// The numbers that a composition is computed with. Bounds hold for any plan; they are tight if it
// fits the question.
struct Plan {
  Saddle saddle;          // the question's saddle
  double tilt = 0;        // c: masses are weighted with e^(c loss)
  double step = 0;        // lattice step
  int64_t period = 0;     // period of the Fourier transform, in steps: losses outside wrap around
  double tilt_above = 0;  // c + s and c - s': their moments bound wrapping from above and below
  double tilt_below = 0;
  double tail = 0;  // mass that a law's grid may leave out
  double spacing_scale = 0;
  double cells_per_scale = 0;  // see MakeGrid

  // Length of the cells of a kind with this count: rare events may be coarse.
  int64_t Spacing(double count) const;
};

// The sum of squared cell lengths (over all events) that keeps the bounds about 0.05 % apart if the
// composed law is nearly Gaussian.
double UsualBudget(const Saddle& saddle);
// The same from known values: epsilon, and the slope of -log delta there.
double BudgetFor(double epsilon, double slope);

// Makes the lattice for these events, capped, at a saddle; ChooseWindow completes the plan. With
// `mind_edges` the step resolves the edges of laws that would lose more than a little of epsilon in
// a cell longer than their crowd.
Plan MakePlan(std::span<const Counted> events, const Saddle& saddle, double budget,
              double cells_per_scale, bool mind_edges);

// Chooses the window so that wrapping does not matter. `log_moment(tilt)` is that of the composed
// laws on the lattice. Returns kInvalidArgument if the window would need more than 2^61 steps.
Status ChooseWindow(Plan& plan, const std::function<double(double)>& log_moment);

}  // namespace tacit::privacy::pld
