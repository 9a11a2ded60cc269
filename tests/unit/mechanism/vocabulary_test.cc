#include "mechanism/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "mechanism/choice/choice.h"
#include "mechanism/private_step.h"
#include "naive.h"
#include "support/fixed_noise.h"
#include "support/silent_noise.h"
#include "support/statistics.h"

namespace tacit::mechanism {
namespace {

using Source = VocabularyOptions::Source;

RowSpace SpaceOf(uint64_t rows) {
  RowSpace space;
  space.AddTable("t", rows, 1);
  return space;
}

StepUnits UnitsOf(const std::vector<std::vector<uint64_t>>& rows) {
  StepUnits units(rows.size());
  for (size_t u = 0; u < rows.size(); ++u)
    for (uint64_t row : rows[u]) units[u].rows[row] = {1};
  return units;
}

// One unit of four rows, two of one, one of none.
StepUnits SomePeriod() { return UnitsOf({{0, 1, 2, 3}, {3}, {7}, {}}); }

VocabularyOptions Gaussian(Source source) {
  return {.source = source, .keep = 3, .noise_multiplier = 2, .clip = 1};
}
VocabularyOptions Gumbel(Source source) {
  return {.source = source, .keep = 3, .noise_multiplier = 2};
}

// A vocabulary out of the stream, by either query.
struct Released {
  VocabularyOptions options;
  bool top_rows = false;

  std::unique_ptr<Vocabulary> In(const RowSpace& space) const {
    return top_rows ? MakeTopRows(space, options) : MakeVocabulary(space, options);
  }
};
std::vector<Released> BothQueries(Source source) {
  return {{Gaussian(source)}, {Gumbel(source), true}};
}

TEST(Vocabulary, APublicOneOwesNothing) {
  const RowSpace space = SpaceOf(10);
  const auto vocabulary = MakeVocabulary(space, {.source = Source::kPublic, .rows = {2, 3, 9}});
  EXPECT_EQ(std::vector<uint64_t>(vocabulary->rows().begin(), vocabulary->rows().end()),
            (std::vector<uint64_t>{2, 3, 9}));
  EXPECT_EQ(vocabulary->keep(), 3u);
  EXPECT_FALSE(vocabulary->observes_periods());
  EXPECT_FALSE(vocabulary->opening_charge());
  EXPECT_EQ(vocabulary->state_version(), 0u);
  EXPECT_EQ(vocabulary->SaveState(), "");
  EXPECT_FALSE(vocabulary->LoadState("x"));
}

// Returns residuals of 20,000 periods: each row's count less what the units contribute is normal
// with the deviation that is charged, rows that no unit activated included; no two rows are
// correlated.
std::vector<std::vector<double>> Residuals(const VocabularyOptions& options,
                                           const std::vector<double>& contributions) {
  const RowSpace space = SpaceOf(contributions.size());
  const model::Activations activations = ActivationsOf(SomePeriod());
  auto noise = noise::FixedNoise(9);
  std::vector<std::vector<double>> z(space.rows());
  for (int i = 0; i < 20000; ++i) {
    const auto vocabulary = MakeVocabulary(space, options);
    vocabulary->Observe(activations);
    vocabulary->OpenPeriod(noise);
    for (uint64_t row = 0; row < space.rows(); ++row)
      z[row].push_back((vocabulary->counts()[row] - contributions[row]) /
                       (options.clip * options.noise_multiplier));
  }
  return z;
}

std::string CheckResiduals(const std::vector<std::vector<double>>& z) {
  std::string wrong;
  for (size_t row = 0; row < z.size(); ++row) {
    wrong += testing::CheckMoments(z[row]);
    if (row > 0) wrong += testing::CheckUncorrelated(z[row], z[row - 1]);
  }
  return wrong;
}

TEST(Vocabulary, AHistogramIsTheClippedCountsAndNoiseOnEveryRow) {
  VocabularyOptions options = Gaussian(Source::kFirstPeriod);
  options.noise_multiplier = 0.3;
  for (double clip : {1.0, 1.5, 4.0}) {
    options.clip = clip;
    const double four = std::min(1.0, clip / 2);
    const std::vector<double> contributions = {four, four, four, 1 + four, 0, 0, 0, 1};
    const auto z = Residuals(options, contributions);
    EXPECT_EQ(CheckResiduals(z), "") << clip;
    // The test finds out each fault: no noise on rows that no unit activated, a clip that is
    // forgotten, noise that is a fiftieth less.
    auto silent = z;
    std::fill(silent[5].begin(), silent[5].end(), 0.0);
    EXPECT_NE(CheckResiduals(silent), "");
    if (clip < 2) {
      auto unclipped = contributions;
      unclipped[0] = 1;
      EXPECT_NE(CheckResiduals(Residuals(options, unclipped)), "");
    }
    auto quiet = z;
    for (double& value : quiet[6]) value *= 0.96;
    EXPECT_NE(CheckResiduals(quiet), "");
  }
}

// Keeps the sums that were to be made noisy, in pieces, and adds nothing.
class DrawRecorder final : public noise::SilentNoise {
 public:
  void AddGridGaussian(double stddev, std::span<int64_t> values) override {
    asked_stddev = stddev;
    seen.insert(seen.end(), values.begin(), values.end());
  }
  void AddGaussian(double, std::span<float>) override { ADD_FAILURE() << "noise off the grid"; }

