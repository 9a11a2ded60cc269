// Inspections in the ledger: for any records that were looked at, the counts add to everybody's
// cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/privacy/ledger_fixture.h"

namespace tacit::privacy {
namespace {

CommitCharge InspectionOf(const std::string& account, double noise_multiplier) {
  return {account,
          {.mechanism = MechanismKind::kInspection,
           .noise_multiplier = noise_multiplier,
           .sigma_selection = noise_multiplier,
           .clip_selection = 1},
          1,
          1,
          "",
          {}};
}

Ledger InspectedLedger(Unit unit = Unit::kEvent) {
  Ledger ledger;
  Promise promise = PromiseOf("tacit.inspect");
  promise.unit = unit;
  EXPECT_TRUE(ledger.Declare(promise));
  EXPECT_TRUE(ledger.Declare(PromiseOf("clicks")));
  return ledger;
}

TEST(InspectionLedger, InspectionsAddUpThoughTheyNameNoOffsets) {
  for (const Unit unit : {Unit::kEvent, Unit::kUser}) {
    Ledger ledger = InspectedLedger(unit);
    const CommitCharge one = InspectionOf("tacit.inspect", 4);
    EXPECT_EQ(EpsilonAfterOne(ledger, one), EpsilonOf(1. / 16));
    AppendOne(ledger, 1, one);
    EXPECT_EQ(EpsilonAfterOne(ledger, one), EpsilonOf(2. / 16));
    AppendOne(ledger, 2, one);
    EXPECT_EQ(ledger.Learners()[1].epsilon, EpsilonOf(2. / 16));
    EXPECT_EQ(ledger.Learners()[1].steps, 2u);
    EXPECT_TRUE(VerifyChain(ledger.entries()));
  }
}

TEST(InspectionLedger, TheyAddToWhatEachRecordCostsALearner) {
  for (const Unit unit : {Unit::kEvent, Unit::kUser}) {
    Ledger ledger = InspectedLedger(unit);
    AppendOne(ledger, 1, InspectionOf("tacit.inspect", 4));
    EXPECT_EQ(ledger.Total().epsilon, EpsilonOf(1. / 16)) << "before anything was learnt";
    const CommitCharge step = StepOf("clicks", 0, 100);
    EXPECT_DOUBLE_EQ(ledger.TotalAfter({&step, 1}), EpsilonOf(1. / 16 + 1. / 4));
    AppendOne(ledger, 2, step);
    AppendOne(ledger, 3, StepOf("clicks", 100, 200));
    EXPECT_DOUBLE_EQ(ledger.Total().epsilon, EpsilonOf(1. / 16 + 1. / 4))
        << "steps on other records";
    const CommitCharge again = InspectionOf("tacit.inspect", 4);
    EXPECT_DOUBLE_EQ(ledger.TotalAfter({&again, 1}), EpsilonOf(2. / 16 + 1. / 4));
    EXPECT_EQ(ledger.Learners()[0].epsilon, EpsilonOf(1. / 4)) << "of the learner alone";
  }
}

// A breaker's window of the same noise, which names its offsets, is beside them: only what counts
// against all is added where offsets differ.
TEST(InspectionLedger, WhatNamesOtherOffsetsIsNotAdded) {
  Ledger ledger = InspectedLedger();
  CommitCharge window = InspectionOf("tacit.inspect", 4);
  window.charge.mechanism = MechanismKind::kBreaker;
  window.topic = "another";
  window.ranges = {{0, 0, 10}};
  AppendOne(ledger, 1, window);
  AppendOne(ledger, 2, StepOf("clicks", 0, 100));
  EXPECT_DOUBLE_EQ(ledger.Total().epsilon, EpsilonOf(1. / 4));
}

TEST(InspectionLedger, ARestoredLedgerSaysTheSame) {
  Ledger ledger = InspectedLedger();
  AppendOne(ledger, 1, InspectionOf("tacit.inspect", 4));
  AppendOne(ledger, 2, StepOf("clicks", 0, 100));
  auto restored = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->Total().epsilon, ledger.Total().epsilon);
  EXPECT_DOUBLE_EQ(*restored->Total().advantage, *ledger.Total().advantage);
  const CommitCharge again = InspectionOf("tacit.inspect", 3);
  EXPECT_EQ(restored->TotalAfter({&again, 1}), ledger.TotalAfter({&again, 1}));
  AppendOne(*restored, 3, again);
  AppendOne(ledger, 3, again);
  EXPECT_EQ(restored->head(), ledger.head());
  EXPECT_TRUE(VerifyChain(restored->entries()));
}

}  // namespace
}  // namespace tacit::privacy
