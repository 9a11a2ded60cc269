// The promises of every ops::UnitOps, held against float64 loops. One suite for the reference and
// the CPU's.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <vector>

#include "ops/bf16.h"
#include "ops/cpu_backend.h"
#include "ops/tile_gemm.h"
#include "ops/unit_ops.h"
#include "ops/vector_math.h"

namespace tacit::ops {
namespace {

struct OpsSubject {
  const char* name;
  Precision precision;
  std::function<std::unique_ptr<UnitOps>(Precision)> make;
};

void PrintTo(const OpsSubject& subject, std::ostream* out) { *out << subject.name; }

constexpr float kUnused = 12345.0f;

// A matrix with unused columns after its rows, filled with what must survive.
struct PaddedMatrix {
  std::vector<float> values;
  Matrix view;

  PaddedMatrix(size_t rows, size_t cols, size_t gap) : values(rows * (cols + gap), kUnused) {
    view = {values.data(), rows, cols, cols + gap};
  }
  PaddedMatrix(const PaddedMatrix& other) : values(other.values), view(other.view) {
    view.data = values.data();
  }
  double At(size_t r, size_t c) const { return view.Row(r)[c]; }
  void ExpectGapUntouched() const {
    for (size_t r = 0; r < view.rows; ++r)
      for (size_t c = view.cols; c < view.stride; ++c)
        ASSERT_EQ(values[r * view.stride + c], kUnused) << "wrote behind row " << r;
  }
};

class UnitOpsContract : public ::testing::TestWithParam<OpsSubject> {
 protected:
  PaddedMatrix Random(size_t rows, size_t cols, float spread = 1) {
    PaddedMatrix store(rows, cols, 3);
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
  // The number as a product sees it.
  double Seen(double x) const {
    if (GetParam().precision == Precision::kF32) return x;
    return FromBf16(ToBf16(static_cast<float>(x)));
  }
  // op(a) op(b) + beta c, and the sum of all magnitudes in it.
  void ExpectProduct(bool ta, const PaddedMatrix& a, bool tb, const PaddedMatrix& b,
                     const PaddedMatrix* before, const PaddedMatrix& c) {
    const size_t inner = ta ? a.view.rows : a.view.cols;
    for (size_t i = 0; i < c.view.rows; ++i)
      for (size_t j = 0; j < c.view.cols; ++j) {
        double sum = before == nullptr ? 0 : before->At(i, j), size = std::abs(sum);
        for (size_t k = 0; k < inner; ++k) {
          const double product =
              Seen(ta ? a.At(k, i) : a.At(i, k)) * Seen(tb ? b.At(j, k) : b.At(k, j));
          sum += product;
          size += std::abs(product);
        }
        ASSERT_NEAR(c.At(i, j), sum, 2e-6 * size + 1e-30) << i << ", " << j;
      }
    c.ExpectGapUntouched();
  }

  const std::unique_ptr<UnitOps> ops_ = GetParam().make(GetParam().precision);
};

Transpose Way(bool transposed) { return transposed ? Transpose::kYes : Transpose::kNo; }

// Tiles, blocks and panels that are full, cut, and more than one; odd inner dimensions.
constexpr size_t kShapes[][3] = {{1, 1, 1},    {5, 7, 3},      {64, 33, 20},  {50, 120, 64},
                                 {3, 5, 0},    {8, 16, 2},     {9, 17, 31},   {13, 64, 33},
                                 {12, 81, 65}, {193, 49, 257}, {200, 3, 300}, {385, 1, 5}};

TEST_P(UnitOpsContract, GemmMatchesLoops) {
  for (const auto& s : kShapes)
    for (int way = 0; way < 8; ++way) {
      const bool ta = way & 1, tb = way & 2;
      const float beta = way & 4 ? 1 : 0;
      const PaddedMatrix a = ta ? Random(s[2], s[0]) : Random(s[0], s[2]);
      const PaddedMatrix b = tb ? Random(s[1], s[2]) : Random(s[2], s[1]);
      PaddedMatrix c = Random(s[0], s[1]);
      if (beta == 0)
        for (size_t r = 0; r < s[0]; ++r) std::fill_n(c.view.Row(r), s[1], std::nanf(""));
      const PaddedMatrix before = c;
      ASSERT_TRUE(ops_->Gemm(Way(ta), a.view, Way(tb), b.view, beta, c.view));
      ExpectProduct(ta, a, tb, b, beta == 0 ? nullptr : &before, c);
    }
}

TEST_P(UnitOpsContract, PreparedFactorsMultiplyAlike) {
  RightFactor factor;  // one for all shapes: nothing of an earlier one is left
  for (const auto& s : kShapes)
    for (int way = 0; way < 8; ++way) {
      const bool ta = way & 1, tb = way & 2;
      const float beta = way & 4 ? 1 : 0;
      const PaddedMatrix b = tb ? Random(s[1], s[2]) : Random(s[2], s[1]);
      ops_->Prepare(Way(tb), b.view, &factor);
      // Prepared by one, read by another, more than once.
      const auto other = GetParam().make(GetParam().precision);
      for (const size_t rows : {s[0], s[0] + 7}) {
        const PaddedMatrix a = ta ? Random(s[2], rows) : Random(rows, s[2]);
        PaddedMatrix c = Random(rows, s[1]);
        const PaddedMatrix before = c;
        ASSERT_TRUE(other->Gemm(Way(ta), a.view, factor, beta, c.view));
        ExpectProduct(ta, a, tb, b, beta == 0 ? nullptr : &before, c);
      }
    }
}

// Rounding is to nearest, ties to even, as ops::ToBf16 has it.
TEST_P(UnitOpsContract, FactorsAreRoundedAsDefined) {
  if (GetParam().precision == Precision::kF32) return;
  constexpr size_t kCount = 64;
  PaddedMatrix numbers(kCount, 1, 3), one(1, 9, 3), product(kCount, 9, 3);
  for (size_t i = 0; i < kCount; ++i)
    numbers.view.Row(i)[0] = std::bit_cast<float>(0x3f800000u + static_cast<uint32_t>(i) * 0x2000u);
  std::fill_n(one.view.Row(0), 9, 1.0f);
  ASSERT_TRUE(ops_->Gemm(Transpose::kNo, numbers.view, Transpose::kNo, one.view, 0, product.view));
  for (size_t i = 0; i < kCount; ++i)
    ASSERT_EQ(product.view.Row(i)[8], FromBf16(ToBf16(numbers.view.Row(i)[0]))) << i;
}

TEST_P(UnitOpsContract, RoundedNumbersAreThoseThatProductsSee) {
  const auto before = RandomVector(100);
  auto after = before;
  ops_->RoundAsFactor(after);
  for (size_t i = 0; i < after.size(); ++i) ASSERT_EQ(after[i], Seen(before[i]));
}

TEST_P(UnitOpsContract, WhatIsNotANumberStaysOne) {
  for (const bool ta : {false, true}) {
    PaddedMatrix a = ta ? Random(40, 10) : Random(10, 40);
    const PaddedMatrix b = Random(40, 20);
    PaddedMatrix c = Random(10, 20);
    (ta ? a.view.Row(7)[3] : a.view.Row(3)[7]) = std::nanf("");
    ASSERT_TRUE(ops_->Gemm(Way(ta), a.view, Transpose::kNo, b.view, 0, c.view));
    for (size_t i = 0; i < 10; ++i)
      for (size_t j = 0; j < 20; ++j) ASSERT_EQ(std::isnan(c.At(i, j)), i == 3);
  }
}

TEST_P(UnitOpsContract, BiasReluSumsAndAddition) {
  const PaddedMatrix x = Random(9, 21);
  const auto bias = RandomVector(21);
  for (const bool relu : {false, true}) {
    PaddedMatrix y = x;
    ops_->AddBias(y.view, bias, relu);
    PaddedMatrix g = Random(9, 21);
    const PaddedMatrix before = g;
    ops_->ReluBackward(y.view, g.view);
    auto sums = bias;
    ops_->ColumnSums(x.view, sums);
    PaddedMatrix both = x;
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
  const PaddedMatrix x = Random(kRows, kCols), weight = Random(kRows, kCols);
  const auto gain = RandomVector(kCols), bias = RandomVector(kCols);
  for (const bool in_place : {false, true}) {
    PaddedMatrix in = x, apart(kRows, kCols, 3), normal(kRows, kCols, 3), grad = weight;
    std::vector<float> inverse(kRows), gain_grad(kCols, 1.0f), bias_grad(kCols, 2.0f);
    PaddedMatrix& out = in_place ? in : apart;
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
    const PaddedMatrix x = Random(kRows, kCols, 3);
    PaddedMatrix penalty = Random(kRows, kCols), s = x, grad = Random(kRows, kCols);
    const PaddedMatrix weight = grad;
    const auto share = [&](size_t r, size_t c, size_t nudged, double by) {
      const auto logit = [&](size_t j) {
        return kScale * (x.At(r, j) + (j == nudged ? by : 0)) - (penalised ? penalty.At(r, j) : 0);
      };
      double sum = 0;
      for (size_t j = 0; j <= kFirst + r && j < kCols; ++j) sum += std::exp(logit(j));
      return std::exp(logit(c)) / sum;
    };
    // Values after the query must not matter.
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
  PaddedMatrix penalty = Random(3, 6);
  const PaddedMatrix before = penalty;
  ops_->LimitPenalty(1, 2, 0.5f, penalty.view);
  for (size_t r = 0; r < 3; ++r)
    for (size_t c = 0; c <= r + 1; ++c)
      ASSERT_EQ(penalty.At(r, c), std::min(2 * before.At(r, c), 0.5));
}

TEST_P(UnitOpsContract, ExpRowsLeaveMaximumAndSum) {
  for (const float spread : {0.1f, 5.0f, 60.0f}) {
    const PaddedMatrix x = Random(6, 300, spread);
    const auto bias = RandomVector(300);
    for (const bool biased : {false, true}) {
      PaddedMatrix e = x;
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

// The factors that a softmax over a catalogue is multiplied with, both ways round.
TEST_P(UnitOpsContract, ExpFactorsMultiplyAsTheirExponentials) {
  LeftFactor left;  // one for all shapes, from large ones to small, after numbers that are none
  PaddedMatrix none = Random(60, 400);
  std::fill_n(none.view.Row(0), 60 * none.view.stride, std::nanf(""));
  std::vector<ExpRow> of_none(60);
  ops_->ExpFactor({}, none.view, of_none, &left);
  for (const size_t rows : {50, 7, 2, 1})
    for (const size_t cols : {301, 65, 64, 31, 1})
      for (const bool biased : {false, true}) {
        PaddedMatrix x = Random(rows, cols, 4);
        const auto bias = RandomVector(cols);
        if (cols > 2) x.view.Row(rows / 2)[1] = -1e30f;  // what cannot be
        PaddedMatrix exps(rows, cols, 3);
        std::vector<double> sum(rows);
        std::vector<float> most(rows, -INFINITY);
        const auto logit = [&](size_t r, size_t c) {
          return biased ? x.view.Row(r)[c] + bias[c] : x.view.Row(r)[c];
        };
        for (size_t r = 0; r < rows; ++r) {
          for (size_t c = 0; c < cols; ++c) most[r] = std::max(most[r], logit(r, c));
          for (size_t c = 0; c < cols; ++c) {
            const double e = std::exp(double{logit(r, c)} - most[r]);
            exps.view.Row(r)[c] = static_cast<float>(e);
            sum[r] += e;
          }
        }
        std::vector<ExpRow> got(rows);
        ops_->ExpFactor(biased ? std::span<const float>(bias) : std::span<const float>(), x.view,
                        got, &left);
        for (size_t r = 0; r < rows; ++r) {
          ASSERT_EQ(got[r].max, most[r]);
          ASSERT_NEAR(got[r].sum, sum[r], 1e-5 * sum[r]);
        }
        // One in 2^16 may fall on the other side of where rounding changes: by 2^-8 of itself.
        const double slack = GetParam().precision == Precision::kF32 ? 1e-5 : 0x1p-8;
        for (const bool transposed : {false, true}) {
          const PaddedMatrix b = Random(transposed ? rows : cols, 70);
          RightFactor right;
          ops_->Prepare(Transpose::kNo, b.view, &right);
          PaddedMatrix c = Random(transposed ? cols : rows, 70);
          if (!biased)
            for (size_t r = 0; r < c.view.rows; ++r) std::fill_n(c.view.Row(r), 70, std::nanf(""));
          const PaddedMatrix before = c;
          ASSERT_TRUE(ops_->Gemm(Way(transposed), left, right, biased ? 1 : 0, c.view));
          for (size_t i = 0; i < c.view.rows; ++i)
            for (size_t j = 0; j < 70; ++j) {
              double want = biased ? before.At(i, j) : 0, size = std::abs(want), largest = 0;
              for (size_t k = 0; k < b.view.rows; ++k) {
                const double product =
                    Seen(transposed ? exps.At(k, i) : exps.At(i, k)) * Seen(b.At(k, j));
                want += product;
                size += std::abs(product);
                largest = std::max(largest, std::abs(product));
              }
              ASSERT_NEAR(c.At(i, j), want, 1e-5 * size + slack * largest + 1e-36);
            }
          c.ExpectGapUntouched();
        }
        const auto weight = RandomVector(rows);
        std::vector<float> out(cols, 3.0f);
        ASSERT_TRUE(ops_->AddWeightedRows(weight, left, out));
        for (size_t c = 0; c < cols; ++c) {
          double want = 3, size = 3;
          for (size_t r = 0; r < rows; ++r) {
            want += Seen(weight[r]) * Seen(exps.At(r, c));
            size += std::abs(Seen(weight[r]) * Seen(exps.At(r, c)));
          }
          ASSERT_NEAR(out[c], want, (1e-5 + slack) * size);
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

std::vector<OpsSubject> OpsSubjects() {
  const auto library = [](Precision precision) {
    return MakeCpuUnitOpsWith(precision, UnitGemm::kLibrary);
  };
  const auto tiles = [](Precision precision) {
    return MakeCpuUnitOpsWith(precision, UnitGemm::kTiles);
  };
  std::vector<OpsSubject> subjects;
  for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
    const bool bf16 = precision == Precision::kBf16;
    subjects.push_back({bf16 ? "ReferenceBf16" : "Reference", precision, MakeReferenceUnitOps});
    subjects.push_back({bf16 ? "LibraryBf16" : "Library", precision, library});
    if (HasTileGemm()) subjects.push_back({bf16 ? "TilesBf16" : "Tiles", precision, tiles});
  }
  return subjects;
}

INSTANTIATE_TEST_SUITE_P(All, UnitOpsContract, ::testing::ValuesIn(OpsSubjects()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(UnitOpsDeathTest, FactorsOfAnotherKindAreRefused) {
  if (!HasTileGemm()) return;  // there is one kind, which reads factors as they were given
  std::vector<float> numbers(64, 1.0f), out(64);
  const ConstMatrix x(numbers.data(), 8, 8);
  const Matrix c(out.data(), 8, 8);
  const auto f32 = MakeCpuUnitOpsWith(Precision::kF32, UnitGemm::kTiles);
  const auto bf16 = MakeCpuUnitOpsWith(Precision::kBf16, UnitGemm::kTiles);
  const auto reference = MakeReferenceUnitOps(Precision::kBf16);
  RightFactor of_f32, of_reference, right;
  f32->Prepare(Transpose::kYes, x, &of_f32);
  reference->Prepare(Transpose::kYes, x, &of_reference);
  reference->Prepare(Transpose::kNo, x, &right);
  EXPECT_DEATH((void)bf16->Gemm(Transpose::kNo, x, of_f32, 0, c), "same kind");
  EXPECT_DEATH((void)bf16->Gemm(Transpose::kNo, x, of_reference, 0, c), "same kind");
  LeftFactor left;
  std::vector<ExpRow> rows(8);
  bf16->ExpFactor({}, c, rows, &left);
  EXPECT_DEATH((void)reference->Gemm(Transpose::kNo, left, right, 0, c), "same kind");
}

TEST(VectorMath, ExpIsWithinTwoUnitsInTheLastPlace) {
  for (double x = -86.9; x < 88; x += 0.00137) {
    const auto argument = static_cast<float>(x);
    const double want = std::exp(double{argument});
    ASSERT_NEAR(Exp(argument), want, 2.5e-7 * want) << argument;
  }
  EXPECT_EQ(Exp(-1e30f), Exp(-87.0f));
  EXPECT_EQ(Exp(0), 1);
}

TEST(VectorMath, LogIsWithinTwoUnitsInTheLastPlace) {
  const auto check = [](float x) {
    const double want = std::log(double{x});
    const double step = std::abs(want) * 0x1p-23 + 0x1p-48;
    ASSERT_NEAR(Log(x), want, 2 * step) << x;
  };
  // Every number of 2^12 in an octave, from the smallest normal one to the largest.
  for (uint32_t bits = 0x00800000; bits < 0x7f800000; bits += 0x00000801)
    check(__builtin_bit_cast(float, bits));
  // All beside 1, where the logarithm is next to nothing, and where the exponent changes.
  for (const float around : {1.0f, 0.70710678f, 1.41421356f})
    for (int32_t by = -5000; by <= 5000; ++by)
      check(__builtin_bit_cast(float,
                               __builtin_bit_cast(uint32_t, around) + static_cast<uint32_t>(by)));
  EXPECT_EQ(Log(1), 0);
}

}  // namespace
}  // namespace tacit::ops
