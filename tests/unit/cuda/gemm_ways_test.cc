// Every way in which a device multiplies bf16, at ugly shapes: against float64 loops, and the same
// bits twice.
#include <gtest/gtest.h>

#include <vector>

#include "cuda/kernels/gemm/gemm.h"
#include "unit/cuda/gemm_trial.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

const char* NameOf(GemmWay way) { return way == GemmWay::kWgmma ? "wgmma" : "mma.sync"; }

class GemmWays : public OnDevice {
 protected:
  std::vector<float> Multiply(const ProductTrial& trial, float beta, const GemmPlan& plan) {
    const auto a = ToDevice(trial.a().numbers), b = ToDevice(trial.b().numbers);
    const auto c = ToDevice(trial.before());
    // A number that is not written stays none.
    const auto work = ToDevice(std::vector<float>(GemmWorkFloats(plan, trial.m(), trial.n()),
                                                  std::numeric_limits<float>::quiet_NaN()));
    const DeviceMatrix<float> to(c.span().data, trial.m(), trial.n(),
                                 ProductTrial::Stride(trial.n()));
    const Status done = Gemm16(*stream_, trial.form_a(), trial.a().On(a), trial.form_b(),
                               trial.b().On(b), beta, to, plan, work.span());
    EXPECT_TRUE(done) << done.error().message;
    return FromDevice(c);
  }
  void Check(const ProductTrial& trial, float beta, const GemmPlan& plan) {
    SCOPED_TRACE(::testing::Message() << NameOf(plan.way) << " tile " << plan.tile << " splits "
                                      << plan.splits << " beta " << beta);
    NextOrder(++orders_);
    const auto c = Multiply(trial, beta, plan);
    ASSERT_NO_FATAL_FAILURE(trial.Check(beta, c));
    NextOrder(++orders_);
    ASSERT_EQ(c, Multiply(trial, beta, plan)) << "other bits the second time";
  }
  void CheckShape(uint32_t m, uint32_t n, uint32_t k) {
    for (const Form fa : {Form::kAsIs, Form::kTransposed})
      for (const Form fb : {Form::kAsIs, Form::kTransposed}) {
        SCOPED_TRACE(::testing::Message() << m << " x " << n << " x " << k << " forms "
                                          << static_cast<int>(fa) << static_cast<int>(fb));
        const ProductTrial trial(m, n, k, fa, fb, random_);
        for (const GemmWay way : {GemmWay::kMma, GemmWay::kWgmma}) {
          if (way == GemmWay::kWgmma && OwnWay(device_->facts()) != way) continue;
          for (const uint32_t tile : {64u, 128u, 256u}) {
            if (tile == 256 && way == GemmWay::kMma) continue;
            for (const uint32_t splits : {1u, 3u})
              ASSERT_NO_FATAL_FAILURE(Check(trial, static_cast<float>(++number_ % 2),
                                            {.tile = tile, .splits = splits, .way = way}));
          }
        }
      }
  }

  std::mt19937_64 random_{7};
  int number_ = 0, orders_ = 0;
};

TEST_F(GemmWays, MultiplySmallShapes) {
  if (device_ == nullptr) return;
  CheckShape(1, 1, 1);
  CheckShape(7, 65, 129);
  CheckShape(129, 7, 65);
  CheckShape(65, 129, 7);
  CheckShape(64, 256, 64);
  CheckShape(128, 64, 512);
  CheckShape(1, 598, 65);
  CheckShape(9, 5, 0);
}
TEST_F(GemmWays, MultiplyLongShapes) {
  if (device_ == nullptr || Orders() > 1) return;
  CheckShape(7, 65, 16385);
  CheckShape(65, 16383, 7);
  CheckShape(16384, 65, 7);
  CheckShape(16384, 1, 129);
}
TEST_F(GemmWays, MultiplyAStepsShapes) {
  if (device_ == nullptr || Orders() > 1) return;
  CheckShape(2048, 129, 598);
  CheckShape(599, 598, 129);
  CheckShape(129, 598, 2048);
}

// A row's sums do not depend on what is beside it, nor on the row's place in a tile.
TEST_F(GemmWays, ARowIsTheSameAloneAndBesideOthers) {
  if (device_ == nullptr) return;
  const ProductTrial trial(300, 200, 333, Form::kAsIs, Form::kAsIs, random_);
  const auto a = ToDevice(trial.a().numbers), b = ToDevice(trial.b().numbers);
  const GemmPlan plan = PlanRows(200, OwnWay(device_->facts()));
  const auto all = Multiply(trial, 0, plan);
  for (const uint32_t first : {0u, 1u, 63u, 130u, 299u}) {
    auto some = trial.a().On(a);
    some.data += first * some.stride;
    some.rows -= first;
    const auto c = Make<float>(some.rows * 200);
    ASSERT_TRUE(Gemm16(*stream_, Form::kAsIs, some, Form::kAsIs, trial.b().On(b), 0,
                       {c.span().data, some.rows, 200, 200}, plan, {}));
    const auto got = FromDevice(c);
    for (size_t i = 0; i < some.rows; ++i)
      for (size_t j = 0; j < 200; ++j)
        ASSERT_EQ(got[i * 200 + j], all[(first + i) * ProductTrial::Stride(200) + j])
            << "from row " << first << ": " << i << ", " << j;
  }
}

// A device of 9.0 takes wgmma by itself.
TEST_F(GemmWays, TheDeviceTakesItsOwn) {
  if (device_ == nullptr) return;
  const DeviceFacts& facts = device_->facts();
  EXPECT_EQ(OwnWay(facts) == GemmWay::kWgmma, facts.major == 9 && facts.minor == 0);
}

}  // namespace
}  // namespace tacit::cuda::testing