  double asked_stddev = 0;
  std::vector<int64_t> seen;
};

TEST(Vocabulary, OneUnitMovesTheHistogramByAtMostTheClip) {
  const RowSpace space = SpaceOf(5000);
  for (double clip : {1.0, 0.3, 7.0}) {
    VocabularyOptions options = Gaussian(Source::kRunning);
    options.clip = clip;
    for (size_t active : {1u, 3u, 26u, 1000u}) {
      std::vector<std::vector<uint64_t>> rows(3);
      for (uint64_t row = 0; row < active; ++row) rows[1].push_back(row * 5);
      for (uint64_t row = 0; row < 40; ++row) rows[0].push_back(row);
      const auto sums = [&](const StepUnits& units) {
        DrawRecorder noise;
        const auto vocabulary = MakeVocabulary(space, options);
        vocabulary->Observe(ActivationsOf(units));
        vocabulary->OpenPeriod(noise);
        EXPECT_EQ(noise.seen.size(), space.rows());
        return std::pair(noise.seen, noise.asked_stddev / options.noise_multiplier);
      };
      const auto [all, clip_steps] = sums(UnitsOf(rows));
      rows[1].clear();
      const auto [rest, same] = sums(UnitsOf(rows));
      double squared = 0;
      for (size_t row = 0; row < all.size(); ++row)
        squared += static_cast<double>((all[row] - rest[row]) * (all[row] - rest[row]));
      EXPECT_LE(squared, clip_steps * clip_steps) << clip << " " << active;
      const double whole = std::min(clip, std::sqrt(static_cast<double>(active)));
      EXPECT_GT(std::sqrt(squared), 0.999 * whole / clip * clip_steps);
    }
  }
}

// For any order and pieces in which a period is shown.
TEST(Vocabulary, CountsAddUpOverWhatIsShownAndOverPeriods) {
  const RowSpace space = SpaceOf(8);
  const auto vocabulary = MakeVocabulary(space, Gaussian(Source::kRunning));
  DrawRecorder none;
  std::vector<float> expected(8);
  for (int period = 0; period < 3; ++period) {
    EXPECT_TRUE(vocabulary->observes_periods());
    EXPECT_EQ(vocabulary->state_version(), static_cast<uint64_t>(period));
    for (int part = 0; part < 2; ++part) {
      vocabulary->Observe(ActivationsOf(SomePeriod()));
      for (const auto& [row, count] :
           std::map<size_t, float>{{0, .5f}, {1, .5f}, {2, .5f}, {3, 1.5f}, {7, 1}})
        expected[row] += count;
    }
    vocabulary->OpenPeriod(none);
    EXPECT_EQ(std::vector<float>(vocabulary->counts().begin(), vocabulary->counts().end()),
              expected);
    // 3, 7, and of the equal counts that of the lowest row.
    EXPECT_EQ(std::vector<uint64_t>(vocabulary->rows().begin(), vocabulary->rows().end()),
              (std::vector<uint64_t>{0, 3, 7}));
  }
}

// Against sorting, on noise with many ties.
TEST(Vocabulary, KeepsTheLargestCountsAndOfEqualOnesTheLowestRows) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 300; ++round) {
    const RowSpace space = SpaceOf(1 + random() % 40);
    VocabularyOptions options = Gaussian(Source::kFirstPeriod);
    options.keep = 1 + random() % 45;
    StepUnits units(random() % 30);
    std::vector<int> count(space.rows());
    for (UnitGradient& unit : units) {
      const uint64_t row = random() % space.rows();
      unit.rows[row] = {1};
      ++count[row];
    }
    const auto vocabulary = MakeVocabulary(space, options);
    vocabulary->Observe(ActivationsOf(units));
    DrawRecorder none;
    vocabulary->OpenPeriod(none);
    std::vector<uint64_t> order(space.rows());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return count[a] > count[b]; });
    order.resize(std::min<uint64_t>(options.keep, space.rows()));
    std::sort(order.begin(), order.end());
    ASSERT_EQ(std::vector<uint64_t>(vocabulary->rows().begin(), vocabulary->rows().end()), order);
  }
}

