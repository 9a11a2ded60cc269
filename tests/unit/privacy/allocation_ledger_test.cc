// Steps that come in blocks, in one of which a unit is: how they are billed, booked, kept and
// verified.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ledger_fixture.h"
#include "privacy/bill.h"
#include "privacy/forecast.h"
#include "privacy/pld.h"

namespace tacit::privacy {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSteps = 4, kBlocks = 2, kOfPeriod = kSteps * kBlocks;
constexpr double kSigma = 2;

Charge StepCharge(double sigma = kSigma) {
  const Draw draw = Draw::Allocate(kSteps);
  return {.mechanism = MechanismKind::kDpSgd,
          .noise_multiplier = sigma,
          .sigma_gradient = sigma,
          .clip_gradient = 1,
          .sampling_rate = draw.rate,
          .block_steps = draw.block_steps};
}

Promise PromiseOfBlocks(const std::string& learner, Unit unit = Unit::kEvent) {
  Promise promise = PromiseOf(learner);
  promise.participation = ParticipationMode::kAllocate;
  promise.unit = unit;
  promise.bounds.period_steps = kOfPeriod;
  if (unit == Unit::kUser) promise.bounds.allowance = 2 * kOfPeriod;
  return promise;
}

Ledger DeclaredLedger(Unit unit = Unit::kEvent) {
  Ledger ledger;
  EXPECT_TRUE(ledger.Declare(PromiseOfBlocks("a", unit)));
  return ledger;
}

// Steps [from, to) of a period on these offsets, as a trainer bills them.
Bill BillOf(const OffsetRange& range, uint64_t from, uint64_t to,
            const Charge& charge = StepCharge(),
            const std::optional<Charge>& opening = std::nullopt) {
  Bill bill("a", "log");
  for (uint64_t step = from; step < to; ++step)
    bill.Add({.whole_period = true,
              .opens_period = step == 0,
              .period_steps = kOfPeriod,
              .ranges = {&range, 1}},
             charge, opening);
  return bill;
}

void Append(Ledger& ledger, uint64_t commit, const Bill& bill) {
  ledger.Append(CommitSeq(commit), static_cast<int64_t>(commit) * 1000, bill.charges(), kSalt,
                "test");
}

double EpsilonOfBlocks(uint64_t blocks, double sigma = kSigma) {
  return *PldUpperEpsilon(Event::Allocation(sigma, kSteps), blocks, Adjacency::kAddRemove,
                          Delta(1e-6));
}

TEST(AllocationBill, TheFirstStepPaysForAllBlocksOfItsPeriod) {
  const OffsetRange range{0, 100, 200};
  const Bill first = BillOf(range, 0, 1);
  ASSERT_EQ(first.charges().size(), 1u);
  EXPECT_EQ(first.charges()[0].steps, kOfPeriod);
  EXPECT_EQ(first.charges()[0].steps_per_offset, kOfPeriod);
  EXPECT_EQ(first.charges()[0].paid_steps, 0u);
  EXPECT_EQ(first.Whole().sampled,
            (std::vector<Spending::Sampled>{{kSigma, 0.25, kBlocks, kSteps}}));
  EXPECT_EQ(first.Events()[0].event, Event::Allocation(kSigma, kSteps));
  EXPECT_EQ(first.Events()[0].count, kBlocks);

  const Bill all = BillOf(range, 0, kOfPeriod), rest = BillOf(range, 3, kOfPeriod);
  EXPECT_EQ(all.Whole(), first.Whole());
  ASSERT_EQ(rest.charges().size(), 1u);
  EXPECT_EQ(rest.charges()[0].steps, 0u);
  EXPECT_EQ(rest.charges()[0].paid_steps, kOfPeriod - 3);
  EXPECT_TRUE(rest.Whole().empty());
  EXPECT_FALSE(rest.empty()) << "there is something to commit";
}

TEST(AllocationBill, AnOpeningIsBilledBesideTheBlocks) {
  const Charge opening{.mechanism = MechanismKind::kVocabulary, .noise_multiplier = 4};
  const Bill bill = BillOf({0, 0, 10}, 0, kOfPeriod, StepCharge(), opening);
  ASSERT_EQ(bill.charges().size(), 2u);
  EXPECT_EQ(bill.charges()[0].steps, 1u);
  EXPECT_EQ(bill.charges()[1].steps, kOfPeriod);
  EXPECT_EQ(bill.Whole().mu_squared, 1.0 / 16);
}

TEST(AllocationBill, APeriodWithoutWholeBlocksEndsTheProgram) {
  const OffsetRange range{0, 0, 10};
  Bill bill("a", "log");
  EXPECT_DEATH(bill.Add({.whole_period = true,
                         .opens_period = true,
                         .period_steps = kOfPeriod + 1,
                         .ranges = {&range, 1}},
                        StepCharge(), std::nullopt),
               "blocks are those of a period");
  EXPECT_DEATH(bill.Add({.ranges = {&range, 1}}, StepCharge(), std::nullopt),
               "blocks are those of a period");
}

TEST(AllocationLedger, ChargesTheAllocationWhenThePeriodBegins) {
  Ledger ledger = DeclaredLedger();
  const OffsetRange range{0, 0, 100};
  const Bill first = BillOf(range, 0, 1);
  const double want = EpsilonOfBlocks(kBlocks);
  EXPECT_NEAR(ledger.EpsilonAfter(first.charges()), want, 2e-3 * want);
  Append(ledger, 1, first);
  EXPECT_NEAR(ledger.Total().epsilon, want, 2e-3 * want);
  const double final_epsilon = ledger.Total().epsilon;
  for (uint64_t step = 1; step < kOfPeriod; ++step) {
    const Digest before = ledger.head();
    const Bill next = BillOf(range, step, step + 1);
    EXPECT_EQ(ledger.EpsilonAfter(next.charges()), final_epsilon);
    EXPECT_EQ(ledger.TotalAfter(next.charges()), final_epsilon);
    Append(ledger, 1 + step, next);
    EXPECT_NE(ledger.head(), before) << "a commit that cannot be told from the one before";
    EXPECT_EQ(ledger.Total().epsilon, final_epsilon);
  }
  EXPECT_EQ(ledger.entries().size(), 1u);
  EXPECT_EQ(ledger.entries()[0].steps, kOfPeriod);
  EXPECT_EQ(ledger.entries()[0].last_commit, kOfPeriod);
  EXPECT_EQ(ledger.entries()[0].charge.block_steps, StepCharge().block_steps);
  EXPECT_TRUE(VerifyChain(ledger.entries()));
}

// The table of design: less than Poisson at one expected use, more than nothing.
TEST(AllocationLedger, CostsLessThanSamplingAndThanOnce) {
  const double poisson =
      *PldUpperEpsilon(Event::PoissonGaussian(1, 0.1), 10, Adjacency::kAddRemove, Delta(1e-5));
  const double allocated =
      *PldUpperEpsilon(Event::Allocation(1, 10), 1, Adjacency::kAddRemove, Delta(1e-5));
  EXPECT_NEAR(allocated, 2.18885, 2.18885e-3);
  EXPECT_NEAR(poisson, 2.8545, 2.8545e-3);
}

TEST(AllocationLedger, PeriodsAreDisjointAndTheSameRecordsAgainCostAgain) {
  Ledger ledger = DeclaredLedger();
  uint64_t commit = 0;
  for (uint64_t period = 0; period < 3; ++period)
    for (uint64_t step = 0; step < kOfPeriod; step += 3)
      Append(ledger, ++commit,
             BillOf({0, 100 * period, 100 * (period + 1)}, step, std::min(step + 3, kOfPeriod)));
  const double one = EpsilonOfBlocks(kBlocks), two = EpsilonOfBlocks(2 * kBlocks);
  EXPECT_NEAR(ledger.Total().epsilon, one, 2e-3 * one);
  // Begun anew: the part begun and the new one.
  Append(ledger, ++commit, BillOf({0, 200, 300}, 0, 1));
  EXPECT_NEAR(ledger.Total().epsilon, two, 2e-3 * two);
  EXPECT_TRUE(VerifyChain(ledger.entries()));
}

TEST(AllocationLedger, AUserIsChargedForBlocksUpToTheAllowance) {
  Ledger ledger = DeclaredLedger(Unit::kUser);
  for (uint64_t period = 0; period < 4; ++period)
    Append(ledger, 1 + period, BillOf({0, 100 * period, 100 * (period + 1)}, 0, kOfPeriod));
  const double want = EpsilonOfBlocks(2 * kBlocks);
  EXPECT_NEAR(ledger.Total().epsilon, want, 2e-3 * want);
  EXPECT_TRUE(VerifyChain(ledger.entries()));
  EXPECT_EQ(MostEver(ledger.entries(), "a", {})->sampled,
            (std::vector<Spending::Sampled>{{kSigma, 0.25, 2 * kBlocks, kSteps}}));
}

// Another learner's entries stand between the beginning of a period and its rest.
TEST(AllocationLedger, TheRestOfAPeriodMayBeAnEntryThatCostsNothing) {
  Ledger ledger = DeclaredLedger();
  ASSERT_TRUE(ledger.Declare(PromiseOf("b")));
  const OffsetRange range{0, 0, 100};
  Append(ledger, 1, BillOf(range, 0, 2));
  AppendOne(ledger, 2, StepOf("b", 0, 10));
  AppendOne(ledger, 3, StepOf("b", 0, 10));  // again: an entry of its own
  Append(ledger, 4, BillOf(range, 2, 5));
  ASSERT_EQ(ledger.entries().size(), 4u);
  EXPECT_EQ(ledger.entries()[3].steps, 0u);
  EXPECT_EQ(ledger.entries()[3].epsilon, ledger.entries()[0].epsilon);
  Append(ledger, 5, BillOf({0, 100, 200}, 0, kOfPeriod));
  EXPECT_EQ(ledger.Learners()[0].steps, 2 * kOfPeriod);
  const double want = EpsilonOfBlocks(kBlocks);
  EXPECT_NEAR(ledger.Learners()[0].epsilon, want, 2e-3 * want);
  ASSERT_TRUE(VerifyChain(ledger.entries()));

  const auto restored = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->EncodeState(), ledger.EncodeState());
}

