#include "privacy/pld/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tacit::privacy::pld {
namespace {

// Wrapped mass may be e^-kWrapDigits of the answer.
constexpr double kWrapDigits = 18;
// The tilt may weigh one lattice point e^256 times as much as the point below. That singles out an
// atom of 1e-111, and powers of it are numbers yet: of bounded losses the saddle's tilt has no end.
constexpr double kSteepest = 256;

// The lattice's step: the shortest cell needed, shortened so that the weightiest atom is a whole
// number of steps.
double Step(std::span<const Counted> events, double spacing_scale, double longest) {
  double step = longest, atom = 0, weight = 0;
  for (const Counted& counted : events) {
    step = std::min(step, spacing_scale / std::sqrt(std::sqrt(counted.count)));
    const double size = counted.kind->law->Atom();
    if (counted.count * size * size > weight) {
      weight = counted.count * size * size;
      atom = size;
    }
  }
  return atom > step ? atom / std::ceil(atom / step) : step;
}

// The window beyond which, on one side, little of the answer lies: the distance at which Chernoff's
// bound has fallen by kWrapDigits, minimised over a few shifts of the tilt.
struct Reach {
  double window = std::numeric_limits<double>::infinity();
  double tilt = 0;
};

Reach ReachTo(const Saddle& saddle, const std::function<double(double)>& log_moment, int side) {
  const double scale = std::sqrt(saddle.cumulants.variance) + 1 / (saddle.tilt + 1);
  const double centre = log_moment(saddle.tilt);
  // The answer in units of e^(Lambda - c epsilon).
  const double log_answer = saddle.log_delta - centre + saddle.tilt * saddle.epsilon;
  Reach best;
  for (double factor = 0.125; factor <= 256; factor *= 2) {
    double shift = factor / scale;
    if (side < 0) shift = std::min(shift, saddle.tilt);
    const double tilt = std::max(0.0, saddle.tilt + side * shift);
    const double change = log_moment(tilt) - centre - side * shift * saddle.epsilon;
    const double window = (change - log_answer + kWrapDigits) / shift;
    if (window < best.window) best = {window, tilt};
    if (side < 0 && shift == saddle.tilt) break;
  }
  return best;
}

}  // namespace

int64_t Plan::Spacing(double count) const {
  const double cells = spacing_scale / std::sqrt(std::sqrt(count)) / step;
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(cells * (1 + 1e-9), 1e15)));
}

// Upper and lower laws differ in log E[e^cL] by c (c + 1) / 8 times the budget, so in epsilon by
// (c + 1) / 8 times the budget.
double BudgetFor(double epsilon, double slope) {
  return std::max(8 * Accuracy(epsilon) / (std::min(slope, SteepestAt(epsilon)) + 1), 1e-26);
}

double UsualBudget(const Saddle& saddle) {
  const double by_scale = saddle.cumulants.variance / (kUsualCells * kUsualCells);
  return std::max(by_scale, BudgetFor(saddle.epsilon, saddle.tilt));
}

Plan MakePlan(std::span<const Counted> events, const Saddle& saddle, double budget,
              double cells_per_scale, bool mind_edges) {
  Plan plan;
  plan.saddle = saddle;
  plan.tilt = saddle.tilt;
  plan.cells_per_scale = cells_per_scale;
  double roots = 0;
  for (const Counted& counted : events) roots += std::sqrt(counted.count);
  // Cells of kind e are sqrt(budget * share_e / count_e) long, shares as sqrt(count_e).
  plan.spacing_scale = std::sqrt(budget / roots);
  double longest = std::numeric_limits<double>::infinity();
  for (const Counted& counted : events)
    if (const double edge = counted.kind->law->Edge(); mind_edges && edge > 0)
      longest =
          std::min(longest, std::max(edge / 2, 1e-4 * (saddle.epsilon + 1e-3) / counted.count));
  plan.step = Step(events, plan.spacing_scale, longest);
  if (plan.tilt * plan.step > kSteepest) {
    plan.saddle.tilt = plan.tilt = kSteepest / plan.step;
    plan.saddle.cumulants = CumulantsAt(events, plan.tilt);
  }
  plan.tail = TailFor(events, saddle.log_delta);
  return plan;
}

Status ChooseWindow(Plan& plan, const std::function<double(double)>& log_moment) {
  const Reach above = ReachTo(plan.saddle, log_moment, +1);
  const Reach below = ReachTo(plan.saddle, log_moment, -1);
  plan.tilt_above = above.tilt;
  plan.tilt_below = below.tilt;
  const double period = std::max({above.window, below.window, 8 * plan.step}) / plan.step;
  if (!(period < 2e18))
    return Fail(ErrorCode::kInvalidArgument,
                "these events differ too much in size to be composed at this delta");
  plan.period = static_cast<int64_t>(period) + 8;
  return {};
}

}  // namespace tacit::privacy::pld
