// Charges of several things in one commit, of what is not Gaussian, and of all learners together.
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

Charge GumbelCharge(double rho) {
  return {.mechanism = MechanismKind::kExponential, .noise_multiplier = kInfinity, .zcdp_rho = rho};
}

// A vocabulary released over [begin, end) of partition 0.
CommitCharge ReleaseOf(const std::string& learner, uint64_t begin, uint64_t end) {
  return {learner,
          {.mechanism = MechanismKind::kVocabulary, .noise_multiplier = 4, .sigma_gradient = 4},
          1,
          1,
          "log",
          {{0, begin, end}}};
}

Promise UserPromise(const std::string& learner) {
  Promise promise = PromiseOf(learner);
  promise.unit = Unit::kUser;
  return promise;
}

double FreshUpper(const Spending& spending, double delta) {
  return EpsilonMeter().Bounds(spending, Delta(delta)).upper;
}

TEST(Charge, OfGumbelNoiseAloneIsBounded) {
  EXPECT_TRUE(GumbelCharge(0.1).Bounded());
  EXPECT_EQ(GumbelCharge(0.1).MuSquared(), 0);
  EXPECT_EQ(Spending::Of(GumbelCharge(0.25), 4), (Spending{.rho = 1}));
}

TEST(Charge, ThatIsNoPromiseIsUnbounded) {
  for (const Charge& charge :
       {GumbelCharge(0), GumbelCharge(-1), GumbelCharge(NAN), GumbelCharge(kInfinity),
        Charge{.noise_multiplier = -1}, Charge{.noise_multiplier = NAN},
        Charge{.noise_multiplier = 1, .zcdp_rho = -0.1}}) {
    EXPECT_FALSE(charge.Bounded());
    EXPECT_EQ(Spending::Of(charge, 1).mu_squared, kInfinity);
    EXPECT_EQ(FreshUpper(Spending::Of(charge, 1), 1e-6), kInfinity);
  }
}

TEST(Spending, SamplingAmplifiesTheGaussianAndNotTheRest) {
  Charge charge = UsualCharge();
  charge.sampling_rate = 0.01;
  charge.zcdp_rho = 0.5;
  const Spending spending = Spending::Of(charge, 3);
  EXPECT_EQ(spending.rho, 1.5);
  EXPECT_EQ(spending.mu_squared, 0);
  EXPECT_THAT(spending.sampled, ElementsAre(Spending::Sampled{2, 0.01, 3}));
  EXPECT_TRUE(spending.Covers(Spending{.rho = 1.5}));
  EXPECT_FALSE(spending.Covers(Spending{.rho = 1.6}));
}

// DP-FP (paper 001) with its labels in the clear: 3,000 micro-batches at .001 and sigma 1 cost 13.2
// (the specification's figure), not the .26 of a sampled Gaussian; stored, read and told so.
TEST(Spending, OfKnownCoinsIsNotAmplified) {
  const Charge forward{.mechanism = MechanismKind::kForward,
                       .noise_multiplier = 1,
                       .clip_gradient = 1,
                       .sampling_rate = 0.001};
  const Spending spending = Spending::Of(forward, 3000);
  EXPECT_NEAR(EpsilonMeter().Bounds(spending, Delta(1e-5)).upper, 13.2, 0.05);
  Charge secret = forward;
  secret.mechanism = MechanismKind::kDpSgd;
  EXPECT_NEAR(EpsilonMeter().Bounds(Spending::Of(secret, 3000), Delta(1e-5)).upper, 0.26, 0.01);
  // Both of one unit stay apart.
  Spending both = spending;
  both.Add(Spending::Of(secret, 3000));
  ASSERT_EQ(both.sampled.size(), 2u);
  EXPECT_TRUE(both.Covers(spending));
  EXPECT_FALSE(Spending::Of(secret, 4000).Covers(spending));
  ByteWriter out;
  both.EncodeTo(&out);
  const std::string bytes = std::move(out).Take();
  ByteReader in(bytes);
  Spending read;
  ASSERT_TRUE(Spending::Decode(&in, &read));
  EXPECT_EQ(read, both);
}

