// Embedding rows summed on a grid: against float64 loops that round each unit's row once, and the
// promise that rounding is accounted for.
#include <gtest/gtest.h>

#include "model/pctr.h"
#include "pctr_step.h"
#include "scale_rules.h"

namespace tacit::model {
namespace {

using testing::Problem;
using testing::RunWholeStep;
using testing::StepResult;

class PctrOnAGrid : public ::testing::Test {
 protected:
  WorkerPool one_{WorkerPool::Options{}}, three_{WorkerPool::Options{.workers = 3}};
  std::unique_ptr<ops::Backend> backend_ = ops::MakeCpuBackend(one_);
};

// From the finest grid to one that rounds most numbers away.
TEST_F(PctrOnAGrid, EachUnitsRowIsRoundedOnce) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem(seed, {.examples = 1 + seed % 40, .one_example_per_unit = seed % 4 == 0});
    const double step = std::ldexp(1, -static_cast<int>(4 + seed % 3 * 13));
    const testing::FlatClip rule(0.7, step);
    StepResult result = RunWholeStep(problem, rule, *backend_);
    std::vector<float> scales(result.norms.squared.size());
    rule.Scales(result.norms, scales);
    std::map<uint64_t, std::vector<double>> want;  // in steps
    const auto gradients = problem.UnitGradients();
    for (size_t u = 0; u < gradients.size(); ++u) {
      for (const auto& [row, values] : gradients[u].rows) {
        auto& sum = want[row];
        sum.resize(values.size());
        const double scale = scales[(result.norms.groups - 1) * gradients.size() + u];
        for (size_t c = 0; c < values.size(); ++c)
          sum[c] += std::nearbyint(values[c] * scale / step);
      }
    }
    ASSERT_EQ(result.sum.row_sums.size(), result.sum.row_values.size());
    size_t differ = 0;
    for (size_t i = 0; i < result.sum.rows.size(); ++i) {
      const auto row = result.sum.RowSum(i);
      for (size_t c = 0; c < row.size(); ++c) {
        const double expected = want.at(result.sum.rows[i])[c];
        // The model's gradients are those of f32; on a coarse grid few of them round otherwise.
        ASSERT_NEAR(static_cast<double>(row[c]), expected,
                    3 + 1e-5 * (std::abs(expected) + 1 / step));
        differ += static_cast<double>(row[c]) != expected;
      }
    }
    if (step > 0.01) {
      EXPECT_LE(differ, result.sum.row_sums.size() / 100);
    }
    EXPECT_EQ(result.sum.row_values, std::vector<float>(result.sum.row_sums.size(), 0.0f));
  }
}

TEST_F(PctrOnAGrid, SumsDoNotDependOnTheWorkers) {
  const auto triple = ops::MakeCpuBackend(three_);
  const Problem problem(5, {.examples = 60, .one_example_per_unit = false});
  const testing::FlatClip rule(0.5, 0x1p-30);
  EXPECT_EQ(RunWholeStep(problem, rule, *backend_).sum.row_sums,
            RunWholeStep(problem, rule, *triple).sum.row_sums);
}

TEST_F(PctrOnAGrid, WithoutAGridNothingIsRounded) {
  const Problem problem(5, {.examples = 60});
  const StepResult result = RunWholeStep(problem, testing::FlatClip(0.5), *backend_);
  EXPECT_TRUE(result.sum.row_sums.empty());
  EXPECT_TRUE(result.norms.rounding.empty());
}

// Alone in a batch a unit's rounded rows, and its dense part as the rounding of any sum may carry
// it, are no longer than its scaled gradient and what `rounding` says; on grids so coarse that
// rounding is most of it. `told` scales the stated bound: too little must be found out.
int UnitsBeyondTheirBound(double step, double told, ops::Backend& backend) {
  int beyond = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    // One unit: all examples, so that rows occur several times in it.
    Problem problem(seed, {.examples = 1 + seed % 5, .hidden = {}});
    for (uint32_t& unit : problem.unit_of) unit = 0;
    problem.units = 1;
    problem.Index();
    const testing::FlatClip rule(1e9, step);  // every scale is 1
    StepResult result = RunWholeStep(problem, rule, backend);
    EXPECT_EQ(result.norms.units, 1u);
    double rows = 0, scaled = 0, dense_moved = 0;
    for (int64_t steps : result.sum.row_sums)
      rows += std::pow(static_cast<double>(steps) * step, 2);
    for (float squared : result.norms.squared) scaled += squared;
    // Another sum, so placed that the rounding of the two falls apart as far as it can.
    for (float x : RunWholeStep(problem, testing::FlatClip(1e9), backend).sum.dense) {
      const double moved = std::ceil(std::abs(x) / step) * step;
      dense_moved += moved * moved;
    }
    beyond += std::sqrt(rows + dense_moved) >
              std::sqrt(scaled) * (1 + 1e-6) + told * result.norms.rounding[0];
  }
  return beyond;
}

TEST_F(PctrOnAGrid, RoundingIsBoundedForEveryUnitAndTooSmallABoundIsFoundOut) {
  for (const double step : {0x1p-20, 0x1p-10, 0x1p-6, 0x1p-3})
    EXPECT_EQ(UnitsBeyondTheirBound(step, 1, *backend_), 0) << step;
  EXPECT_GT(UnitsBeyondTheirBound(0x1p-6, 0.2, *backend_), 0);
}

}  // namespace
}  // namespace tacit::model