// Sets of rows over many periods, against Gumbels of the scale that is charged on every row.
TEST(Vocabulary, OneShotTopRowsAreThoseOfGumbelsOverTheWholeSpace) {
  const RowSpace space = SpaceOf(8);
  VocabularyOptions options = Gumbel(Source::kRunning);
  options.keep = 2;
  options.noise_multiplier = 1.2;
  const std::vector<double> counts = {1, 1, 1, 2, 0, 0, 0, 1};  // however many rows a unit has
  const double epsilon = 2 / (options.noise_multiplier * std::sqrt(2.0));
  const auto vocabulary = MakeTopRows(space, options);
  const model::Activations activations = ActivationsOf(SomePeriod());
  auto noise = noise::FixedNoise(9);
  Random random(6);
  constexpr double kDraws = 100000;
  const auto share = [&](bool untouched_race, double scale) {
    std::vector<double> written(space.rows());
    for (size_t i = 0; i < kDraws; ++i) {
      std::vector<std::pair<double, uint64_t>> noisy;
      for (uint64_t row = 0; row < space.rows(); ++row)
        if (counts[row] > 0 || untouched_race)
          noisy.emplace_back(counts[row] + scale * random.Gumbel(), row);
      std::partial_sort(noisy.begin(), noisy.begin() + 2, noisy.end(), std::greater<>());
      for (size_t k = 0; k < 2; ++k) ++written[noisy[k].second];
    }
    return written;
  };
  std::vector<double> fast(space.rows());
  for (size_t i = 0; i < kDraws; ++i) {
    vocabulary->Observe(activations);
    vocabulary->OpenPeriod(noise);
    ASSERT_EQ(vocabulary->rows().size(), 2u);
    for (uint64_t row : vocabulary->rows()) ++fast[row];
  }
  const auto compare = [&](const std::vector<double>& other) {
    std::string wrong;
    for (size_t row = 0; row < other.size(); ++row)
      wrong +=
          testing::CheckDeviation("row", fast[row], other[row], std::sqrt(fast[row] + other[row]));
    return wrong;
  };
  EXPECT_EQ(compare(share(true, 1 / epsilon)), "");
  EXPECT_NE(compare(share(false, 1 / epsilon)), "");
  EXPECT_NE(compare(share(true, 0.93 / epsilon)), "");
}