TEST(AllocationLedger, StepsThatNothingPaidForEndTheProgram) {
  Ledger ledger = DeclaredLedger();
  const OffsetRange range{0, 0, 100};
  EXPECT_DEATH(Append(ledger, 1, BillOf(range, 1, 2)), "steps that nothing paid for");
  Append(ledger, 1, BillOf(range, 0, 1));
  EXPECT_DEATH(Append(ledger, 2, BillOf(range, 1, 2, StepCharge(1.5))),
               "steps that nothing paid for");
}

// Makes heads and links right again, as an editor of the chain would.
std::vector<LedgerEntry> Relinked(std::vector<LedgerEntry> entries) {
  Digest head{};
  for (LedgerEntry& entry : entries) {
    entry.previous_head = head;
    entry.head = head = entry.ComputeHead();
  }
  return entries;
}

std::vector<LedgerEntry> TwoEntries() {
  Ledger ledger = DeclaredLedger();
  Append(ledger, 1, BillOf({0, 0, 100}, 0, kOfPeriod));
  Append(ledger, 2, BillOf({0, 0, 100}, 0, kOfPeriod));  // another pass
  Append(ledger, 3, BillOf({0, 0, 100}, 0, kOfPeriod));
  EXPECT_EQ(ledger.entries().size(), 1u) << "all of them cost the worst record more";
  const Status verified = VerifyChain(ledger.entries());
  EXPECT_TRUE(verified) << verified.error().message;
  return ledger.entries();
}