TEST(Ledger, SaysWhatNoEpsilonCovers) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(PromiseOf("plain")));
  ASSERT_TRUE(ledger.Declare(PromiseOf("shown")));
  ledger.Append(CommitSeq(1), 1, std::vector{StepOf("plain", 0, 10)}, {}, "test");
  EXPECT_EQ(ledger.Total().not_covered, "");
  CommitCharge step = StepOf("shown", 0, 10);
  step.charge = {.mechanism = MechanismKind::kForward, .noise_multiplier = 2, .clip_gradient = 1};
  ledger.Append(CommitSeq(2), 2, std::vector{step}, {}, "test");
  ASSERT_TRUE(VerifyChain(ledger.entries()));
  const auto expect_told = [](const Ledger& of) {
    for (const LedgerTotal& total : of.Learners())
      EXPECT_EQ(total.not_covered.starts_with("labels are not covered"), total.learner == "shown");
    EXPECT_TRUE(of.Total().not_covered.starts_with("labels are not covered"));
  };
  expect_told(ledger);
  const auto restored = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  ASSERT_TRUE(restored) << restored.error().message;
  expect_told(*restored);
}

TEST(EpsilonMeter, ComposesZcdpWithWhatElseThereIs) {
  const double delta = 1e-6;
  // Canonne, Kamath and Steinke's conversion, minimised over the order by ternary search elsewhere.
  EXPECT_NEAR(FreshUpper({.rho = 0.125}, delta), 2.4190931769, 1e-4);
  const Spending parts[] = {{.rho = 0.125}, {.mu_squared = 0.25}, {.sampled = {{1, 0.01, 500}}}};
  Spending all;
  double least = 0;
  for (const Spending& part : parts) {
    all.Add(part);
    least = std::max(least, FreshUpper(part, delta));
    EXPECT_GE(FreshUpper(all, delta), least * (1 - 1e-9));
  }
  PldAccountant accountant(Adjacency::kAddRemove);
  ASSERT_TRUE(accountant.Add(Event::Zcdp(0.125), 1));
  ASSERT_TRUE(accountant.Add(Event::Gaussian(2), 1));
  ASSERT_TRUE(accountant.Add(Event::PoissonGaussian(1, 0.01), 500));
  EXPECT_NEAR(FreshUpper(all, delta), accountant.Epsilon(Delta(delta))->upper, 2e-3);
  // No better than if the rest were a Gaussian of that rho, no worse than Bun and Steinke.
  EXPECT_GE(FreshUpper({.mu_squared = 0.25, .rho = 0.125}, delta),
            GaussianEpsilon(std::sqrt(0.5), Delta(delta)).value);
  EXPECT_LE(FreshUpper({.mu_squared = 0.25, .rho = 0.125}, delta),
            0.25 + 2 * std::sqrt(0.25 * std::log(1 / delta)));
}

TEST(EpsilonMeter, GrowsWithRhoAsIfComposedAtOnce) {
  EpsilonMeter growing;
  Spending spending;
  for (int i = 0; i < 12; ++i) {
    Charge charge = UsualCharge();
    charge.sampling_rate = 0.02;
    charge.zcdp_rho = 1e-3;
    spending.Add(Spending::Of(charge, 1 + static_cast<uint64_t>(i)));
    const CertifiedInterval grown = growing.Bounds(spending, Delta(1e-6));
    EXPECT_LE(EpsilonMeter().Bounds(spending, Delta(1e-6)).lower, grown.upper);
    EXPECT_NEAR(grown.upper, FreshUpper(spending, 1e-6), 4e-3 * grown.upper + 1e-6);
    EXPECT_EQ(growing.Bounds(spending, Delta(1e-6)).upper, grown.upper);
  }
}