TEST(Vocabulary, IsChargedOncePerReleaseAndKnowsBeforehand) {
  const RowSpace space = SpaceOf(8);
  auto noise = noise::FixedNoise(9);
  for (Source source : {Source::kFirstPeriod, Source::kRunning}) {
    for (const Released& released : BothQueries(source)) {
      const auto vocabulary = released.In(space);
      EXPECT_EQ(vocabulary->keep(), 3u);
      EXPECT_TRUE(vocabulary->rows().empty());
      EXPECT_TRUE(vocabulary->observes_periods());
      const auto charge = vocabulary->opening_charge();
      ASSERT_TRUE(charge);
      vocabulary->Observe(ActivationsOf(SomePeriod()));
      EXPECT_EQ(vocabulary->opening_charge(), charge);  // with any rows before
      vocabulary->OpenPeriod(noise);
      EXPECT_EQ(vocabulary->rows().size(), 3u);
      const bool again = source == Source::kRunning;
      EXPECT_EQ(vocabulary->observes_periods(), again);
      EXPECT_EQ(vocabulary->opening_charge().has_value(), again);
      if (again) continue;
      const std::vector<uint64_t> rows(vocabulary->rows().begin(), vocabulary->rows().end());
      const uint64_t version = vocabulary->state_version();
      vocabulary->Observe(ActivationsOf(UnitsOf({{5}, {5}, {6}})));
      vocabulary->OpenPeriod(noise);
      EXPECT_EQ(std::vector<uint64_t>(vocabulary->rows().begin(), vocabulary->rows().end()), rows);
      EXPECT_EQ(vocabulary->state_version(), version);
    }
  }
}

TEST(Vocabulary, ChargesAreThoseOfItsQueries) {
  const RowSpace space = SpaceOf(8);
  VocabularyOptions options = Gaussian(Source::kFirstPeriod);
  options.clip = 3;
  EXPECT_EQ(*MakeVocabulary(space, options)->opening_charge(),
            (privacy::Charge{.mechanism = privacy::MechanismKind::kVocabulary,
                             .noise_multiplier = 2,
                             .sigma_selection = 2,
                             .clip_selection = 3,
                             .sampling_rate = 1}));
  EXPECT_EQ(*MakeTopRows(space, Gumbel(Source::kRunning))->opening_charge(),
            (privacy::Charge{.mechanism = privacy::MechanismKind::kVocabulary,
                             .noise_multiplier = std::numeric_limits<double>::infinity(),
                             .zcdp_rho = 0.125}));
}

// A period in which nothing was shown is released like any other.
TEST(Vocabulary, AnEmptyPeriodIsReleasedToo) {
  const RowSpace space = SpaceOf(1000);
  auto noise = noise::FixedNoise(9);
  for (const Released& released : BothQueries(Source::kRunning)) {
    const auto vocabulary = released.In(space);
    vocabulary->OpenPeriod(noise);
    EXPECT_EQ(vocabulary->rows().size(), 3u);
    EXPECT_EQ(vocabulary->state_version(), 1u);
    if (vocabulary->counts().empty()) continue;
    std::vector<double> z;
    for (float count : vocabulary->counts()) z.push_back(count / 2);
    EXPECT_EQ(testing::CheckMoments(z), "");
  }
}

// The state restores what was released bit by bit; what was only observed is gone, and is not in
// the state.
TEST(Vocabulary, ItsStateIsWhatWasReleased) {
  const RowSpace space = SpaceOf(8);
  auto noise = noise::FixedNoise(9);
  for (Source source : {Source::kFirstPeriod, Source::kRunning}) {
    for (const Released& released : BothQueries(source)) {
      const auto vocabulary = released.In(space);
      vocabulary->Observe(ActivationsOf(SomePeriod()));
      EXPECT_EQ(vocabulary->SaveState(), "");
      vocabulary->OpenPeriod(noise);
      const std::string state = vocabulary->SaveState();
      vocabulary->Observe(ActivationsOf(SomePeriod()));
      EXPECT_EQ(vocabulary->SaveState(), state);
      const auto restored = released.In(space);
      ASSERT_TRUE(restored->LoadState(state));
      EXPECT_EQ(restored->SaveState(), state);
      EXPECT_EQ(restored->state_version(), vocabulary->state_version());
      EXPECT_EQ(restored->opening_charge(), vocabulary->opening_charge());
      EXPECT_TRUE(std::ranges::equal(restored->rows(), vocabulary->rows()));
      EXPECT_TRUE(std::ranges::equal(restored->counts(), vocabulary->counts()));
    }
  }
}

