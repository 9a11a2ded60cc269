// The bill of steps and openings, against accounts kept offset by offset.
#include "privacy/bill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "privacy/infinity.h"
#include "privacy/pld.h"

namespace tacit::privacy {
namespace {

constexpr char kTopic[] = "log";

// mu^2 of a quarter and of an eighth, so that sums are exact.
const Charge kStep{.mechanism = MechanismKind::kDpSgd, .noise_multiplier = 2};
const Charge kOpening{.mechanism = MechanismKind::kVocabulary, .noise_multiplier = std::sqrt(8)};

double WorstOf(const Coverage& coverage) {
  double worst = 0;
  for (const Spending& spending : coverage.Worst()) worst = std::max(worst, spending.mu_squared);
  return worst;
}

// Every offset by itself, each step and opening as it comes.
struct ByOffset {
  std::map<uint64_t, double> spent;
  void Add(const OffsetRange& range, double mu_squared) {
    for (uint64_t o = range.begin; o < range.end; ++o) spent[o] += mu_squared;
  }
  double Worst() const {
    double worst = 0;
    for (const auto& [offset, mu_squared] : spent) worst = std::max(worst, mu_squared);
    return worst;
  }
};

// A bill that is booked whenever a period has ended, as trainers and experiments do.
struct Booked {
  Bill bill{"ctr", kTopic};
  Coverage coverage;
  void Add(const BilledStep& step, const std::optional<Charge>& opening) {
    if (bill.EndsBefore(step)) Book();
    bill.Add(step, kStep, opening);
  }
  void Book() {
    bill.AddTo(&coverage);
    bill.Take();
  }
};

TEST(Bill, StepsOnFreshOffsetsAreOneLineWhereverTheyAreCut) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    Booked booked;
    ByOffset naive;
    uint64_t at = 0;
    for (int i = 0; i < 30; ++i) {
      if (random() % 8 == 0) at = 0;  // the next pass
      const OffsetRange range{0, at, at + random() % 9};
      at = range.end;
      booked.Add({.ranges = {&range, 1}}, std::nullopt);
      naive.Add(range, 0.25);
      if (random() % 5 == 0) booked.Book();
    }
    booked.Book();
    EXPECT_EQ(WorstOf(booked.coverage), naive.Worst()) << "seed " << seed;
  }
}

// Steps over all partitions: a commit's line of the ledger has a range a partition and pass, and
// each offset as often as steps had it.
TEST(Bill, StepsOverAllPartitionsAreOneRangeAPartition) {
  constexpr int32_t kPartitions = 4;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::map<int32_t, uint64_t> at;
    std::map<std::pair<int32_t, uint64_t>, uint64_t> steps_of;  // by partition and offset
    Bill bill("ctr", kTopic);
    size_t ranges_most = kPartitions;
    for (int i = 0; i < 30; ++i) {
      std::vector<OffsetRange> ranges;
      for (int32_t p = 0; p < kPartitions; ++p) {
        if (random() % 40 == 0) {  // the next pass
          at[p] = 0;
          ++ranges_most;
        }
        ranges.push_back({p, at[p], at[p] + random() % 9});
        at[p] = ranges.back().end;
        for (uint64_t o = ranges.back().begin; o < at[p]; ++o) ++steps_of[{p, o}];
      }
      bill.Add({.ranges = ranges}, kStep, std::nullopt);
    }
    ASSERT_EQ(bill.charges().size(), 1u);
    const CommitCharge& line = bill.charges()[0];
    EXPECT_EQ(line.steps, 30u);
    EXPECT_LE(line.ranges.size(), ranges_most);
    uint64_t most = 0;
    for (const auto& [place, steps] : steps_of) most = std::max(most, steps);
    Coverage coverage;
    bill.AddTo(&coverage);
    EXPECT_EQ(WorstOf(coverage), 0.25 * static_cast<double>(most));
    for (const OffsetRange& range : line.ranges)
      for (uint64_t o = range.begin; o < range.end; ++o) --steps_of[{range.partition, o}];
    for (const auto& [place, left] : steps_of)
      EXPECT_EQ(left, 0u) << "partition " << place.first << " offset " << place.second;
  }
}

TEST(Bill, APeriodIsOpenedOnceAndItsStepsShareItsOffsets) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    Booked booked;
    ByOffset naive;
    for (uint64_t period = 0; period < 6; ++period) {
      // Offsets of periods may overlap: another pass. A restart leaves a period without its first
      // step, and steps of it were charged before.
      const OffsetRange range{0, 10 * (random() % 3), 10 * (random() % 3) + 25};
      const bool opened_before = random() % 3 == 0, costs = random() % 3 > 0;
      const uint64_t steps = 1 + random() % 4;
      for (uint64_t step = 0; step < steps; ++step) {
        const bool opens = step == 0 && !opened_before;
        booked.Add({.whole_period = true, .opens_period = opens, .ranges = {&range, 1}},
                   costs ? std::optional(kOpening) : std::nullopt);
        if (opens && costs) naive.Add(range, 0.125);
        naive.Add(range, 0.25);
        if (random() % 4 == 0) booked.Book();  // a commit between steps
      }
    }
    booked.Book();
    EXPECT_NEAR(WorstOf(booked.coverage), naive.Worst(), 1e-12) << "seed " << seed;
  }
}

