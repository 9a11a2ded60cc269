// Products by every plan: tiles, forms and splits, held against float64 loops; and the same bits
// in any order of turns.
#include "cuda/kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "ops/bf16.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

template <class T>
T Rounded(float x) {
  if constexpr (std::is_same_v<T, float>) return x;
  return ops::ToBf16(x);
}
double Number(float x) { return x; }
double Number(uint16_t x) { return ops::FromBf16(x); }

constexpr uint32_t kGap = 8;

class GemmTest : public OnDevice {
 protected:
  template <class T>
  std::vector<T> Random(size_t rows, size_t cols) {
    std::vector<T> numbers(rows * Stride(cols));
    for (T& x : numbers) x = Rounded<T>(normal_(random_));
    return numbers;
  }
  static size_t Stride(size_t cols) { return (cols + 7) / 8 * 8 + kGap; }

  Status Multiply(Form fa, DeviceMatrix<const float> a, Form fb, DeviceMatrix<const float> b,
                  float beta, DeviceMatrix<float> c, const GemmPlan& plan, DeviceSpan<float> work) {
    return Gemm32(*stream_, fa, a, fb, b, beta, c, plan, work);
  }
  Status Multiply(Form fa, DeviceMatrix<const uint16_t> a, Form fb, DeviceMatrix<const uint16_t> b,
                  float beta, DeviceMatrix<float> c, const GemmPlan& plan, DeviceSpan<float> work) {
    return Gemm16(*stream_, fa, a, fb, b, beta, c, plan, work);
  }

  template <class T>
  void Check(uint32_t m, uint32_t n, uint32_t k, Form fa, Form fb, float beta,
             const GemmPlan& plan) {
    SCOPED_TRACE(::testing::Message()
                 << m << " x " << n << " x " << k << " forms " << static_cast<int>(fa)
                 << static_cast<int>(fb) << " tile " << plan.tile << " splits " << plan.splits);
    const bool ta = fa == Form::kTransposed, tb = fb == Form::kTransposed;
    const uint32_t rows_a = ta ? k : m, cols_a = ta ? m : k;
    const uint32_t rows_b = tb ? n : k, cols_b = tb ? k : n;
    const auto a = Random<T>(rows_a, cols_a), b = Random<T>(rows_b, cols_b);
    auto c = Random<float>(m, n);
    const auto before = c;
    const auto on_a = ToDevice(a), on_b = ToDevice(b);
    const auto on_c = ToDevice(c);
    const auto work = Make<float>(GemmWorkFloats(plan, m, n));
    ASSERT_TRUE(
        Multiply(fa, DeviceMatrix<const T>(on_a.span().data, rows_a, cols_a, Stride(cols_a)), fb,
                 DeviceMatrix<const T>(on_b.span().data, rows_b, cols_b, Stride(cols_b)), beta,
                 DeviceMatrix<float>(on_c.span().data, m, n, Stride(n)), plan, work.span()));
    c = FromDevice(on_c);
    for (size_t i = 0; i < m; ++i) {
      for (size_t j = 0; j < Stride(n); ++j) {
        const float got = c[i * Stride(n) + j];
        double sum = beta == 0 ? 0 : before[i * Stride(n) + j], size = std::abs(sum);
        if (j >= n) {
          ASSERT_EQ(got, before[i * Stride(n) + j]) << "wrote behind row " << i;
          continue;
        }
        for (size_t x = 0; x < k; ++x) {
          const double product = Number(ta ? a[x * Stride(m) + i] : a[i * Stride(k) + x]) *
                                 Number(tb ? b[j * Stride(k) + x] : b[x * Stride(n) + j]);
          sum += product;
          size += std::abs(product);
        }
        ASSERT_NEAR(got, sum, 2e-6 * size + 1e-30) << i << ", " << j;
      }
    }
  }

  template <class T>
  void CheckPlans() {
    if (device_ == nullptr) return;
    int number = 0;
    for (const uint32_t tile : {64u, 128u})
      for (const uint32_t splits : {1u, 3u})
        for (const Form fa : {Form::kAsIs, Form::kTransposed})
          for (const Form fb : {Form::kAsIs, Form::kTransposed}) {
            NextOrder(number);
            Check<T>(70, 133, 200, fa, fb, number++ % 2 ? 1.0f : 0.0f,
                     {.tile = tile, .splits = splits});
          }
    // More splits than there is to split.
    Check<T>(9, 5, 20, Form::kTransposed, Form::kAsIs, 1, {.tile = 64, .splits = 4});
    Check<T>(9, 5, 0, Form::kTransposed, Form::kAsIs, 1, {.tile = 64, .splits = 2});
  }

  std::mt19937_64 random_{5};
  std::normal_distribution<float> normal_;
};

TEST_F(GemmTest, EveryPlanMultipliesF32) { CheckPlans<float>(); }
TEST_F(GemmTest, EveryPlanMultipliesBf16) { CheckPlans<uint16_t>(); }

TEST_F(GemmTest, BitsDoNotDependOnTheOrderOfTurns) {
  if (device_ == nullptr) return;
  constexpr uint32_t kSide = 40, kInner = 150;
  const auto a = ToDevice(Random<uint16_t>(kInner, kSide)),
             b = ToDevice(Random<uint16_t>(kInner, kSide));
  const GemmPlan plan{.tile = 64, .splits = 2};
  const auto work = Make<float>(GemmWorkFloats(plan, kSide, kSide));
  std::vector<float> first;
  for (int order = 0; order < Orders(); ++order) {
    NextOrder(order);
    const auto c = Make<float>(kSide * kSide);
    ASSERT_TRUE(Gemm16(*stream_, Form::kTransposed, {a.span().data, kInner, kSide, Stride(kSide)},
                       Form::kAsIs, {b.span().data, kInner, kSide, Stride(kSide)}, 0,
                       {c.span().data, kSide, kSide, kSide}, plan, work.span()));
    const auto got = FromDevice(c);
    if (order == 0) first = got;
    ASSERT_EQ(got, first) << "order " << order;
  }
}

// 132 multiprocessors, at the shapes of a step of 2,048 and of 16,384.
TEST(GemmPlans, KeepMultiprocessorsAtWork) {
  const auto blocks = [](const GemmPlan& plan, uint32_t m, uint32_t n) {
    return (m + plan.tile - 1) / plan.tile * ((n + plan.tile - 1) / plan.tile) * plan.splits;
  };
  const GemmPlan large = PlanGemm(132, 16384, 598, 598);
  EXPECT_EQ(large.tile, 128u);
  EXPECT_EQ(large.splits, 1u);
  const GemmPlan weights = PlanGemm(132, 599, 598, 2048);
  EXPECT_EQ(weights.tile, 64u);
  EXPECT_GE(blocks(weights, 599, 598), 66u);
  const GemmPlan logits = PlanGemm(132, 599, 1, 16384);
  EXPECT_GT(logits.splits, 8u);
  EXPECT_EQ(PlanGemm(132, 0, 5, 5).splits, 1u);
  EXPECT_EQ(PlanGemm(132, 64, 5, 0).splits, 1u);
}

}  // namespace
}  // namespace tacit::cuda::testing
