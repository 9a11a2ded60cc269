// What every ops::UnitOps promises, held against float64 loops. One suite for the reference and the
// CPU's.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <vector>

#include "ops/unit_ops.h"
#include "ops/vector_math.h"

namespace tacit::ops {
namespace {

struct Subject {
  const char* name;
  std::function<std::unique_ptr<UnitOps>()> make;
};

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

constexpr float kSentinel = 12345.0f;

// A matrix with unused columns behind its rows, filled with what must survive.
struct Store {
  std::vector<float> values;
  Matrix view;

  Store(size_t rows, size_t cols, size_t gap) : values(rows * (cols + gap), kSentinel) {
    view = {values.data(), rows, cols, cols + gap};
  }
  Store(const Store& other) : values(other.values), view(other.view) { view.data = values.data(); }
  double At(size_t r, size_t c) const { return view.Row(r)[c]; }
  void ExpectGapUntouched() const {
    for (size_t r = 0; r < view.rows; ++r)
      for (size_t c = view.cols; c < view.stride; ++c)
        ASSERT_EQ(values[r * view.stride + c], kSentinel) << "wrote behind row " << r;
  }
};

class UnitOpsContract : public ::testing::TestWithParam<Subject> {
 protected:
  Store Random(size_t rows, size_t cols, float spread = 1) {
    Store store(rows, cols, 3);
    std::normal_distribution<float> normal(0, spread);
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < cols; ++c) store.view.Row(r)[c] = normal(random_);
    return store;
  }
  std::vector<float> RandomVector(size_t n, float spread = 1) {
    std::normal_distribution<float> normal(0, spread);
    std::vector<float> values(n);
    for (float& v : values) v = normal(random_);
    return values;
  }

