// The audit of a linear model's charge, which must be seen to a tenth. Over its whole allowance a
// user moves the sums by the clip of each period, and the noise on them is measured number by
// number: a Gaussian of this shift and of this deviation proves an epsilon, which is nearly the
// ledger's and never above it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <iostream>
#include <map>

#include "noise/stream_noise.h"
#include "privacy/gaussian.h"
#include "privacy/spending.h"
#include "tape/run.h"
#include "tape/spoilt_noise.h"

namespace tacit::tape {
namespace {

constexpr double kFalseAlarm = 1e-8;
constexpr uint64_t kTapes = 8;

// Each period has some 80,000 numbers, all of them released.
Case LinearOfUsers() {
  Case tried = CaseOf(privacy::Query::kPeriodSums);
  tried.model = "{kind: linear}";
  tried.buckets = 40'000;
  return tried;
}

// The proof of some runs, each with keys of its own.
struct Proof {
  double charged_mu = 0, charged_epsilon = 0;  // of a user who is in all steps of the allowance
  // The sums' shift in deviations as they were asked for, and the noise's own deviation in them:
  // measured, and a bound that it is below.
  double shift = 0, deviation = 0, deviation_most = 0;
  double epsilon = 0;

  double mu() const { return shift / deviation_most; }
  bool accuses() const { return mu() > charged_mu * (1 + 1e-9); }
  std::string text() const {
    return fmt::format(
        "mu {:.5f} of {:.5f}: shift {:.5f}, deviation {:.4f}; epsilon {:.3f} of {:.3f}", mu(),
        charged_mu, shift, deviation, epsilon, charged_epsilon);
  }
};

Proof Prove(const Planted& planted, const testing::Matcher<std::vector<std::string>>& wrong) {
  const Subject subject(LinearOfUsers());
  const privacy::Promise& promise = subject.plan().promise;
  const auto spent = privacy::Spending::Of(subject.plan().charge, promise.bounds.allowance);
  const Delta delta(promise.delta);
  Proof proof{.charged_mu = std::sqrt(spent.mu_squared),
              .charged_epsilon = privacy::EpsilonMeter().Bounds(spent, delta).upper};
  uint64_t numbers = 0;
  double squares = 0;
  for (uint64_t seed = 1; seed <= kTapes; ++seed) {
    const Reading reading = ReadTape(subject, seed, planted);
    EXPECT_THAT(reading.wrong, wrong) << "seed " << seed;
    proof.shift = std::max(proof.shift, std::sqrt(reading.apart));
    for (const auto& [place, drawn] : reading.drawn) {
      numbers += drawn.numbers;
      squares += drawn.squares;
    }
  }
  EXPECT_GT(numbers, 200'000u);
  const boost::math::chi_squared law(static_cast<double>(numbers));
  proof.deviation = std::sqrt(squares / static_cast<double>(numbers));
  proof.deviation_most = std::sqrt(squares / boost::math::quantile(law, kFalseAlarm));
  proof.epsilon = privacy::GaussianEpsilon(proof.mu(), delta).value;
  std::cout << proof.text() << "\n";
  return proof;
}

// The product's noise on new keys, where a fault spoils it.
class NoiseBelow : public noise::ForwardedNoise {
 protected:
  noise::NoiseSource& to() override { return inner_; }

 private:
  noise::StreamNoise inner_;
};
class TenthTooSmall final : public NoiseBelow {
 public:
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    NoiseBelow::AddGridGaussian(0.9 * stddev, values);
  }
};
class SameNoiseAgain final : public NoiseBelow {
 public:
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    std::vector<int64_t>& same = same_[values.size()];
    if (same.empty()) {
      same.resize(values.size());
      NoiseBelow::AddGridGaussian(stddev, same);
    }
    for (size_t i = 0; i < values.size(); ++i) values[i] += same[i];
  }

 private:
  std::map<size_t, std::vector<int64_t>> same_;
};
template <class Noise>
Planted Below() {
  return {.source = [] { return std::make_unique<Noise>(); }};
}

// A unit's part is cut to 1.1 clips.
class ClipTenthTooWide final : public Spoilt {
 public:
  using Spoilt::Spoilt;
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    for (int64_t& value : values) value += value / 10;
    Spoilt::AddGridGaussian(stddev, values);
  }
};

TEST(Charge, AUserOfALinearModelFillsItAndNoMore) {
  const Proof proof = Prove(Below<NoiseBelow>(), testing::IsEmpty());
  EXPECT_FALSE(proof.accuses()) << proof.text();
  EXPECT_GE(proof.epsilon, 0.95 * proof.charged_epsilon) << proof.text();
  EXPECT_GT(proof.shift, 0.999 * proof.charged_mu) << "a user's part is the clip, and no less";
}

// The tape itself does not see these, for it compares what is asked for.
TEST(Charge, NoiseOfALinearModelThatIsATenthTooSmallIsAccused) {
  EXPECT_TRUE(Prove(Below<TenthTooSmall>(), testing::IsEmpty()).accuses());
}
TEST(Charge, NoiseThatComesAgainIsAccused) {
  EXPECT_TRUE(Prove(Below<SameNoiseAgain>(), testing::_).accuses());
}

TEST(Charge, AClipThatIsATenthTooWideIsAccused) {
  Planted planted = With<ClipTenthTooWide>();
  planted.source = Below<NoiseBelow>().source;
  EXPECT_TRUE(
      Prove(planted, testing::Contains(testing::HasSubstr("a unit moves it by 1."))).accuses());
}

}  // namespace
}  // namespace tacit::tape
