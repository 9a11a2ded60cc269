// The click model in bf16: close to the float64 loops, and never over the clip.
#include <gtest/gtest.h>

#include "model/pctr.h"
#include "ops/bf16.h"
#include "ops/cpu_backend.h"
#include "ops/dnnl_gemm.h"
#include "pctr_step.h"
#include "scale_rules.h"

namespace tacit::model {
namespace {

using testing::Problem;
using testing::SquaredLength;
using testing::StepResult;

StepResult RunBf16Step(const Problem& problem, const ScaleRule& rule, ops::Backend& backend) {
  return testing::RunWholeStep(problem, rule, backend, ops::Precision::kBf16);
}

double Length(const StepGradient& sum) {
  double squared = 0;
  for (float x : sum.dense) squared += double{x} * x;
  for (float x : sum.row_values) squared += double{x} * x;
  return std::sqrt(squared);
}

class PctrInBf16 : public ::testing::TestWithParam<ops::Bf16Gemm> {
 protected:
  void SetUp() override {
    // On a processor without bf16 both cases are the widened one.
    backend_ = ops::MakeCpuBackendWith(workers_,
                                       ops::HasFastBf16() ? GetParam() : ops::Bf16Gemm::kWidened);
  }
  WorkerPool workers_{WorkerPool::Options{.workers = 2}};
  std::unique_ptr<ops::Backend> backend_;
};

// |x - want| / |want| over all numbers.
double Difference(const StepGradient& sum, const std::vector<double>& want) {
  std::vector<double> x(sum.dense.begin(), sum.dense.end());
  x.insert(x.end(), sum.row_values.begin(), sum.row_values.end());
  EXPECT_EQ(x.size(), want.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] -= want[i];
  return std::sqrt(SquaredLength(x) / SquaredLength(want));
}

TEST_P(PctrInBf16, IsCloseToTheLoops) {
  double mean = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem(seed, {.examples = 200, .hidden = {40, 24}, .spread = 0.5f});
    testing::LoopGradient sum;
    for (const auto& g : problem.UnitGradients()) sum.Add(g);
    std::vector<double> want = sum.dense;
    for (const auto& [row, values] : sum.rows)
      want.insert(want.end(), values.begin(), values.end());
    const double error = Difference(RunBf16Step(problem, testing::NoClip(), *backend_).sum, want);
    // Eight bits, several roundings in a row, and now and then a ReLU that falls the other way.
    EXPECT_LT(error, 0.1);
    EXPECT_GT(error, 1e-5) << "nothing was rounded";
    mean += error / 20;
  }
  EXPECT_LT(mean, 0.04);
}

// The reference rounds at the same places; only a sum that lies between two bf16 may fall to
// either side.
TEST_P(PctrInBf16, AgreesWithTheReferenceBackend) {
  const auto reference = ops::MakeReferenceBackend();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem(seed, {.examples = 30, .hidden = {40, 24}});
    const testing::FlatClip rule(2);
    const StepResult want = RunBf16Step(problem, rule, *reference);
    const StepResult have = RunBf16Step(problem, rule, *backend_);
    std::vector<double> sum(want.sum.dense.begin(), want.sum.dense.end());
    sum.insert(sum.end(), want.sum.row_values.begin(), want.sum.row_values.end());
    EXPECT_LT(Difference(have.sum, sum), 2e-3);
    for (size_t i = 0; i < want.norms.squared.size(); ++i)
      EXPECT_NEAR(have.norms.squared[i], want.norms.squared[i],
                  0.01 * want.norms.squared[i] + 1e-12);
  }
}

TEST_P(PctrInBf16, NormsAreThoseOfTheRoundedFactors) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    // A single layer, one example: the gradient is a rounded input times a rounded number.
    const Problem problem(seed, {.examples = 1, .one_example_per_unit = true, .hidden = {}});
    const StepResult plain = RunBf16Step(problem, testing::NoClip(), *backend_);
    const StepResult clipped = RunBf16Step(problem, testing::FlatClip(1), *backend_);
    double dense = 0;
    for (float x : plain.sum.dense) dense += double{x} * x;
    EXPECT_NEAR(clipped.norms.squared[0], dense, 1e-6 * dense);
  }
}

// The promise privacy rests on: alone in a batch, no unit's contribution is longer than the clip.
void ExpectWithinClip(const Problem::Options& options, bool repeat_with_other_label,
                      ops::Backend& backend) {
  constexpr double kClip = 1e-3;
  double longest = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Problem problem(seed, options);
    if (repeat_with_other_label) {
      // The second example all but cancels the first.
      std::copy_n(problem.dense.begin(), problem.model.dense_width,
                  problem.dense.begin() + problem.model.dense_width);
      problem.dense[problem.model.dense_width] *= 1.02f;
      problem.label = {0, 1};
    }
    problem.unit_of.assign(problem.label.size(), 0);
    problem.units = 1;
    problem.Index();
    longest =
        std::max(longest, Length(RunBf16Step(problem, testing::FlatClip(kClip), backend).sum));
    ASSERT_LE(longest, kClip * (1 + 1e-6)) << "seed " << seed;
  }
  EXPECT_GT(longest, 0.9 * kClip) << "the clip was never reached";
}

TEST_P(PctrInBf16, OneExampleStaysWithinTheClip) {
  ExpectWithinClip({.examples = 1, .hidden = {}}, false, *backend_);
  ExpectWithinClip({.examples = 1, .hidden = {5, 3}}, false, *backend_);
}

TEST_P(PctrInBf16, SeveralExamplesStayWithinTheClip) {
  ExpectWithinClip({.examples = 6, .hidden = {5}}, false, *backend_);
}

TEST_P(PctrInBf16, ExamplesThatCancelStayWithinTheClip) {
  ExpectWithinClip({.examples = 2, .hidden = {}, .spread = 0.01f}, true, *backend_);
}

INSTANTIATE_TEST_SUITE_P(Gemm, PctrInBf16,
                         ::testing::Values(ops::Bf16Gemm::kNative, ops::Bf16Gemm::kWidened),
                         [](const auto& info) {
                           return info.param == ops::Bf16Gemm::kNative ? "Native" : "Widened";
                         });

}  // namespace
}  // namespace tacit::model
