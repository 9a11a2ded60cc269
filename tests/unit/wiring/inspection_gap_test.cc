// The inspections that a restore charges: each at its own price, or none at a price that is too
// low.
#include "wiring/restore/inspection_gap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "wiring/restore/inspection.h"

namespace tacit::wiring {
namespace {

using privacy::Unit;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kDelta = 1e-6;

// The entries of an account that was charged for these inspections.
std::vector<privacy::LedgerEntry> Entries(std::span<const double> noise_multipliers) {
  privacy::Ledger ledger;
  const auto layout = InspectionLayout(Unit::kEvent, kDelta, noise_multipliers);
  EXPECT_TRUE(ledger.Declare(layout->promise));
  uint64_t commit = 0;
  for (const double noise_multiplier : noise_multipliers) {
    const privacy::CommitCharge charge{.learner = layout->name,
                                       .charge = InspectionCharge(noise_multiplier),
                                       .steps = 1,
                                       .topic = {},
                                       .ranges = {}};
    ledger.Append(CommitSeq(++commit), 0, {&charge, 1}, {}, "");
  }
  return ledger.entries();
}

// The witness after these inspections, by a program that keeps no position, or by one that does.
store::WitnessedLearner WitnessOf(std::span<const double> noise_multipliers, bool with_position) {
  store::WitnessedLearner last;
  last.name = InspectionAccount(Unit::kEvent);
  last.steps = noise_multipliers.size();
  last.charged = {
      .charge = InspectionCharge(noise_multipliers.back()), .bounds = {}, .delta = kDelta};
  last.position = with_position ? EncodeInspections(noise_multipliers) : "";
  return last;
}

std::vector<double> PricesOf(const InspectionGap& gap) {
  std::vector<double> prices;
  for (const privacy::CommitCharge& charge : gap.gap.charges) {
    EXPECT_EQ(charge.steps, 1u);
    prices.push_back(charge.charge.noise_multiplier);
  }
  return prices;
}

TEST(InspectionGapTest, ThePositionHasEachPrice) {
  const std::vector<double> all = {3, 7, 7, 2}, of_copy = {3};
  LearnerTrail trail;
  trail.copy.steps = 1;
  trail.last = WitnessOf(all, /*with_position=*/true);
  const auto found = FindInspectionGap(Unit::kEvent, trail, Entries(of_copy));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(PricesOf(*found), ElementsAre(7, 7, 2));
  EXPECT_EQ(DecodeInspections(found->gap.position), all);
  EXPECT_DOUBLE_EQ(found->layout.promise.epsilon, Entries(all).back().epsilon);
}

TEST(InspectionGapTest, WithoutItTheWitnessKnowsTheLastPriceAlone) {
  LearnerTrail trail;
  trail.last = WitnessOf(std::vector<double>{3}, /*with_position=*/false);
  const auto one = FindInspectionGap(Unit::kEvent, trail, {});
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_THAT(PricesOf(*one), ElementsAre(3));

  const std::vector<double> all = {3, 7};
  trail.last = WitnessOf(all, /*with_position=*/false);
  const auto two = FindInspectionGap(Unit::kEvent, trail, {});
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code, ErrorCode::kRefused);
  EXPECT_THAT(two.error().message, HasSubstr("--remains"));

  const auto entries = Entries(std::span(all).first(1));
  trail.later.emplace();
  trail.entries = entries;
  const auto by_ledger = FindInspectionGap(Unit::kEvent, trail, {});
  ASSERT_TRUE(by_ledger) << by_ledger.error().message;
  EXPECT_THAT(PricesOf(*by_ledger), ElementsAre(3, 7));
}

TEST(InspectionGapTest, AnotherStoresInspectionsAreRefused) {
  LearnerTrail trail;
  trail.copy.steps = 1;
  trail.last = WitnessOf(std::vector<double>{3, 7}, /*with_position=*/true);
  const auto found = FindInspectionGap(Unit::kEvent, trail, Entries(std::vector<double>{4}));
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("two stores that went different ways"));
}

TEST(InspectionGapTest, NoiseThatPromisesNothingIsRefused) {
  for (const double noise_multiplier : {std::nan(""), -1.0, 0.0}) {
    LearnerTrail trail;
    trail.last = WitnessOf(std::vector<double>{3, 7}, /*with_position=*/true);
    trail.last.position = EncodeInspections(std::vector<double>{3, noise_multiplier});
    const auto found = FindInspectionGap(Unit::kEvent, trail, {});
    ASSERT_FALSE(found) << noise_multiplier;
    EXPECT_EQ(found.error().code, ErrorCode::kCorruption);
  }
}

TEST(InspectionGapTest, OtherPositionsAreNoInspections) {
  const std::string position = EncodeInspections(std::vector<double>{3, 7});
  for (size_t bytes = 0; bytes < position.size(); ++bytes)
    EXPECT_FALSE(DecodeInspections(position.substr(0, bytes))) << bytes;
  EXPECT_FALSE(DecodeInspections(position + "x"));
  EXPECT_FALSE(DecodeInspections("\2" + position.substr(1)));
  EXPECT_EQ(UnitOfInspections("tacit.inspect.user"), Unit::kUser);
  EXPECT_EQ(UnitOfInspections("ctr"), std::nullopt);
}

}  // namespace
}  // namespace tacit::wiring