  std::mt19937_64 random_{20261121};
  const std::unique_ptr<UnitOps> ops_ = GetParam().make();
};

TEST_P(UnitOpsContract, GemmMatchesLoops) {
  const size_t shapes[][3] = {{1, 1, 1}, {5, 7, 3}, {64, 33, 20}, {50, 120, 64}, {3, 5, 0}};
  for (const auto& s : shapes)
    for (int way = 0; way < 8; ++way) {
      const bool ta = way & 1, tb = way & 2;
      const float beta = way & 4 ? 1 : 0;
      const Store a = ta ? Random(s[2], s[0]) : Random(s[0], s[2]);
      const Store b = tb ? Random(s[1], s[2]) : Random(s[2], s[1]);
      Store c = Random(s[0], s[1]);
      if (beta == 0)
        for (size_t r = 0; r < s[0]; ++r) std::fill_n(c.view.Row(r), s[1], std::nanf(""));
      const Store before = c;
      ASSERT_TRUE(ops_->Gemm(ta ? Transpose::kYes : Transpose::kNo, a.view,
                             tb ? Transpose::kYes : Transpose::kNo, b.view, beta, c.view));
      for (size_t i = 0; i < s[0]; ++i)
        for (size_t j = 0; j < s[1]; ++j) {
          double sum = beta == 0 ? 0 : before.At(i, j), size = std::abs(sum);
          for (size_t k = 0; k < s[2]; ++k) {
            const double product = (ta ? a.At(k, i) : a.At(i, k)) * (tb ? b.At(j, k) : b.At(k, j));
            sum += product;
            size += std::abs(product);
          }
          ASSERT_NEAR(c.At(i, j), sum, 2e-6 * size + 1e-30);
        }
      c.ExpectGapUntouched();
    }
}

TEST_P(UnitOpsContract, BiasReluSumsAndAddition) {
  const Store x = Random(9, 21);
  const auto bias = RandomVector(21);
  for (const bool relu : {false, true}) {
    Store y = x;
    ops_->AddBias(y.view, bias, relu);
    Store g = Random(9, 21);
    const Store before = g;
    ops_->ReluBackward(y.view, g.view);
    auto sums = bias;
    ops_->ColumnSums(x.view, sums);
    Store both = x;
    ops_->Add(before.view, both.view);
    for (size_t c = 0; c < 21; ++c) {
      double sum = bias[c];
      for (size_t r = 0; r < 9; ++r) {
        const float want = x.view.Row(r)[c] + bias[c];
        ASSERT_EQ(y.view.Row(r)[c], relu && want < 0 ? 0.0f : want);
        ASSERT_EQ(g.At(r, c), y.At(r, c) <= 0 ? 0 : before.At(r, c));
        ASSERT_EQ(both.view.Row(r)[c], x.view.Row(r)[c] + before.view.Row(r)[c]);
        sum += x.At(r, c);
      }
      ASSERT_NEAR(sums[c], sum, 1e-5);
    }
    y.ExpectGapUntouched();
    g.ExpectGapUntouched();
    both.ExpectGapUntouched();
  }
}

double LayerNormAt(const std::vector<double>& x, size_t c, double gain, double bias) {
  double mean = 0, variance = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
  return gain * (x[c] - mean) / std::sqrt(variance + double{1e-5f}) + bias;
}

TEST_P(UnitOpsContract, LayerNormAndItsSlopes) {
  constexpr size_t kRows = 5, kCols = 19;
  const Store x = Random(kRows, kCols), weight = Random(kRows, kCols);
  const auto gain = RandomVector(kCols), bias = RandomVector(kCols);
  for (const bool in_place : {false, true}) {
    Store in = x, apart(kRows, kCols, 3), normal(kRows, kCols, 3), grad = weight;
    std::vector<float> inverse(kRows), gain_grad(kCols, 1.0f), bias_grad(kCols, 2.0f);
    Store& out = in_place ? in : apart;
    ops_->LayerNorm(in.view, gain, bias, 1e-5f, normal.view, inverse, out.view);
    ops_->LayerNormBackward(normal.view, inverse, gain, grad.view, gain_grad, bias_grad);
    std::vector<double> gain_slope(kCols, 1), bias_slope(kCols, 2);
    for (size_t r = 0; r < kRows; ++r) {
      std::vector<double> row(x.view.Row(r), x.view.Row(r) + kCols);
      for (size_t c = 0; c < kCols; ++c) {
        ASSERT_NEAR(out.At(r, c), LayerNormAt(row, c, gain[c], bias[c]), 1e-5);
        gain_slope[c] += weight.At(r, c) * LayerNormAt(row, c, 1, 0);
        bias_slope[c] += weight.At(r, c);
        // d (sum of weight * out) / d x[r][c].
        constexpr double kStep = 1e-5;
        double slope = 0;
        for (const double side : {1.0, -1.0}) {
          auto moved = row;
          moved[c] += side * kStep;
          for (size_t j = 0; j < kCols; ++j)
            slope += side * weight.At(r, j) * LayerNormAt(moved, j, gain[j], bias[j]) / (2 * kStep);
        }
        ASSERT_NEAR(grad.At(r, c), slope, 2e-5);
      }
    }
    for (size_t c = 0; c < kCols; ++c) {
      ASSERT_NEAR(gain_grad[c], gain_slope[c], 1e-5);
      ASSERT_NEAR(bias_grad[c], bias_slope[c], 1e-5);
    }
    out.ExpectGapUntouched();
    grad.ExpectGapUntouched();
  }
}

TEST_P(UnitOpsContract, CausalSoftmaxAndItsSlopes) {
  constexpr size_t kFirst = 4, kRows = 7, kCols = 11;
  constexpr double kScale = 0.35f;
  for (const bool penalised : {false, true}) {
    const Store x = Random(kRows, kCols, 3);
    Store penalty = Random(kRows, kCols), s = x, grad = Random(kRows, kCols);
    const Store weight = grad;
    const auto share = [&](size_t r, size_t c, size_t nudged, double by) {
      const auto logit = [&](size_t j) {
        return kScale * (x.At(r, j) + (j == nudged ? by : 0)) - (penalised ? penalty.At(r, j) : 0);
      };
      double sum = 0;
      for (size_t j = 0; j <= kFirst + r && j < kCols; ++j) sum += std::exp(logit(j));
      return std::exp(logit(c)) / sum;
    };
    // What lies behind the query must not matter, whatever it is.
    for (size_t r = 0; r < kRows; ++r)
      for (size_t c = kFirst + r + 1; c < kCols; ++c) s.view.Row(r)[c] = std::nanf("");
    ops_->CausalSoftmax(kFirst, static_cast<float>(kScale), penalised ? penalty.view : Matrix(),
                        s.view);
    ops_->CausalSoftmaxBackward(kFirst, static_cast<float>(kScale), s.view, grad.view);
    for (size_t r = 0; r < kRows; ++r)
      for (size_t c = 0; c < kCols; ++c) {
        if (c > kFirst + r) {
          ASSERT_EQ(s.At(r, c), 0);
          ASSERT_EQ(grad.At(r, c), 0);
          continue;
        }
        ASSERT_NEAR(s.At(r, c), share(r, c, kCols, 0), 1e-6);
        constexpr double kStep = 1e-5;
        double slope = 0;
        for (size_t j = 0; j <= kFirst + r && j < kCols; ++j)
          slope += weight.At(r, j) * (share(r, j, c, kStep) - share(r, j, c, -kStep)) / (2 * kStep);
        ASSERT_NEAR(grad.At(r, c), slope, 2e-6);
      }
    s.ExpectGapUntouched();
    grad.ExpectGapUntouched();
  }
}

TEST_P(UnitOpsContract, PenaltiesAreLimited) {
  Store penalty = Random(3, 6);
  const Store before = penalty;
  ops_->LimitPenalty(1, 2, 0.5f, penalty.view);
  for (size_t r = 0; r < 3; ++r)
    for (size_t c = 0; c <= r + 1; ++c)
      ASSERT_EQ(penalty.At(r, c), std::min(2 * before.At(r, c), 0.5));
}

TEST_P(UnitOpsContract, ExpRowsLeaveMaximumAndSum) {
  for (const float spread : {0.1f, 5.0f, 60.0f}) {
    const Store x = Random(6, 300, spread);
    const auto bias = RandomVector(300);
    for (const bool biased : {false, true}) {
      Store e = x;
      std::vector<ExpRow> rows(6);
      ops_->ExpRows(biased ? std::span<const float>(bias) : std::span<const float>(), e.view, rows);
      for (size_t r = 0; r < 6; ++r) {
        float most = -INFINITY;
        double sum = 0;
        const auto logit = [&](size_t c) {
          return biased ? x.view.Row(r)[c] + bias[c] : x.view.Row(r)[c];
        };
        for (size_t c = 0; c < 300; ++c) most = std::max(most, logit(c));
        ASSERT_EQ(rows[r].max, most);
        for (size_t c = 0; c < 300; ++c) {
          const double want = std::exp(double{logit(c)} - most);
          ASSERT_NEAR(e.At(r, c), want, 1e-5 * want + 2e-38);
          sum += want;
        }
        ASSERT_NEAR(rows[r].sum, sum, 1e-5 * sum);
      }
      e.ExpectGapUntouched();
    }
  }
}

TEST_P(UnitOpsContract, NormsAndSums) {
  for (const size_t n : {1, 7, 64, 1001}) {
    const auto x = RandomVector(n);
    auto to = RandomVector(n);
    const auto before = to;
    double squared = 0;
    for (const float v : x) squared += double{v} * v;
    EXPECT_NEAR(ops_->SquaredNorm(x), squared, 1e-12 * squared);
    ops_->AddScaled(0.3f, x, to);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(to[i], before[i] + 0.3f * x[i]);
    std::vector<int64_t> steps(n, 5);
    ops_->AddRounded(0x1p40f, x, steps);
    ops_->AddRounded(0.7f, x, steps);
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(steps[i],
                5 + std::llrint(double{0x1p40f * x[i]}) + std::llrint(double{0.7f * x[i]}));
  }
}

TEST_P(UnitOpsContract, ReluVarianceIsThatOfACutNormal) {
  std::vector<float> mean, variance;
  for (const float m : {-30.0f, -3.0f, -0.5f, 0.0f, 1e-4f, 0.7f, 2.0f, 40.0f})
    for (const float v : {0.0f, 1e-8f, 0.01f, 1.0f, 9.0f}) {
      mean.push_back(m);
      variance.push_back(v);
    }
  auto out = variance;
  ops_->ReluVariance({mean.data(), 1, mean.size()}, {out.data(), 1, out.size()});
  for (size_t i = 0; i < mean.size(); ++i) {
    if (variance[i] == 0) {
      EXPECT_EQ(out[i], 0);
      continue;
    }
    const double z = mean[i] / std::sqrt(double{variance[i]});
    const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    const double cut =
        z > 12 ? 1 : (z * z + 1) * below + z * density - std::pow(z * below + density, 2);
    EXPECT_NEAR(out[i] / variance[i], cut, 5e-6) << mean[i] << ", " << variance[i];
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnitOpsContract,
                         ::testing::Values(Subject{"Reference", MakeReferenceUnitOps},
                                           Subject{"Cpu", MakeCpuUnitOps}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(VectorMath, ExpIsWithinTwoUnitsInTheLastPlace) {
  for (double x = -86.9; x < 88; x += 0.00137) {
    const auto argument = static_cast<float>(x);
    const double want = std::exp(double{argument});
    ASSERT_NEAR(Exp(argument), want, 2.5e-7 * want) << argument;
  }
  EXPECT_EQ(Exp(-1e30f), Exp(-87.0f));
  EXPECT_EQ(Exp(0), 1);
}

}  // namespace
}  // namespace tacit::ops
