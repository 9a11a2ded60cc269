// The sequence model with factors of products rounded to bf16.
#include <gtest/gtest.h>

#include "sequence_trial.h"

namespace tacit::model {
namespace {

using testing::CheckNormIsOfWhatIsAdded;
using testing::Kind;
using testing::kKinds;
using testing::OracleUnit;
using testing::SquaredLength;
using testing::Trial;

double Distance(std::span<const float> x, std::span<const double> y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return std::sqrt(sum);
}

// With factors rounded the gradient is another one, near the exact one; but the norm is that of the
// gradient which is added, to the last digits, and so is what it is clipped to.
TEST(SequenceInBf16, NormsAreThoseOfWhatIsAdded) {
  WorkerPool workers({2, false});
  const auto reference = ops::MakeReferenceBackend(), cpu = ops::MakeCpuBackend(workers);
  const testing::FlatClip whole(1e30);
  double rounded = 0, apart = 0, exact = 0;
  for (uint64_t kind = 0; kind < kKinds; ++kind) {
    SequenceOptions options = Kind(kind);
    options.precision = ops::Precision::kBf16;
    Trial all(options, kind + 1);
    for (size_t u = 0; u < all.units.size(); ++u) {
      SCOPED_TRACE(::testing::Message() << "kind " << kind << " unit " << u);
      Trial trial = all;
      trial.units = {all.units[u]};
      const std::vector<double> gradient = trial.Oracle(0).gradient;
      const double length = std::sqrt(SquaredLength(gradient));
      const SequenceSum slow = trial.Sum(whole, *reference), sum = trial.Sum(whole, *cpu);
      CheckNormIsOfWhatIsAdded(trial, *cpu);
      if (HasFatalFailure()) return;
      ASSERT_LE(Distance(sum.values, gradient), 0.3 * length);
      ASSERT_LE(Distance(slow.values, gradient), 0.3 * length);
      rounded += Distance(slow.values, gradient);
      apart += Distance(sum.values, std::vector<double>(slow.values.begin(), slow.values.end()));
      exact += length;
    }
  }
  // Rounding is there, and small; two implementations of it differ by the odd number that falls on
  // the other side of a tie.
  EXPECT_GT(rounded, 1e-3 * exact);
  EXPECT_LT(rounded, 3e-2 * exact);
  EXPECT_LT(apart, 1e-4 * exact);
}

// If the target is all but certain, what is added for it and what is taken off nearly cancel: both
// are rounded alike, or nothing but rounding would be left, and a clip that makes units equally
// long would add that. That would be some 2^-9 of a unit's 6 positions, 1e-2; sums in f32 are off
// by some 1e-6, in another way on each processor.
TEST(SequenceInBf16, CertainPredictionsLeaveLittle) {
  WorkerPool workers({1, false});
  const auto reference = ops::MakeReferenceBackend(), cpu = ops::MakeCpuBackend(workers);
  SequenceOptions options = Kind(0);
  options.catalogue = 20;
  options.length = 6;
  options.width = 16;
  options.item_bias = true;
  options.precision = ops::Precision::kBf16;
  for (const float bias : {8.0f, 12.0f, 16.0f}) {
    Trial trial(options, 3);
    trial.parameters[trial.layout.item_bias().offset + 5] = bias;
    trial.units = {{.id = 1, .crops = {{{5, 3, 5, 7, 5, 5}, {5, 5, 5, 5, 5, 5}}}}};
    const OracleUnit unit = trial.Oracle(0);
    ASSERT_LT(unit.loss, 0.1);
    const double length = std::sqrt(SquaredLength(unit.gradient));
    for (ops::Backend* backend : {reference.get(), cpu.get()}) {
      const SequenceSum sum = trial.Sum(testing::NoClip(), *backend);
      EXPECT_LE(Distance(sum.values, unit.gradient), 0.05 * length + 2e-5)
          << "bias " << bias << " on " << backend->name();
    }
  }
}

}  // namespace
}  // namespace tacit::model
