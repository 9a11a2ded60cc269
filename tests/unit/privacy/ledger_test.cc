#include "privacy/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ledger_fixture.h"
#include "privacy/gaussian.h"
#include "privacy/infinity.h"

namespace tacit::privacy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Ledger LedgerOf(std::initializer_list<const char*> learners) {
  Ledger ledger;
  for (const char* learner : learners) EXPECT_TRUE(ledger.Declare(PromiseOf(learner)));
  return ledger;
}

Ledger Restored(const Ledger& ledger) {
  auto restored = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  EXPECT_TRUE(restored) << restored.error().message;
  return *restored;
}

TEST(Charge, MuSquaredIsInfiniteWithoutNoise) {
  EXPECT_DOUBLE_EQ(UsualCharge().MuSquared(), 0.25);
  EXPECT_EQ(Charge{}.MuSquared(), kInfinity);
}

TEST(Ledger, DeclareNamesWhatChanged) {
  Ledger ledger = LedgerOf({"ctr"});
  struct Case {
    void (*change)(Promise&);
    const char* named;
  };
  const Case cases[] = {{[](Promise& p) { p.unit = Unit::kUser; }, "unit was event and is user"},
                        {[](Promise& p) { p.delta = 1e-5; }, "delta was 1e-06 and is 1e-05"},
                        {[](Promise& p) { p.adjacency = Adjacency::kAddRemove; },
                         "adjacency was zero-out and is add-remove"},
                        {[](Promise& p) { p.participation = ParticipationMode::kPoisson; },
                         "participation was once and is poisson"},
                        {[](Promise& p) { p.model_fingerprint[0] = 0xff; },
                         "model fingerprint was 0102030000000000 and is ff02030000000000"}};
  for (const Case& c : cases) {
    Promise promise = PromiseOf("ctr");
    c.change(promise);
    const Status status = ledger.Declare(promise);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kRefused);
    EXPECT_THAT(status.error().message, HasSubstr("'ctr'"));
    EXPECT_THAT(status.error().message, HasSubstr(c.named));
  }
  EXPECT_TRUE(ledger.Declare(PromiseOf("ctr")));
  Promise larger_budget = PromiseOf("ctr");
  larger_budget.epsilon = 10;
  EXPECT_TRUE(ledger.Declare(larger_budget));
}