TEST(Ledger, AReleaseBesideTheStepsIsAnEntryOfItsOwn) {
  Ledger ledger;
  Promise of_periods = PromiseOf("next");
  of_periods.participation = ParticipationMode::kPoisson;
  ASSERT_TRUE(ledger.Declare(of_periods));
  const auto append = [&](uint64_t commit, std::vector<CommitCharge> charges) {
    const double foretold = ledger.EpsilonAfter(charges);
    const auto changed =
        ledger.Append(CommitSeq(commit), static_cast<int64_t>(commit), charges, kSalt, "test");
    EXPECT_EQ(ledger.Learners()[0].epsilon, foretold);
    return changed;
  };
  EXPECT_THAT(append(1, {StepOf("next", 0, 10)}), ElementsAre(0));
  EXPECT_THAT(append(2, {StepOf("next", 10, 20)}), ElementsAre(0));
  EXPECT_THAT(append(3, {StepOf("next", 20, 30), ReleaseOf("next", 20, 30)}), ElementsAre(0, 1));
  EXPECT_THAT(append(4, {StepOf("next", 30, 40)}), ElementsAre(2));
  EXPECT_THAT(append(5, {StepOf("next", 40, 50)}), ElementsAre(2));
  ASSERT_EQ(ledger.entries().size(), 3u);
  EXPECT_EQ(ledger.entries()[0].steps, 3u);
  EXPECT_EQ(ledger.entries()[1].charge.mechanism, MechanismKind::kVocabulary);
  EXPECT_EQ(ledger.entries()[2].steps, 2u);
  // Step and release met on the same records.
  EXPECT_EQ(ledger.Learners()[0].epsilon,
            GaussianEpsilon(std::sqrt(0.25 + 0.0625), Delta(1e-6)).value);
  const Status status = VerifyChain(ledger.entries());
  EXPECT_TRUE(status) << status.error().message;
}

// A period's release, where no period is held: nothing charges that (query_table.h).
TEST(VerifyChain, FindsAQueryThatTheParticipationDoesNotHave) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(PromiseOf("next")));
  AppendOne(ledger, 1, StepOf("next", 0, 10));
  EXPECT_TRUE(VerifyChain(ledger.entries()));
  AppendOne(ledger, 2, ReleaseOf("next", 0, 10));
  const Status status = VerifyChain(ledger.entries());
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message,
              HasSubstr("a period's histogram of rows is charged, which participation once"));
}

TEST(Ledger, ARunOfAUserLevelLearnerIsOneEntry) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(UserPromise("next")));
  for (uint64_t commit = 1; commit <= 50; ++commit)
    AppendOne(ledger, commit, StepOf("next", 0, 10));
  ASSERT_EQ(ledger.entries().size(), 1u);
  EXPECT_EQ(ledger.entries()[0].worst.mu_squared, 12.5);
  EXPECT_TRUE(VerifyChain(ledger.entries()));
}

TEST(Ledger, TellsWhenARunBeganAndEnded) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(PromiseOf("ctr")));
  // The clock goes back in between, and at last.
  const int64_t times[] = {5000, 7000, 6000, 9000, 1000};
  for (uint64_t i = 0; i < 5; ++i) {
    const CommitCharge step = StepOf("ctr", i < 4 ? i : 0, i < 4 ? i + 1 : 1);
    ledger.Append(CommitSeq(i + 1), times[i], {&step, 1}, kSalt, "test");
  }
  ASSERT_EQ(ledger.entries().size(), 2u);
  EXPECT_EQ(ledger.entries()[0].first_time_ms, 5000);
  EXPECT_EQ(ledger.entries()[0].last_time_ms, 9000);
  EXPECT_EQ(ledger.entries()[1].first_time_ms, 9000);
  EXPECT_TRUE(VerifyChain(ledger.entries()));
  auto restored = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  ASSERT_TRUE(restored);
  const CommitCharge step = StepOf("ctr", 0, 1);
  restored->Append(CommitSeq(6), 2000, {&step, 1}, kSalt, "test");
  EXPECT_EQ(restored->entries().back().last_time_ms, 9000);
}

TEST(Ledger, RefusesAnotherFormatByName) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(PromiseOf("ctr")));
  AppendOne(ledger, 1, StepOf("ctr", 0, 10));
  std::string entry = ledger.entries()[0].Encode(), state = ledger.EncodeState();
  entry[1] = state[1] = 2;
  for (const Error& error :
       {LedgerEntry::Decode(entry).error(), Ledger::Restore(ledger.entries(), state).error()}) {
    EXPECT_EQ(error.code, ErrorCode::kRefused);
    EXPECT_THAT(error.message, HasSubstr("is of format 2, this program reads format 1"));
  }
  entry[0] = 'x';
  EXPECT_EQ(LedgerEntry::Decode(entry).error().code, ErrorCode::kCorruption);
}