TEST(Bill, ALaterPeriodNeedsABillOfItsOwn) {
  const OffsetRange first{0, 0, 5}, second{0, 5, 10};
  const auto of = [](const OffsetRange& range, bool opens) {
    return BilledStep{.whole_period = true, .opens_period = opens, .ranges = {&range, 1}};
  };
  Bill bill("ctr", kTopic);
  EXPECT_FALSE(bill.EndsBefore(of(first, true)));
  bill.Add(of(first, true), kStep, kOpening);
  EXPECT_FALSE(bill.EndsBefore(of(first, false)));
  EXPECT_TRUE(bill.EndsBefore(of(second, false))) << "whose opening was committed before";
  EXPECT_TRUE(bill.EndsBefore(of(first, true))) << "the same offsets in the next pass";
  EXPECT_FALSE(bill.EndsBefore({.ranges = {&second, 1}}));
  ASSERT_EQ(bill.charges().size(), 2u);
  EXPECT_EQ(bill.charges()[0].charge, kOpening);
  EXPECT_EQ(bill.charges()[0].steps, 1u);
  bill.Add(of(first, false), kStep, kOpening);
  EXPECT_EQ(bill.charges()[0].steps, 1u) << "a period is opened once";
  EXPECT_EQ(bill.charges()[1].steps, 2u);
  EXPECT_EQ(bill.charges()[1].steps_per_offset, 2u);
  EXPECT_EQ(bill.Take().size(), 2u);
  EXPECT_TRUE(bill.empty());
  bill.Add(of(second, false), kStep, kOpening);
  EXPECT_EQ(bill.charges().size(), 1u) << "without its first step, nothing is opened";
  EXPECT_EQ(bill.charges()[0].learner, "ctr");
  EXPECT_EQ(bill.charges()[0].topic, kTopic);
}

TEST(Bill, AStepOfAnotherPriceIsALineOfItsOwn) {
  Bill bill;
  const Charge dearer{.mechanism = MechanismKind::kDpSgd, .noise_multiplier = 1};
  bill.Add({}, kStep, std::nullopt);
  bill.Add({}, dearer, std::nullopt);
  bill.Add({}, dearer, std::nullopt);
  ASSERT_EQ(bill.charges().size(), 2u);
  EXPECT_EQ(bill.Whole().mu_squared, 0.25 + 2);
}

// The events are what the accountant is asked about: of steps that sample, and of an opening that
// does not.
TEST(Bill, EventsAreThoseOfTheSteps) {
  Charge sampled = kStep;
  sampled.sampling_rate = 0.1;
  Bill bill;
  for (int step = 0; step < 20; ++step)
    bill.Add({.whole_period = true, .opens_period = step == 0}, sampled, kOpening);
  const auto epsilon = [](const std::vector<CountedEvent>& events) {
    return *PldUpperEpsilon(events, Adjacency::kAddRemove, Delta(1e-6));
  };
  const double by_hand =
      epsilon({{Event::Gaussian(std::sqrt(8)), 1}, {Event::PoissonGaussian(2, 0.1), 20}});
  EXPECT_EQ(epsilon(bill.Events()), by_hand);
  // The ledger's meter composes the same.
  EXPECT_NEAR(EpsilonMeter().Bounds(bill.Whole(), Delta(1e-6)).upper, by_hand, 0.01 * by_hand);
  // Planted: a step more.
  bill.Add({.whole_period = true}, sampled, kOpening);
  EXPECT_GT(epsilon(bill.Events()), 1.001 * by_hand);
}

TEST(DividePeriod, OpeningAndStepsAreTogetherWhatThePeriodMaySpend) {
  for (const double mu : {0.01, 0.7, 5.0})
    for (const double share : {0.0, 0.05, 0.7225, 0.9})
      for (const uint64_t steps : {1u, 20u}) {
        const PeriodNoise noise = DividePeriod(mu, share, steps);
        EXPECT_EQ(noise.opening > 0, share > 0);
        Bill bill;
        std::optional<Charge> opening;
        if (share > 0) opening = Charge{.noise_multiplier = noise.opening};
        for (uint64_t step = 0; step < steps; ++step)
          bill.Add({.whole_period = true, .opens_period = step == 0},
                   {.noise_multiplier = noise.step}, opening);
        EXPECT_NEAR(bill.Whole().mu_squared / (mu * mu), 1, 1e-9);
        EXPECT_LE(bill.Whole().mu_squared, mu * mu);
        if (share > 0) {
          EXPECT_NEAR(std::pow(noise.opening * mu, -2), share, 1e-9);
        }
      }
  EXPECT_EQ(DividePeriod(kInfinity, 0.5, 3).opening, 0);
  EXPECT_EQ(DividePeriod(kInfinity, 0.5, 3).step, 0);
}

}  // namespace
}  // namespace tacit::privacy