struct BlockEdit {
  const char* what;
  void (*apply)(LedgerEntry&);
  const char* found;
};
const BlockEdit kBlockEdits[] = {
    // Poisson's charge for an allocation that ran, and the other way round.
    {"sampled steps", [](LedgerEntry& e) { e.charge.block_steps = 0; }, "steps without a block"},
    {"another participation",
     [](LedgerEntry& e) {
       e.participation = ParticipationMode::kPoisson;
       e.charge.block_steps = 0;
       e.worst.sampled = {{kSigma, 0.25, e.steps}};
     },
     "epsilon"},
    {"longer blocks",
     [](LedgerEntry& e) {
       e.charge.block_steps = 8;
       e.charge.sampling_rate = 0.125;
     },
     "the cost goes down"},
    {"another rate", [](LedgerEntry& e) { e.charge.sampling_rate = 0.2; },
     "the sampling rate is not one step of a block"},
    {"a part of a block", [](LedgerEntry& e) { --e.steps; }, "blocks are charged in part"},
    {"no steps", [](LedgerEntry& e) { e.steps = 0; }, "steps that nothing paid for"},
    {"fewer blocks spent", [](LedgerEntry& e) { --e.worst.sampled[0].count; }, "epsilon"},
};

TEST(AllocationLedger, VerifyFindsWhatDoesNotAddUp) {
  const std::vector<LedgerEntry> good = TwoEntries();
  for (const BlockEdit& edit : kBlockEdits) {
    std::vector<LedgerEntry> chain = good;
    edit.apply(chain[0]);
    const Status found = VerifyChain(Relinked(chain));
    ASSERT_FALSE(found) << edit.what;
    EXPECT_THAT(found.error().message, HasSubstr(edit.found)) << edit.what;
  }
}

