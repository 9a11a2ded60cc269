// The fast sampler draws from the same distribution as the naive one over the whole id space; and
// the comparison that says so finds every fault that has been made in such mechanisms.
#include <gtest/gtest.h>

#include <cmath>

#include "distribution.h"
#include "mechanism/private_step.h"
#include "naive.h"
#include "support/fixed_noise.h"
#include "support/statistics.h"

namespace tacit::mechanism {
namespace {

constexpr AdaFestOptions kOptions{.sigma_selection = 0.7,
                                  .sigma_gradient = 0.5,
                                  .clip_selection = 1,
                                  .clip_gradient = 0.8,
                                  .threshold = 0.9,
                                  .expected_batch = 9};

// AdaFEST and, with a vocabulary, AdaFEST+.
struct Setting {
  explicit Setting(uint64_t rows, std::vector<uint64_t> inside = {})
      : space(TwoTables(rows)), vocabulary(std::move(inside)), units(SomeUnits(space)) {}

  KeepRule Rule(const StepUnits& step, const AdaFestOptions& options, Fault fault) const {
    std::vector<uint8_t> inside(space.rows(), vocabulary.empty());
    for (uint64_t row : vocabulary) inside[row] = 1;
    std::vector<double> map(space.rows());
    std::vector<uint8_t> touched(space.rows());
    for (const UnitGradient& unit : step) {
      double active = 0;
      for (const auto& [row, values] : unit.rows)
        active += inside[row] || fault == Fault::kOutsideCounted;
      for (const auto& [row, values] : unit.rows) {
        map[row] += std::min(1.0, options.clip_selection / std::sqrt(active));
        touched[row] = 1;
      }
    }
    const double stddev = options.clip_selection * options.sigma_selection;
    return [=, z = std::vector<double>(map.size())](Random& random,
                                                    std::vector<uint8_t>* kept) mutable {
      random.FillNormals(z);
      for (size_t row = 0; row < map.size(); ++row) {
        double threshold = options.threshold;
        if (fault == Fault::kThresholdByVariance && !touched[row]) threshold /= stddev;
        bool passes = map[row] + stddev * z[row] >= threshold;
        if (fault == Fault::kTouchedDrawnTwice && touched[row])
          passes = passes || stddev * random.Normal() >= threshold;
        (*kept)[row] = inside[row] && passes;
      }
    };
  }

  Moments Naive(const StepUnits& step, Fault fault, uint64_t seed, size_t draws) const {
    NaiveStep naive(space, step,
                    {kOptions.sigma_gradient, kOptions.clip_gradient, kOptions.expected_batch},
                    Rule(step, kOptions, fault), fault, seed);
    return Measure(space, draws, [&]() -> const Update& { return naive.Step(); });
  }

  std::unique_ptr<Mechanism> Make(const AdaFestOptions& options) const {
    if (vocabulary.empty()) return MakeAdaFest(space, options);
    return MakePrivateStep(
        space,
        MakeThresholdRows(space,
                          {.sigma = options.sigma_selection,
                           .clip = options.clip_selection,
                           .threshold = options.threshold},
                          MakeVocabulary(space, {.source = VocabularyOptions::Source::kPublic,
                                                 .rows = vocabulary})),
        MakeFlatClipper(options.clip_gradient, options.sigma_gradient),
        {.sigma_gradient = options.sigma_gradient, .expected_batch = options.expected_batch});
  }
  Moments Fast(const StepUnits& step, size_t draws) const {
    const auto mechanism = Make(kOptions);
    auto noise = noise::FixedNoise(42);
    StepRunner runner(space, step);
    return Measure(space, draws, [&]() -> const Update& { return runner.Run(*mechanism, noise); });
  }