TEST(Vocabulary, RefusesWhatIsNoStateOfIts) {
  const RowSpace space = SpaceOf(8), larger = SpaceOf(9);
  auto noise = noise::FixedNoise(9);
  for (const Released& released : BothQueries(Source::kRunning)) {
    const auto vocabulary = released.In(space);
    vocabulary->OpenPeriod(noise);
    const std::string state = vocabulary->SaveState();
    const auto load = [](Vocabulary& into, std::string_view bytes) {
      const Status status = into.LoadState(bytes);
      EXPECT_FALSE(status);
      if (!status) {
        EXPECT_EQ(status.error().code, ErrorCode::kCorruption);
      }
      EXPECT_TRUE(into.rows().empty());
      EXPECT_EQ(into.state_version(), 0u);
    };
    for (size_t size = 1; size < state.size(); ++size)
      load(*released.In(space), std::string_view(state).substr(0, size));
    load(*released.In(space), state + "x");
    load(*released.In(larger), state);
    Released other = released;
    other.top_rows = !released.top_rows;
    load(*other.In(space), state);
    other = released;
    other.options.source = Source::kFirstPeriod;
    load(*other.In(space), state);
    // The last four bytes are a row beyond the space, or a count that is no number.
    load(*released.In(space), state.substr(0, state.size() - 4) + "\xff\xff\xff\xff");
  }
}

// Through the interface of a mechanism.
TEST(Vocabulary, AMechanismHandsItThePeriodsAndKeepsItsState) {
  const RowSpace space = SpaceOf(8);
  auto noise = noise::FixedNoise(9);
  const auto make = [&](bool plus) {
    auto vocabulary = MakeVocabulary(space, Gaussian(Source::kFirstPeriod));
    auto selector = plus ? MakeThresholdRows(space, {.sigma = 1, .clip = 1, .threshold = 0},
                                             std::move(vocabulary))
                         : MakeVocabularyRows(std::move(vocabulary));
    return MakePrivateStep(space, std::move(selector), MakeFlatClipper(1, 1),
                           {.sigma_gradient = 1, .expected_batch = 4});
  };
  for (bool plus : {false, true}) {
    const auto mechanism = make(plus);
    EXPECT_TRUE(mechanism->observes_periods());
    EXPECT_EQ(mechanism->opening_charge()->mechanism, privacy::MechanismKind::kVocabulary);
    // All three rows are written, or each passes with a chance of one half.
    EXPECT_NEAR(mechanism->ExpectedExtraRows(), plus ? 1.5 : 3, 1e-6);
    mechanism->Observe(ActivationsOf(SomePeriod()));
    mechanism->OpenPeriod(noise);
    EXPECT_FALSE(mechanism->opening_charge());
    const std::string state = mechanism->SaveState();
    EXPECT_EQ(mechanism->state_version(), 1u);
    const auto restored = make(plus);
    ASSERT_TRUE(restored->LoadState(state));
    EXPECT_EQ(restored->SaveState(), state);
    EXPECT_FALSE(restored->opening_charge());
    EXPECT_FALSE(make(!plus)->LoadState(state));
    // From here on it writes rows inside only.
    if (!plus) {
      EXPECT_EQ(RunStep(*restored, space, {}, noise).rows.size(), 3u);
    }
  }
}

}  // namespace
}  // namespace tacit::mechanism