TEST(Ledger, DeclareRefusesWhatIsNoPromise) {
  Ledger ledger;
  for (void (*spoil)(Promise&) :
       {+[](Promise& p) { p.learner.clear(); }, +[](Promise& p) { p.delta = 0; },
        +[](Promise& p) { p.delta = 1; }, +[](Promise& p) { p.epsilon = 0; },
        +[](Promise& p) { p.epsilon = NAN; }}) {
    Promise promise = PromiseOf("x");
    spoil(promise);
    const Status status = ledger.Declare(promise);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Ledger, ARunOfAHundredThousandCommitsIsOneEntry) {
  Ledger ledger = LedgerOf({"ctr"});
  std::vector<Digest> heads;
  for (uint64_t i = 0; i < 100000; ++i) {
    EXPECT_THAT(AppendOne(ledger, i + 1, StepOf("ctr", 2048 * i, 2048 * (i + 1))), ElementsAre(0));
    if (i < 3) heads.push_back(ledger.head());
  }
  ASSERT_EQ(ledger.entries().size(), 1u);
  const LedgerEntry& entry = ledger.entries()[0];
  EXPECT_EQ(entry.steps, 100000u);
  EXPECT_EQ(entry.first_commit, 1u);
  EXPECT_EQ(entry.last_commit, 100000u);
  EXPECT_EQ(entry.epsilon, EpsilonOf(0.25));
  EXPECT_NE(heads[0], heads[1]);
  EXPECT_NE(heads[1], heads[2]);
  EXPECT_EQ(ledger.head(), entry.head);
  EXPECT_TRUE(VerifyChain(ledger.entries()));
}

TEST(Ledger, HeadDependsOnRangesAndSalt) {
  std::vector<Digest> heads;
  for (int variant = 0; variant < 3; ++variant) {
    Ledger ledger = LedgerOf({"ctr"});
    const CommitCharge step = StepOf("ctr", 0, variant == 1 ? 11 : 10);
    ledger.Append(CommitSeq(1), 7, {&step, 1}, variant == 2 ? Digest{8} : kSalt, "test");
    heads.push_back(ledger.head());
  }
  EXPECT_NE(heads[0], heads[1]);
  EXPECT_NE(heads[0], heads[2]);
}

TEST(Ledger, ConsumingRecordsAgainRaisesEpsilonAfterARestore) {
  Ledger ledger = LedgerOf({"ctr"});
  AppendOne(ledger, 1, StepOf("ctr", 0, 100));
  AppendOne(ledger, 2, StepOf("ctr", 100, 200));
  Ledger restored = Restored(ledger);
  EXPECT_TRUE(restored.Declare(PromiseOf("ctr")));
  const CommitCharge again = StepOf("ctr", 150, 160), fresh = StepOf("ctr", 200, 300);
  EXPECT_EQ(EpsilonAfterOne(restored, fresh), EpsilonOf(0.25));
  EXPECT_EQ(EpsilonAfterOne(restored, again), EpsilonOf(0.5));
  EXPECT_EQ(restored.Learners()[0].epsilon, EpsilonOf(0.25));
  EXPECT_THAT(AppendOne(restored, 3, again), ElementsAre(1));
  EXPECT_EQ(restored.Learners()[0].epsilon, EpsilonOf(0.5));
  EXPECT_EQ(restored.Learners()[0].steps, 3u);
  EXPECT_TRUE(VerifyChain(restored.entries()));
}

TEST(Ledger, AStepOnNoRecordsIsCharged) {
  Ledger ledger = LedgerOf({"ctr"});
  CommitCharge empty = StepOf("ctr", 0, 0);
  empty.ranges.clear();
  EXPECT_EQ(EpsilonAfterOne(ledger, empty), EpsilonOf(0.25));
  AppendOne(ledger, 1, empty);
  EXPECT_EQ(ledger.Total().epsilon, EpsilonOf(0.25));
  EXPECT_TRUE(VerifyChain(ledger.entries()));
  empty.steps = 0;
  EXPECT_THAT(AppendOne(ledger, 2, empty), IsEmpty());
}

TEST(Ledger, TwoLearnersInTurnsStayTwoEntries) {
  Ledger ledger = LedgerOf({"a", "b"});
  for (uint64_t i = 0; i < 1000; ++i) {
    const CommitCharge both[] = {StepOf("a", 10 * i, 10 * i + 10),
                                 StepOf("b", 10 * i, 10 * i + 10)};
    // Together, and each alone: the other's head moves along when it comes later.
    if (i % 3 == 0) {
      EXPECT_THAT(ledger.Append(CommitSeq(i + 1), 7, both, kSalt, "test"), ElementsAre(0, 1));
    } else if (i % 3 == 1) {
      EXPECT_THAT(ledger.Append(CommitSeq(i + 1), 7, {both, 1}, kSalt, "test"), ElementsAre(0, 1));
    } else {
      EXPECT_THAT(ledger.Append(CommitSeq(i + 1), 7, {both + 1, 1}, kSalt, "test"), ElementsAre(1));
    }
  }
  EXPECT_EQ(ledger.entries().size(), 2u);
  const Status status = VerifyChain(ledger.entries());
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(ledger.Total().epsilon, EpsilonOf(0.5));
  EXPECT_EQ(ledger.Learners()[1].epsilon, EpsilonOf(0.25));
}

TEST(Ledger, AnEntryBehindOtherRunsIsNotTouchedAgain) {
  Ledger ledger = LedgerOf({"a", "b"});
  AppendOne(ledger, 1, StepOf("a", 0, 10));
  AppendOne(ledger, 2, StepOf("b", 0, 10));
  AppendOne(ledger, 3, StepOf("b", 0, 10));  // again: a new run
  EXPECT_THAT(AppendOne(ledger, 4, StepOf("a", 10, 20)), ElementsAre(3));
  EXPECT_TRUE(VerifyChain(ledger.entries()));
}

TEST(Ledger, TotalAddsLearnersOffsetByOffset) {
  Ledger ledger = LedgerOf({"a", "b"});
  AppendOne(ledger, 1, StepOf("a", 0, 100));
  AppendOne(ledger, 2, StepOf("b", 100, 200));
  EXPECT_EQ(ledger.Total().epsilon, EpsilonOf(0.25));
  AppendOne(ledger, 3, StepOf("b", 99, 100));
  EXPECT_EQ(ledger.Total().epsilon, EpsilonOf(0.5));
  EXPECT_EQ(ledger.Total().steps, 3u);
  EXPECT_EQ(ledger.Total().unit, Unit::kEvent);
  EXPECT_EQ(ledger.Total().learner, "");
}

TEST(Ledger, TotalIsAtTheLargestDelta) {
  Ledger ledger = LedgerOf({"a"});
  Promise loose = PromiseOf("b");
  loose.delta = 1e-3;
  EXPECT_TRUE(ledger.Declare(loose));
  AppendOne(ledger, 1, StepOf("a", 0, 10));
  EXPECT_EQ(ledger.Total().delta, 1e-3);
  EXPECT_EQ(ledger.Total().epsilon, GaussianEpsilon(0.5, Delta(1e-3)).value);
}

TEST(Ledger, ALearnerWithoutPrivacyIsInfinite) {
  Ledger ledger = LedgerOf({"a"});
  Promise promise = PromiseOf("open");
  promise.epsilon = kInfinity;
  EXPECT_TRUE(ledger.Declare(promise));
  AppendOne(ledger, 1, StepOf("a", 0, 10));
  CommitCharge step = StepOf("open", 0, 10);
  step.charge = Charge{};
  for (uint64_t commit = 2; commit < 5; ++commit) AppendOne(ledger, commit, step);
  EXPECT_EQ(ledger.entries().size(), 2u);
  EXPECT_EQ(ledger.Learners()[0].epsilon, EpsilonOf(0.25));
  EXPECT_EQ(ledger.Learners()[1].epsilon, kInfinity);
  EXPECT_EQ(ledger.Total().epsilon, kInfinity);
  EXPECT_TRUE(VerifyChain(ledger.entries()));
  EXPECT_EQ(Restored(ledger).Total().epsilon, kInfinity);
}

TEST(Ledger, AUserIsChargedForEveryStep) {
  Ledger ledger;
  Promise promise = PromiseOf("next");
  promise.unit = Unit::kUser;
  EXPECT_TRUE(ledger.Declare(promise));
  CommitCharge steps = StepOf("next", 0, 100);
  steps.steps = 4;
  AppendOne(ledger, 1, steps);
  EXPECT_EQ(ledger.Learners()[0].epsilon, EpsilonOf(1));
  EXPECT_EQ(EpsilonAfterOne(ledger, StepOf("next", 0, 100)), EpsilonOf(1.25));
  EXPECT_EQ(ledger.Total().unit, Unit::kUser);
  EXPECT_EQ(ledger.Total().epsilon, EpsilonOf(1));
  EXPECT_TRUE(VerifyChain(ledger.entries()));
}

// mu^2 per offset and learner, one by one.
class NaiveLedger {
 public:
  void Append(const CommitCharge& c) {
    for (const OffsetRange& range : c.ranges)
      for (uint64_t o = range.begin; o < range.end; ++o)
        used_[{range.partition, o}][c.learner] += c.charge.MuSquared();
    auto& least = least_[c.learner];
    least = std::max(least, c.charge.MuSquared());
  }
  double Worst(const std::string& learner) const {
    const auto found = least_.find(learner);
    double worst = found == least_.end() ? 0 : found->second;
    for (const auto& [offset, by_learner] : used_) {
      const auto mine = by_learner.find(learner);
      if (mine != by_learner.end()) worst = std::max(worst, mine->second);
    }
    return worst;
  }
  double WorstOfAll() const {
    double worst = 0;
    for (const auto& [learner, least] : least_) worst = std::max(worst, least);
    for (const auto& [offset, by_learner] : used_) {
      double sum = 0;
      for (const auto& [learner, mu_squared] : by_learner) sum += mu_squared;
      worst = std::max(worst, sum);
    }
    return worst;
  }

 private:
  std::map<std::pair<int32_t, uint64_t>, std::map<std::string, double>> used_;
  std::map<std::string, double> least_;
};

TEST(Ledger, AgreesWithEveryOffsetByItself) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Ledger ledger = LedgerOf({"a", "b", "c"});
    NaiveLedger naive;
    for (uint64_t commit = 1; commit <= 25; ++commit) {
      std::vector<CommitCharge> charges;
      for (const char* learner : {"a", "b", "c"}) {
        if (random() % 3 == 0) continue;
        const uint64_t begin = random() % 60;
        CommitCharge c = StepOf(learner, begin, begin + random() % 20);
        c.charge.noise_multiplier = random() % 4 == 0 ? 1 : 2;
        c.charge.sigma_selection = 0;
        c.charge.sigma_gradient = c.charge.noise_multiplier;
        c.ranges[0].partition = static_cast<int32_t>(random() % 2);
        NaiveLedger after = naive;
        after.Append(c);
        if (charges.empty()) {
          ASSERT_EQ(EpsilonAfterOne(ledger, c), EpsilonOf(after.Worst(learner)));
        }
        naive = after;
        charges.push_back(c);
      }
      const auto before = ledger.entries();
      const auto changed = ledger.Append(CommitSeq(commit), 7, charges, kSalt, "test");
      // Entries that are not reported as changed must not have changed: the store writes only the
      // reported ones.
      for (uint64_t i = 0; i < before.size(); ++i) {
        if (std::find(changed.begin(), changed.end(), i) != changed.end()) continue;
        ASSERT_EQ(before[i].Encode(), ledger.entries()[i].Encode());
      }
      if (random() % 5 == 0) ledger = Restored(ledger);
    }
    for (const LedgerTotal& total : ledger.Learners())
      EXPECT_EQ(total.epsilon, EpsilonOf(naive.Worst(total.learner)));
    EXPECT_EQ(ledger.Total().epsilon, EpsilonOf(naive.WorstOfAll()));
    const Status status = VerifyChain(ledger.entries());
    EXPECT_TRUE(status) << status.error().message;
  }
}

