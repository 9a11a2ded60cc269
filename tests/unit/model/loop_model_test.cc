// The oracle itself, held against finite differences of its own loss.
#include "loop_model.h"

#include <gtest/gtest.h>

namespace tacit::model::testing {
namespace {

TEST(LoopModel, GradientMatchesFiniteDifferences) {
  constexpr double kStep = 1e-6;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem(seed, {.examples = 3});
    const auto loss = [&](const LoopExample& x, const std::vector<double>& dense,
                          const Rows& rows) {
      return LoopLoss(LoopForward(problem.model, x, dense, rows).back()[0], x.label);
    };
    for (size_t i = 0; i < problem.label.size(); ++i) {
      const LoopExample x = problem.Example(i);
      auto dense = problem.Dense();
      auto rows = problem.RowMap();
      auto gradient = LoopBackward(problem.model, x, dense, rows);
      const auto difference = [&](double& parameter) {
        const double at = parameter;
        parameter = at + kStep;
        const double above = loss(x, dense, rows);
        parameter = at - kStep;
        const double below = loss(x, dense, rows);
        parameter = at;
        return (above - below) / (2 * kStep);
      };
      for (size_t p = 0; p < dense.size(); ++p)
        ASSERT_NEAR(gradient.dense[p], difference(dense[p]), 1e-7) << "parameter " << p;
      for (auto& [row, values] : rows) {
        auto& g = gradient.rows[row];
        g.resize(values.size());  // rows of other examples: zero
        for (size_t c = 0; c < values.size(); ++c)
          ASSERT_NEAR(g[c], difference(values[c]), 1e-7) << "row " << row;
      }
    }
  }
}

}  // namespace
}  // namespace tacit::model::testing