  RowSpace space;
  std::vector<uint64_t> vocabulary;
  StepUnits units;
};

// Faults are measured with a tenth of the draws.
void ExpectTheNaiveOne(const Setting& setting, std::vector<Fault> faults) {
  constexpr size_t kDraws = 100000;
  const Moments expected = setting.Naive(setting.units, Fault::kNone, 1, kDraws);
  EXPECT_LT(Moments::Distance(setting.Fast(setting.units, kDraws), expected), kLimit);
  EXPECT_LT(Moments::Distance(setting.Naive(setting.units, Fault::kNone, 2, kDraws / 10), expected),
            kLimit);
  for (Fault fault : faults)
    EXPECT_GT(Moments::Distance(setting.Naive(setting.units, fault, 3, kDraws / 5), expected),
              1.5 * kLimit)
        << "fault " << static_cast<int>(fault) << " on " << setting.space.rows() << " rows";
}

constexpr Fault kFaults[] = {Fault::kThresholdByVariance, Fault::kUntouchedWithoutNoise,
                             Fault::kTouchedDrawnTwice,   Fault::kClipBeforeMask,
                             Fault::kRealisedBatch,       Fault::kNoiseInsideClip};

TEST(AdaFestDistribution, IsTheNaiveOneOnTwentyRowsAndFaultsAreFoundOut) {
  ExpectTheNaiveOne(Setting(20), {std::begin(kFaults), std::end(kFaults)});
}

TEST(AdaFestDistribution, IsTheNaiveOneOnTwoThousandRowsAndFaultsAreFoundOut) {
  ExpectTheNaiveOne(Setting(2000), {std::begin(kFaults), std::end(kFaults)});
}

// Every third row is inside: some that units touch, and some that no unit touches.
std::vector<uint64_t> EveryThird(uint64_t rows) {
  std::vector<uint64_t> inside;
  for (uint64_t row = 0; row < rows; row += 3) inside.push_back(row);
  return inside;
}

TEST(AdaFestPlusDistribution, IsTheNaiveOneInsideAVocabularyAndFaultsAreFoundOut) {
  for (uint64_t rows : {20u, 400u}) {
    std::vector<Fault> faults(std::begin(kFaults), std::end(kFaults));
    faults.push_back(Fault::kOutsideCounted);
    ExpectTheNaiveOne(Setting(rows, EveryThird(rows)), faults);
  }
}

TEST(AdaFestDistribution, AnEmptyBatchIsNoiseAndSilenceIsFoundOut) {
  const Setting setting(20);
  const Moments expected = setting.Naive({}, Fault::kNone, 1, 100000);
  EXPECT_LT(Moments::Distance(setting.Fast({}, 100000), expected), kLimit);
  EXPECT_GT(Moments::Distance(setting.Naive({}, Fault::kEmptyBatchSilent, 3, 20000), expected),
            1.5 * kLimit);
}

// A touched row that passes with probability .30, where rows no unit touched pass with .05: if hits
// of the skips on it were kept, it would pass with 1 - .70 * .95 = .335.
TEST(AdaFestDistribution, ATouchedRowHasOneDrawOnly) {
  const Setting setting(20);
  AdaFestOptions options = kOptions;
  options.sigma_selection = 1 / (1.6448536269514722 - 0.5244005127080407);
  options.threshold = 1.6448536269514722 * options.sigma_selection;
  StepUnits units(1);
  units[0].dense.resize(kDenseSize);
  units[0].rows[7] = {0.5};
  constexpr size_t kDraws = 100000;
  const auto share = [](size_t draws, const std::function<const Update&()>& draw) {
    double written = 0;
    for (size_t i = 0; i < draws; ++i) {
      const Update& update = draw();
      written += std::binary_search(update.rows.begin(), update.rows.end(), 7u);
    }
    return written / static_cast<double>(draws);
  };
  const auto mechanism = setting.Make(options);
  auto noise = noise::FixedNoise(42);
  StepRunner runner(setting.space, units);
  const double stddev = std::sqrt(0.3 * 0.7 / kDraws);
  const double fast =
      share(kDraws, [&]() -> const Update& { return runner.Run(*mechanism, noise); });
  EXPECT_EQ(testing::CheckDeviation("share", fast, 0.3, stddev), "");
  NaiveStep faulty(setting.space, units, {1, 1, 1},
                   setting.Rule(units, options, Fault::kTouchedDrawnTwice),
                   Fault::kTouchedDrawnTwice, 4);
  const double twice = share(kDraws, [&]() -> const Update& { return faulty.Step(); });
  EXPECT_EQ(testing::CheckDeviation("share", twice, 0.335, stddev), "");
  EXPECT_NE(testing::CheckDeviation("share", twice, 0.3, stddev), "");
}

}  // namespace
}  // namespace tacit::mechanism