TEST(Ledger, VerifyRefusesUnitEventWithAWindowOfCopies) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(PromiseOf("ctr")));
  AppendOne(ledger, 1, StepOf("ctr", 0, 10));
  LedgerEntry entry = ledger.entries()[0];
  EXPECT_TRUE(VerifyChain({&entry, 1}));
  entry.bounds.dedupe_window = 100;
  entry.head = entry.ComputeHead();
  EXPECT_THAT(VerifyChain({&entry, 1}).error().message, HasSubstr("copies are dropped"));
}

TEST(Ledger, DeclareRefusesUnitEventWithAWindowOfCopies) {
  Promise promise = PromiseOf("ctr");
  promise.bounds.dedupe_window = 100;
  Ledger ledger;
  const Status refused = ledger.Declare(promise);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("source.dedupe.window"));
  promise.unit = Unit::kUser;
  EXPECT_TRUE(ledger.Declare(promise));
  Promise open = PromiseOf("open");
  open.bounds.dedupe_window = 100;
  open.epsilon = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(ledger.Declare(open));
}

// Taken out of the configuration: no configuration declares it any more. What it spent stays spent.
TEST(Ledger, ARemovedLearnerStaysInTheTotal) {
  Ledger before;
  for (const char* learner : {"ctr", "old"}) ASSERT_TRUE(before.Declare(PromiseOf(learner)));
  AppendOne(before, 1, StepOf("old", 0, 10));
  AppendOne(before, 2, StepOf("ctr", 0, 10));
  auto ledger = Ledger::Restore(before.entries(), before.EncodeState());
  ASSERT_TRUE(ledger);
  ASSERT_TRUE(ledger->Declare(PromiseOf("ctr")));
  const double both = GaussianEpsilon(std::sqrt(0.5), Delta(1e-6)).value;
  EXPECT_EQ(ledger->Total().epsilon, both);
  ASSERT_EQ(ledger->Learners().size(), 2u);
  EXPECT_EQ(ledger->Learners()[1].learner, "old");
  EXPECT_EQ(ledger->Learners()[1].steps, 1u);
  AppendOne(*ledger, 3, StepOf("ctr", 0, 10));
  EXPECT_EQ(ledger->Total().epsilon, GaussianEpsilon(std::sqrt(0.75), Delta(1e-6)).value);
}