TEST(AllocationLedger, EncodingsRoundTrip) {
  const LedgerEntry entry = TwoEntries()[0];
  const auto decoded = LedgerEntry::Decode(entry.Encode());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->charge, entry.charge);
  EXPECT_EQ(decoded->worst, entry.worst);
  EXPECT_EQ(decoded->ComputeHead(), entry.head);
  const std::string bytes = entry.Encode();
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(LedgerEntry::Decode(std::string_view(bytes).substr(0, n)));
}

TEST(AllocationSpending, BlocksAreASettingOfTheirOwn) {
  const Spending blocks = Spending::Of(StepCharge(), kOfPeriod);
  Charge sampled = StepCharge();
  sampled.block_steps = 0;
  const Spending steps = Spending::Of(sampled, kOfPeriod);
  EXPECT_EQ(blocks.SampledSteps(), kOfPeriod);
  EXPECT_EQ(Spending::Of(StepCharge(), 1).sampled[0].count, 1u) << "a block counts once begun";
  EXPECT_FALSE(blocks.Covers(steps));
  EXPECT_FALSE(steps.Covers(blocks));
  Spending both = blocks;
  both.Add(steps);
  EXPECT_EQ(both.sampled.size(), 2u);
  ByteWriter out;
  both.EncodeTo(&out);
  Spending back;
  ByteReader in(out.bytes());
  ASSERT_TRUE(Spending::Decode(&in, &back));
  EXPECT_EQ(back, both);
  Charge all = StepCharge();
  all.block_steps = 1;
  all.sampling_rate = 1;
  EXPECT_EQ(Spending::Of(all, 3), (Spending{.mu_squared = 0.75})) << "a block of one step is it";
}

// The meter grows block by block, beside anything else. (A bound of one direction that was
// merely enough, below the other's, once counted as the best there is.)
TEST(AllocationSpending, TheMeterComposesBlocks) {
  for (const double mu_squared : {0.0, 0.04}) {
    EpsilonMeter meter;
    Spending spending = Spending::Of(StepCharge(), kOfPeriod);
    spending.Add({.mu_squared = mu_squared});
    for (uint64_t more = 0; more < 8; ++more) {
      const auto fresh = EpsilonMeter().Bounds(spending, Delta(1e-6));
      const auto grown = meter.Bounds(spending, Delta(1e-6));
      EXPECT_NEAR(grown.upper, fresh.upper, 2e-3 * fresh.upper);
      spending.Add(Spending::Of(StepCharge(), kSteps));
    }
  }
}

}  // namespace
}  // namespace tacit::privacy