// Programs before 0.1.0 had the format in the first byte, 2 to 6.
TEST(Ledger, RefusesWhatWasWrittenBeforeTheFirstFormat) {
  for (const char format : {2, 3, 4, 5, 6}) {
    const std::string bytes = format + std::string(200, '\0');
    for (const Error& error :
         {LedgerEntry::Decode(bytes).error(), Ledger::Restore({}, bytes).error()}) {
      EXPECT_EQ(error.code, ErrorCode::kRefused);
      EXPECT_THAT(error.message, HasSubstr("was written before 0.1.0"));
    }
  }
}

TEST(Ledger, TheTotalIsStatedAtTheDeltaOfItsBudget) {
  Ledger ledger;
  Promise loose = PromiseOf("b");
  loose.delta = 1e-4;
  ASSERT_TRUE(ledger.Declare(PromiseOf("a")));
  ASSERT_TRUE(ledger.Declare(loose));
  AppendOne(ledger, 1, StepOf("a", 0, 10));
  AppendOne(ledger, 2, StepOf("b", 0, 10));
  const auto at = [](double delta) { return GaussianEpsilon(std::sqrt(0.5), Delta(delta)).value; };
  EXPECT_EQ(ledger.Total().delta, 1e-4);
  EXPECT_EQ(ledger.Total().epsilon, at(1e-4));
  EXPECT_EQ(ledger.TotalAfter({}, Delta(1e-9)), at(1e-9));
  ASSERT_TRUE(ledger.DeclareTotal({.epsilon = 10, .delta = 1e-5}));
  auto restored = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->Total().delta, 1e-5);
  EXPECT_EQ(restored->Total().epsilon, at(1e-5));
  const auto promises = Ledger::ReadPromises(ledger.EncodeState());
  ASSERT_TRUE(promises);
  EXPECT_EQ(promises->total, (TotalBudget{10, 1e-5}));
  EXPECT_EQ(promises->learners.at(1).delta, 1e-4);
  for (const TotalBudget& none :
       {TotalBudget{0, 1e-5}, TotalBudget{1, 0}, TotalBudget{1, 1}, TotalBudget{NAN, 1e-5}})
    EXPECT_FALSE(ledger.DeclareTotal(none));
  ledger.ClearTotal();
  EXPECT_EQ(ledger.Total().delta, 1e-4);
  EXPECT_FALSE(Ledger::ReadPromises(ledger.EncodeState())->total);
}

// Every offset by itself, and every user-level learner as one more thing that all have been in.
class NaiveAccount {
 public:
  void Append(const CommitCharge& c, bool user) {
    const Spending each = Spending::Of(c.charge, user ? c.steps : c.steps_per_offset);
    if (user) {
      of_users_[c.learner].Add(each);
      return;
    }
    recordless_.push_back({c.learner, each});
    for (const OffsetRange& range : c.ranges)
      for (uint64_t o = range.begin; o < range.end; ++o)
        used_[{range.partition, o}][c.learner].Add(each);
  }
  // With "" of all learners together.
  double Epsilon(const std::string& learner, double delta) {
    const auto wanted = [&](const std::string& name) { return learner.empty() || name == learner; };
    Spending users;
    for (const auto& [name, spending] : of_users_)
      if (wanted(name)) users.Add(spending);
    double worst = Ask(users, delta);
    const auto consider = [&](Spending spending) {
      spending.Add(users);
      worst = std::max(worst, Ask(spending, delta));
    };
    for (const auto& [name, spending] : recordless_)
      if (wanted(name)) consider(spending);
    for (const auto& [offset, by_learner] : used_) {
      Spending sum;
      for (const auto& [name, spending] : by_learner)
        if (wanted(name)) sum.Add(spending);
      consider(sum);
    }
    return worst;
  }