// Another name is another learner: it begins at nothing, on records that the old one has used. The
// total has both, and it alone is what a budget can stop.
TEST(Ledger, ARenamedLearnerBeginsAtNothingAndTheTotalHasBoth) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(PromiseOf("ctr")));
  AppendOne(ledger, 1, StepOf("ctr", 0, 10));
  ASSERT_TRUE(ledger.Declare(PromiseOf("clicks")));
  const double one = GaussianEpsilon(0.5, Delta(1e-6)).value;
  EXPECT_EQ(EpsilonAfterOne(ledger, StepOf("clicks", 0, 10)), one);
  AppendOne(ledger, 2, StepOf("clicks", 0, 10));
  EXPECT_EQ(ledger.Total().epsilon, GaussianEpsilon(std::sqrt(0.5), Delta(1e-6)).value);
  const CommitCharge next = StepOf("clicks", 0, 10);
  EXPECT_EQ(ledger.TotalAfter({&next, 1}), GaussianEpsilon(std::sqrt(0.75), Delta(1e-6)).value);
}

TEST(Ledger, RestoreRefusesAStateOfOtherEntries) {
  Ledger ledger = LedgerOf({"ctr"});
  const std::string declared = ledger.EncodeState();
  AppendOne(ledger, 1, StepOf("ctr", 0, 10));
  const std::string earlier = ledger.EncodeState();
  AppendOne(ledger, 2, StepOf("ctr", 10, 20));
  EXPECT_TRUE(Ledger::Restore(ledger.entries(), ledger.EncodeState()));
  for (const std::string& state : {declared, earlier, std::string()}) {
    const auto restored = Ledger::Restore(ledger.entries(), state);
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().code, ErrorCode::kCorruption);
  }
  EXPECT_FALSE(Ledger::Restore({}, ledger.EncodeState()));
}

TEST(Ledger, RestoreRefusesEveryFlippedByteOfTheState) {
  Ledger ledger = LedgerOf({"ctr"});
  AppendOne(ledger, 1, StepOf("ctr", 0, 10));
  const std::string state = ledger.EncodeState();
  for (size_t i = 0; i < state.size(); ++i) {
    std::string broken = state;
    broken[i] ^= 0x10;
    EXPECT_FALSE(Ledger::Restore(ledger.entries(), broken)) << i;
    EXPECT_FALSE(Ledger::Restore(ledger.entries(), state.substr(0, i))) << i;
  }
}

}  // namespace
}  // namespace tacit::privacy
