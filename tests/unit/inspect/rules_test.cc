// Tests of the rules by which a configuration is proposed: their values at places that are known
// from elsewhere, and that they have no jumps.
#include "inspect/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "config/config.h"
#include "wiring/plans/opening_records.h"

namespace tacit::inspect {
namespace {

TEST(RulesTest, TablesAreThoseOfTheShippedConfigurations) {
  // Criteo's vocabularies as the publishers count them, and the tables of config/criteo.yaml.
  const auto config = config::Load(std::string(TACIT_SOURCE_DIR) + "/config/criteo.yaml", {},
                                   config::LogFiles::kUnread);
  ASSERT_TRUE(config) << config.error().message;
  const std::pair<const char*, double> kValues[] = {{"C1", 1473}, {"C3", 82742}, {"C6", 46},
                                                    {"C9", 16},   {"C25", 208},  {"C26", 12935}};
  for (const auto& [name, values] : kValues) {
    const auto feature = std::ranges::find(config->features, name, &config::Feature::name);
    ASSERT_NE(feature, config->features.end()) << name;
    EXPECT_EQ(TableRows(values), feature->buckets) << name;
  }
  EXPECT_EQ(TableRows(1e30), uint64_t{1} << 36) << "the most that a configuration takes";
}

TEST(RulesTest, ValuesGrowAsHeapsHasIt) {
  EXPECT_DOUBLE_EQ(ValuesExpected(100, 0.5, 1000, 4000), 200);
  EXPECT_DOUBLE_EQ(ValuesExpected(100, 0, 1000, 4000), 100);
  EXPECT_DOUBLE_EQ(ValuesExpected(100, 1, 1000, 4000), 400);
  EXPECT_DOUBLE_EQ(ValuesExpected(100, 0.5, 1000, 1000), 100) << "the sample is all there is";
}

TEST(RulesTest, PeriodsFollowEpsilonWhereALogIsLongAndTheLogWhereItIsShort) {
  EXPECT_EQ(PeriodRecords(8, 1e9), config::DefaultPeriod(8));
  EXPECT_EQ(PeriodRecords(1, 1e9), 150'000u);
  EXPECT_EQ(PeriodRecords({}, 1e9), 150'000u);
  EXPECT_EQ(PeriodRecords(8, 80'000), 20'000u) << "as config/criteo.yaml has it";
  EXPECT_EQ(PeriodRecords(8, 100), 10'000u);
}

TEST(RulesTest, WhatIsCountedIsCountedAtOnceUpToAMillionRecords) {
  EXPECT_EQ(CountsPeriodRecords(99'057), 99'100u);
  EXPECT_EQ(CountsPeriodRecords(1e9), 1'000'000u);
  EXPECT_EQ(CountsPeriodRecords(10), 10'000u);
}

// Against offsets that are taken one by one.
TEST(RulesTest, StepsBeginWhereADaemonBeginsThem) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> files(1 + random() % 8);
    for (double& offsets : files) offsets = static_cast<double>(1 + random() % 40);
    const uint64_t batch = 1 + random() % 60, step_files = 1 + random() % 4;
    std::vector<uint64_t> naive = {0};
    uint64_t offset = 0, taken = 0, ended = 0;
    const auto begin = [&] {
      naive.push_back(offset);
      taken = ended = 0;
    };
    for (const double offsets : files) {
      for (int i = 0; i < static_cast<int>(offsets); ++i, ++offset, ++taken)
        if (taken == batch) begin();
      if (++ended == step_files) begin();
    }
    EXPECT_EQ(StepStarts(files, batch, step_files), naive) << "round " << round;
  }
}

TEST(RulesTest, ALogLeavesNoShortRest) {
  EXPECT_EQ(WithoutShortRest(10'000, 20'001), 10'100u) << "a header is an offset";
  EXPECT_EQ(WithoutShortRest(20'000, 20'001), 20'100u);
  EXPECT_EQ(WithoutShortRest(20'000, 20'000), 20'000u);
  EXPECT_EQ(WithoutShortRest(10'000, 17'000), 10'000u) << "7,000 are no short rest";
  EXPECT_EQ(WithoutShortRest(10'000, 300), 10'000u);
  for (uint64_t offsets = 10'000; offsets < 200'000; offsets += 37) {
    const uint64_t period = WithoutShortRest(10'000, offsets);
    EXPECT_GE(period, 10'000u);
    EXPECT_LT(period, 15'100u);
    EXPECT_TRUE(offsets % period == 0 || 3 * (offsets % period) >= period) << offsets;
  }
}

// Neighbouring logs and epsilons have neighbouring periods.
TEST(RulesTest, PeriodsHaveNoJumps) {
  for (double records = 1000; records < 1e7; records *= 1.01)
    for (const double epsilon : {0.5, 1.0, 3.0, 8.0}) {
      const auto here = static_cast<double>(PeriodRecords(epsilon, records));
      const auto there = static_cast<double>(PeriodRecords(epsilon, records * 1.01));
      EXPECT_LE(there, here * 1.01 + 200) << records << " " << epsilon;
      EXPECT_GE(there, here - 200) << records << " " << epsilon;
    }
}

// The length is where the loss of a blind opening and that of a rate found badly are least
// together: found here by trying all lengths.
TEST(RulesTest, AnOpeningIsAsLongAsItsLossesAreLeast) {
  const auto loss = [](double length, double period, double clicks, double events) {
    const double r = 0.25, variance = r * (1 - r);
    const double noise =
        (clicks * clicks + r * r * events * events) / std::pow(length * variance, 2);
    const double blind = std::log(2) + r * std::log(r) + (1 - r) * std::log(1 - r);
    return length * blind + period * variance / 2 * (1 / (length * variance) + noise);
  };
  for (const double period : {10'000.0, 53'000.0, 150'000.0})
    for (const double clicks : {0.0, 10.0, 70.0})
      for (const double events : {0.0, 50.0, 400.0}) {
        const auto length = static_cast<double>(
            wiring::OpeningRecords(static_cast<uint64_t>(period), clicks, events));
        const double here = loss(length, period, clicks, events);
        EXPECT_LT(here, 1.001 * loss(length * 1.1, period, clicks, events));
        EXPECT_LT(here, 1.001 * loss(length / 1.1, period, clicks, events));
        EXPECT_LE(length, period);
      }
  EXPECT_EQ(wiring::OpeningRecords(1, 1e9, 1e9), 1u);
  EXPECT_EQ(wiring::OpeningRecords(20'000, 1e9, 1e9), 20'000u) << "noise hides the rate in any";
}

TEST(RulesTest, OpeningsHaveNoJumps) {
  for (double noise = 0.1; noise < 1e6; noise *= 1.01)
    EXPECT_NEAR(static_cast<double>(wiring::OpeningRecords(20'000, noise * 1.01, 5 * noise * 1.01)),
                static_cast<double>(wiring::OpeningRecords(20'000, noise, 5 * noise)) * 1.005,
                0.02 * static_cast<double>(wiring::OpeningRecords(20'000, noise, 5 * noise)) + 2);
}

// The AUC is the share of pairs in order, ties by half: counted here pair by pair.
TEST(RulesTest, AnAucIsTheShareOfPairsInOrder) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<HalvesCount> values(2 + random() % 6);
    for (HalvesCount& value : values) {
      value.positives = static_cast<double>(random() % 4);
      value.events = value.positives + static_cast<double>(random() % 4);
      value.later_positives = static_cast<double>(1 + random() % 5);
      value.later_events = value.later_positives + static_cast<double>(1 + random() % 5);
    }
    const auto said = [](const HalvesCount& v) { return (v.positives + 2) / (v.events + 10); };
    double in_order = 0, pairs = 0;
    for (const HalvesCount& one : values)
      for (const HalvesCount& zero : values) {
        const double count = one.later_positives * (zero.later_events - zero.later_positives);
        pairs += count;
        in_order += count * (said(one) > said(zero) ? 1 : said(one) == said(zero) ? 0.5 : 0);
      }
    EXPECT_NEAR(ForetellingAuc(values, 0.2), in_order / pairs, 1e-12);
  }
}

TEST(RulesTest, ARatingIsDividedInTheMiddle) {
  // MovieLens latest small: 48.2 % of the ratings are 4 and more.
  const std::pair<double, uint64_t> kMovies[] = {{0.5, 1370}, {1, 2811},  {1.5, 1791},  {2, 7551},
                                                 {2.5, 5550}, {3, 20047}, {3.5, 13136}, {4, 26818},
                                                 {4.5, 8551}, {5, 13211}};
  EXPECT_EQ(RatingThreshold(kMovies), 4);
  const std::pair<double, uint64_t> kTwo[] = {{1, 10}, {2, 1}};
  EXPECT_EQ(RatingThreshold(kTwo), 2);
}

TEST(RulesTest, WhatAnAllowanceLeavesOutIsWhatComesLater) {
  // Two users of three periods and one of one; the later periods have fewer records.
  const UserVisits visits{.periods = {3, 1, 3}, .records = {50, 30, 20}};
  EXPECT_DOUBLE_EQ(LeftOutShare(visits, 1), 0.5);
  EXPECT_DOUBLE_EQ(LeftOutShare(visits, 2), 0.2);
  EXPECT_DOUBLE_EQ(LeftOutShare(visits, 3), 0);
  EXPECT_DOUBLE_EQ(LeftOutShare({.periods = {3, 1, 3}}, 1), 4.0 / 7) << "by periods";
  EXPECT_DOUBLE_EQ(LeftOutShare({}, 1), 0);
}

TEST(RulesTest, TheAllowanceIsWhatKeepsMostOverTheRootOfItsNoise) {
  EXPECT_EQ(UserAllowance({}), 1u);
  const uint32_t kOnce[] = {1, 1, 1, 1, 2};
  EXPECT_EQ(UserAllowance(kOnce), 1u) << "users who come once";
  const uint32_t kAlways[] = {14, 14, 14};
  EXPECT_EQ(UserAllowance(kAlways), 14u) << "users who come in every period, as in recommend.yaml";
  // A naive search agrees.
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<uint32_t> periods(1 + random() % 40);
    for (uint32_t& number : periods) number = 1 + static_cast<uint32_t>(random() % 30);
    double best = 0;
    uint32_t expected = 1;
    for (uint32_t k = 1; k <= 30; ++k) {
      double kept = 0;
      for (const uint32_t number : periods) kept += std::min(number, k);
      if (kept / std::sqrt(k) <= best * (1 + 1e-12)) continue;
      best = kept / std::sqrt(k);
      expected = k;
    }
    EXPECT_EQ(UserAllowance(periods), expected) << round;
  }
}

TEST(RulesTest, WhatForetellsTheLabelHasTheSmallerLoss) {
  // Two values of opposite labels, apart and taken as one.
  const HalvesCount kApart[] = {{100, 100, 100, 100}, {100, 0, 100, 0}};
  const HalvesCount kTogether[] = {{200, 100, 200, 100}};
  EXPECT_NEAR(ForetellingLoss(kTogether, 0.5), std::log(2), 1e-12);
  EXPECT_LT(ForetellingLoss(kApart, 0.5), 0.1);
  // Values of which the first half knows nothing are as good as the mean.
  const HalvesCount kNew[] = {{0, 0, 1, 1}, {0, 0, 1, 0}};
  EXPECT_NEAR(ForetellingLoss(kNew, 0.5), std::log(2), 1e-12);
}

TEST(RulesTest, TheNetworkIsTheDemosForItsColumns) {
  const auto config = config::Load(std::string(TACIT_SOURCE_DIR) + "/config/demo.yaml", {},
                                   config::LogFiles::kUnread);
  ASSERT_TRUE(config) << config.error().message;
  const config::Learner& demo = config->learners[2];
  const NetworkRule rule = NetworkFor(26);
  EXPECT_NEAR(rule.threshold, demo.mechanism.threshold, 0.05);
  EXPECT_EQ(rule.gradient_clip, demo.mechanism.gradient_clip);
  EXPECT_EQ(rule.hidden, demo.model.hidden);
  EXPECT_EQ(rule.learning_rate, demo.optimizer.learning_rate);
  EXPECT_EQ(rule.row_learning_rate, demo.optimizer.row_learning_rate);
  EXPECT_GT(NetworkFor(4).threshold, rule.threshold) << "an event adds more to each of fewer rows";
}

}  // namespace
}  // namespace tacit::inspect