 private:
  double Ask(const Spending& spending, double delta) {
    ByteWriter key;
    spending.EncodeTo(&key);
    key.Put(delta);
    const auto [place, is_new] = known_.try_emplace(std::string(key.bytes()));
    if (is_new) place->second = FreshUpper(spending, delta);
    return place->second;
  }

  std::map<std::pair<int32_t, uint64_t>, std::map<std::string, Spending>> used_;
  std::vector<std::pair<std::string, Spending>> recordless_;
  std::map<std::string, Spending> of_users_;
  std::map<std::string, double> known_;
};

struct RandomCharges {
  explicit RandomCharges(uint64_t seed, bool gumbel) : random(seed), gumbel(gumbel) {}
  std::vector<CommitCharge> Of(const std::string& learner) {
    std::vector<CommitCharge> charges(1 + random() % 3, StepOf(learner, 0, 0));
    for (CommitCharge& c : charges) {
      const uint64_t begin = random() % 20;
      c.charge.noise_multiplier = random() % 4 == 0 ? 4 : 8;
      c.charge.sigma_selection = 0;
      c.charge.sigma_gradient = c.charge.noise_multiplier;
      if (gumbel && random() % 3 == 0) c.charge = GumbelCharge(1.0 / 64);
      c.steps = 1 + random() % 2;
      c.ranges = {{static_cast<int32_t>(random() % 2), begin, begin + random() % 8}};
      if (c.steps == 2 && random() % 2 == 0) c.ranges.push_back(c.ranges[0]);
    }
    return charges;
  }
  std::mt19937_64 random;
  const bool gumbel;
};

// Two event-level learners and one user-level; charges in ones, twos and threes.
void CompareWithNaive(uint64_t seed, bool gumbel, int commits) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  constexpr double kTotalDelta = 1e-5;
  const auto same = [&](double found, double expected) {
    // Exact without zCDP; with it, bounds of one truth that were come to in different ways.
    EXPECT_NEAR(found, expected, gumbel ? 4e-3 * expected + 1e-6 : 0);
  };
  RandomCharges random(seed, gumbel);
  Ledger ledger;
  ASSERT_TRUE(ledger.Declare(PromiseOf("a")));
  ASSERT_TRUE(ledger.Declare(PromiseOf("b")));
  ASSERT_TRUE(ledger.Declare(UserPromise("u")));
  NaiveAccount naive;
  for (int commit = 1; commit <= commits; ++commit) {
    std::vector<CommitCharge> all;
    NaiveAccount before = naive;
    for (const char* learner : {"a", "b", "u"}) {
      if (random.random() % 3 == 0) continue;
      const bool user = *learner == 'u';
      const std::vector<CommitCharge> charges = random.Of(learner);
      NaiveAccount after = before;
      for (const CommitCharge& c : charges) {
        after.Append(c, user);
        naive.Append(c, user);
        all.push_back(c);
      }
      same(ledger.EpsilonAfter(charges), after.Epsilon(learner, 1e-6));
    }
    same(ledger.TotalAfter(all, Delta(kTotalDelta)), naive.Epsilon("", kTotalDelta));
    same(ledger.TotalAfter(all), naive.Epsilon("", 1e-6));
    ledger.Append(CommitSeq(static_cast<uint64_t>(commit)), commit, all, kSalt, "test");
    same(ledger.Total().epsilon, naive.Epsilon("", 1e-6));
    if (random.random() % 4 == 0) ledger = *Ledger::Restore(ledger.entries(), ledger.EncodeState());
  }
  const Status status = VerifyChain(ledger.entries());
  EXPECT_TRUE(status) << status.error().message;
}

TEST(Ledger, SeveralChargesAgreeWithEveryOffsetByItself) {
  for (uint64_t seed = 0; seed < 30; ++seed) CompareWithNaive(seed, false, 12);
}

TEST(Ledger, GumbelChargesAgreeWithEveryOffsetByItself) {
  for (uint64_t seed = 0; seed < 2; ++seed) CompareWithNaive(seed, true, 3);
}

}  // namespace
}  // namespace tacit::privacy
