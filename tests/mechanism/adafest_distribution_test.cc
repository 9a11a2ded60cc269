// The fast sampler draws from the same distribution as the naive one over the whole id space; and
// the comparison that says so finds every fault that has been made in such mechanisms.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "mechanism/mechanism.h"
#include "noise/stream_noise.h"
#include "step.h"

namespace tacit::mechanism {
namespace {

constexpr size_t kDraws = 100000;

// What is compared of an update, as numbers: which rows are written, which pairs, how many; first
// and second moments of every value; products of neighbouring values.
class Features {
 public:
  explicit Features(const RowSpace& space) : space_(space), offset_(space.rows() + 1) {
    for (uint64_t row = 0; row < space.rows(); ++row)
      offset_[row + 1] = offset_[row] + space.tables()[space.TableOf(row)].dim;
    // All pairs where there are few, pairs of near neighbours where there are many.
    pair_distance_ = space.rows() <= 20 ? space.rows() : 3;
  }

  const std::vector<double>& Of(const Update& update) {
    written_.assign(space_.rows(), 0);
    values_.assign(offset_.back(), 0);
    for (const auto& [row, values] : update.rows) {
      written_[row] = 1;
      std::copy(values.begin(), values.end(), values_.begin() + offset_[row]);
    }
    values_.insert(values_.end(), update.dense.begin(), update.dense.end());
    features_.clear();
    features_.insert(features_.end(), written_.begin(), written_.end());
    for (uint64_t a = 0; a < space_.rows(); ++a)
      for (uint64_t b = a + 1; b < std::min(a + pair_distance_, space_.rows()); ++b)
        features_.push_back(written_[a] * written_[b]);
    for (size_t i = 0; i < values_.size(); ++i) {
      features_.push_back(values_[i]);
      features_.push_back(values_[i] * values_[i]);
      if (i > 0) features_.push_back(values_[i] * values_[i - 1]);
    }
    for (uint64_t count = 0; count <= std::min<uint64_t>(space_.rows(), 60); ++count)
      features_.push_back(update.rows.size() == count);
    return features_;
  }

 private:
  const RowSpace& space_;
  std::vector<ptrdiff_t> offset_;
  uint64_t pair_distance_;
  std::vector<double> written_, values_, features_;
};

struct Moments {
  std::vector<double> mean, variance;
};

Moments Measure(const RowSpace& space, const std::function<Update()>& draw) {
  Features features(space);
  Moments moments;
  for (size_t i = 0; i < kDraws; ++i) {
    const auto& values = features.Of(draw());
    moments.mean.resize(values.size());
    moments.variance.resize(values.size());
    for (size_t k = 0; k < values.size(); ++k) {
      moments.mean[k] += values[k];
      moments.variance[k] += values[k] * values[k];
    }
  }
  for (size_t k = 0; k < moments.mean.size(); ++k) {
    moments.mean[k] /= kDraws;
    moments.variance[k] = moments.variance[k] / kDraws - moments.mean[k] * moments.mean[k];
  }
  return moments;
}

// The largest difference of two means in standard deviations. By chance one of a thousand features
// is beyond 6.5 with probability 1e-7.
constexpr double kLimit = 6.5;

double Distance(const Moments& a, const Moments& b) {
  double distance = 0;
  for (size_t k = 0; k < a.mean.size(); ++k) {
    const double stddev = std::sqrt((a.variance[k] + b.variance[k]) / kDraws);
    distance = std::max(distance, std::abs(a.mean[k] - b.mean[k]) / (stddev + 1e-7));
  }
  return distance;
}

AdaFestOptions Options() {
  return {.sigma_selection = 0.7,
          .sigma_gradient = 0.5,
          .clip_selection = 1,
          .clip_gradient = 0.8,
          .threshold = 0.9,
          .expected_batch = 9};
}

// Units with few and many rows, gradients below and above the clip.
StepUnits SomeUnits(const RowSpace& space) {
  std::mt19937_64 random(3);
  StepUnits units;
  for (size_t active : {1u, 1u, 2u, 3u, 5u, 5u, 0u}) {
    UnitGradient unit;
    const double size = units.size() % 3 == 0 ? 0.1 : 1.0;
    const auto value = [&] { return size * (static_cast<double>(random() % 1000) / 500 - 0.8); };
    for (size_t i = 0; i < kDenseSize; ++i) unit.dense.push_back(value() / 4);
    while (unit.rows.size() < active) {
      // Popular rows first, so that units share some.
      const uint64_t row = random() % (random() % space.rows() + 1);
      auto& values = unit.rows[row];
      values.resize(space.tables()[space.TableOf(row)].dim);
      for (double& v : values) v = value();
    }
    units.push_back(unit);
  }
  return units;
}

struct Setting {
  explicit Setting(uint64_t rows) {
    space.AddTable("narrow", rows / 2, 1);
    space.AddTable("wide", rows - rows / 2, 2);
    units = SomeUnits(space);
  }
  Moments Naive(const StepUnits& step, Fault fault, uint64_t seed) const {
    NaiveAdaFest naive(space, Options(), fault, seed);
    return Measure(space, [&] { return naive.Step(step); });
  }
  Moments Fast(const StepUnits& step) const {
    const auto mechanism = MakeAdaFest(space, Options());
    noise::StreamNoise noise(std::make_unique<noise::Keystream>(noise::Keystream::Key{42},
                                                                noise::Keystream::CounterBlock{}));
    return Measure(space, [&] { return RunStep(*mechanism, space, step, noise); });
  }
  RowSpace space;
  StepUnits units;
};

TEST(AdaFestDistribution, IsTheNaiveOneAndFaultsAreFoundOut) {
  const Setting setting(20);
  const Moments expected = setting.Naive(setting.units, Fault::kNone, 1);
  EXPECT_LT(Distance(setting.Fast(setting.units), expected), kLimit);
  EXPECT_LT(Distance(setting.Naive(setting.units, Fault::kNone, 2), expected), kLimit);
  for (Fault fault :
       {Fault::kThresholdByVariance, Fault::kUntouchedWithoutNoise, Fault::kTouchedDrawnTwice,
        Fault::kClipBeforeMask, Fault::kRealisedBatch, Fault::kNoiseInsideClip})
    EXPECT_GT(Distance(setting.Naive(setting.units, fault, 3), expected), 2 * kLimit)
        << static_cast<int>(fault);
}

TEST(AdaFestDistribution, IsTheNaiveOneWhereMostRowsAreUntouched) {
  const Setting setting(200);
  const Moments expected = setting.Naive(setting.units, Fault::kNone, 1);
  EXPECT_LT(Distance(setting.Fast(setting.units), expected), kLimit);
  EXPECT_GT(Distance(setting.Naive(setting.units, Fault::kThresholdByVariance, 3), expected),
            2 * kLimit);
}

TEST(AdaFestDistribution, AnEmptyBatchIsNoiseAndSilenceIsFoundOut) {
  const Setting setting(20);
  const Moments expected = setting.Naive({}, Fault::kNone, 1);
  EXPECT_LT(Distance(setting.Fast({}), expected), kLimit);
  EXPECT_GT(Distance(setting.Naive({}, Fault::kEmptyBatchSilent, 3), expected), 2 * kLimit);
}

}  // namespace
}  // namespace tacit::mechanism
