// Products of bf16 matrices by the library against float64 loops, as our own are held; by cuBLAS on
// a device that has it, by the stand-in on the emulated one.
#include "cuda/kernels/gemm/gemm_library.h"

#include <gtest/gtest.h>

#include <vector>

#include "cuda/device/graph.h"
#include "unit/cuda/blas_trial.h"
#include "unit/cuda/gemm_trial.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {
namespace {

class GemmLibrary : public OnDevice {
 protected:
  void SetUp() override {
    const bool must = LibraryMustBeThere();
    OnDevice::SetUp();
    if (device_ == nullptr) return;
    auto library = Blas::Load(*stream_);
    if (!library && !must) GTEST_SKIP() << library.error().message;
    ASSERT_TRUE(library) << library.error().message;
    library_ = std::move(*library);
  }
  void TearDown() override {
    library_.reset();
    OnDevice::TearDown();
  }

  std::vector<float> Multiply(const ProductTrial& trial, float beta, bool by_library) {
    const auto a = ToDevice(trial.a().numbers), b = ToDevice(trial.b().numbers);
    // With beta 0 nothing that was there may be read.
    auto before = trial.before();
    for (size_t i = 0; beta == 0 && i < trial.m(); ++i)
      for (size_t j = 0; j < trial.n(); ++j)
        before[i * ProductTrial::Stride(trial.n()) + j] = std::numeric_limits<float>::quiet_NaN();
    const auto c = ToDevice(before);
    const DeviceMatrix<float> to(c.span().data, trial.m(), trial.n(),
                                 ProductTrial::Stride(trial.n()));
    const auto on_a = trial.a().On(a), on_b = trial.b().On(b);
    const GemmPlan plan{.tile = 64};
    const Status done =
        by_library
            ? GemmByLibrary(*library_, trial.form_a(), on_a, trial.form_b(), on_b, beta, to)
            : Gemm16(*stream_, trial.form_a(), on_a, trial.form_b(), on_b, beta, to, plan, {});
    EXPECT_TRUE(done) << done.error().message;
    return FromDevice(c);
  }
  void CheckShape(uint32_t m, uint32_t n, uint32_t k) {
    for (const Form fa : {Form::kAsIs, Form::kTransposed})
      for (const Form fb : {Form::kAsIs, Form::kTransposed})
        for (const float beta : {0.0f, 1.0f}) {
          SCOPED_TRACE(::testing::Message()
                       << m << " x " << n << " x " << k << " forms " << static_cast<int>(fa)
                       << static_cast<int>(fb) << " beta " << beta);
          const ProductTrial trial(m, n, k, fa, fb, random_);
          const auto c = Multiply(trial, beta, true);
          ASSERT_NO_FATAL_FAILURE(trial.Check(beta, c));
          ASSERT_EQ(c, Multiply(trial, beta, true)) << "other bits the second time";
          // Our own keep the same contract, so the two differ by no more than that.
          ASSERT_NO_FATAL_FAILURE(trial.Check(beta, Multiply(trial, beta, false)));
        }
  }

  std::unique_ptr<Blas> library_;
  std::mt19937_64 random_{17};
};

TEST_F(GemmLibrary, MultipliesSmallShapes) {
  if (device_ == nullptr) return;
  CheckShape(1, 1, 1);
  CheckShape(7, 65, 129);
  CheckShape(129, 7, 65);
  CheckShape(65, 129, 7);
  CheckShape(64, 64, 64);
  CheckShape(1, 59, 65);
}

// A net of 27 inputs, 9 and 6 outputs and one logit, and of 59, with 33 rows.
TEST_F(GemmLibrary, MultipliesAStepsShapes) {
  if (device_ == nullptr) return;
  const uint32_t widths[] = {59, 27, 9, 6, 1};
  constexpr uint32_t kRows = 33;
  for (size_t l = 0; l + 1 < std::size(widths); ++l) {
    CheckShape(kRows, widths[l + 1], widths[l]);
    CheckShape(kRows, widths[l], widths[l + 1]);
    CheckShape(widths[l] + 1, widths[l + 1], kRows);
  }
}

TEST_F(GemmLibrary, PassesItsCheck) {
  if (device_ == nullptr) return;
  const Status checked = CheckLibrary(*library_);
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST_F(GemmLibrary, NothingIsAskedForAProductOfNothing) {
  if (device_ == nullptr) return;
  EXPECT_TRUE(GemmByLibrary(*library_, Form::kAsIs, {nullptr, 0, 5, 8}, Form::kAsIs,
                            {nullptr, 5, 3, 8}, 0, {nullptr, 0, 3, 3}));
  EXPECT_TRUE(GemmByLibrary(*library_, Form::kAsIs, {nullptr, 4, 5, 8}, Form::kTransposed,
                            {nullptr, 0, 5, 8}, 1, {nullptr, 4, 0, 8}));
  EXPECT_TRUE(stream_->Synchronize());
}

// In a graph it multiplies what lies there when the graph is launched, and in its turn.
TEST_F(GemmLibrary, IsCapturedInAGraph) {
  if (device_ == nullptr) return;
  constexpr uint32_t kSide = 40;
  const std::vector<uint16_t> ones(kSide * kSide, 0x3f80), twos(kSide * kSide, 0x4000);
  const auto a = ToDevice(ones), b = ToDevice(ones);
  const auto c = ToDevice(std::vector<float>(kSide * kSide, 5.0f));
  const auto put = [&](Stream&) {
    return GemmByLibrary(*library_, Form::kAsIs, {a.span().data, kSide, kSide, kSide}, Form::kAsIs,
                         {b.span().data, kSide, kSide, kSide}, 1,
                         {c.span().data, kSide, kSide, kSide});
  };
  ASSERT_TRUE(put(*stream_));
  ASSERT_TRUE(stream_->Synchronize());
  auto graph = Graph::Capture(*stream_, put);
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(graph->Launch(*stream_));
  ASSERT_TRUE(stream_->Upload<uint16_t>(twos, a.span()));
  ASSERT_TRUE(graph->Launch(*stream_));
  EXPECT_EQ(FromDevice(c), std::vector<float>(kSide * kSide, 5.0f + 4 * kSide));
}

}  // namespace
}  // namespace tacit::cuda::testing
