// A learner whose model grows: the chain says so, and nothing is charged for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledger_fixture.h"
#include "privacy/ledger.h"

namespace tacit::privacy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Promise GrownPromise(const std::string& learner) {
  Promise promise = PromiseOf(learner);
  promise.model_fingerprint = {4, 5, 6};
  return promise;
}

void TakeOverOne(Ledger& ledger, uint64_t commit, const Promise& promise) {
  const Ledger::Heir heir{.promise = promise};
  const auto added =
      ledger.TakeOver(CommitSeq(commit), static_cast<int64_t>(commit) * 1000, {&heir, 1}, "test");
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_THAT(*added, ElementsAre(ledger.entries().size() - 1));
}

// Learner a, b, a again, a grows, a goes on.
Ledger GrownLedger() {
  Ledger ledger;
  for (const char* learner : {"a", "b"}) EXPECT_TRUE(ledger.Declare(PromiseOf(learner)));
  AppendOne(ledger, 1, StepOf("a", 0, 100));
  AppendOne(ledger, 2, StepOf("b", 0, 100));
  AppendOne(ledger, 3, StepOf("a", 0, 100));
  TakeOverOne(ledger, 4, GrownPromise("a"));
  AppendOne(ledger, 5, StepOf("a", 100, 200));
  return ledger;
}

std::vector<LedgerEntry> Linked(std::vector<LedgerEntry> entries) {
  Digest head{};
  for (size_t i = 0; i < entries.size(); ++i) {
    entries[i].index = i;
    entries[i].previous_head = head;
    entries[i].head = head = entries[i].ComputeHead();
  }
  return entries;
}

TEST(GrowthLedger, AnEntryMarksIt) {
  const Ledger ledger = GrownLedger();
  const auto& entries = ledger.entries();
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_TRUE(entries[3].is_growth);
  EXPECT_EQ(entries[3].learner, "a");
  EXPECT_EQ(entries[3].steps, 0u);
  EXPECT_EQ(entries[3].epsilon, entries[2].epsilon);
  EXPECT_EQ(entries[3].worst, entries[2].worst);
  EXPECT_EQ(entries[3].model_fingerprint, GrownPromise("a").model_fingerprint);
  EXPECT_EQ(entries[4].model_fingerprint, GrownPromise("a").model_fingerprint);
  EXPECT_EQ(ledger.Learners()[0].steps, 3u);
  const Status whole = VerifyChain(entries);
  EXPECT_TRUE(whole) << whole.error().message;
  for (const LedgerEntry& entry : entries) {
    const auto decoded = LedgerEntry::Decode(entry.Encode());
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->Encode(), entry.Encode());
    EXPECT_EQ(decoded->worst, entry.worst);
  }
}

TEST(GrowthLedger, TheLearnerIsChargedOnAndRestored) {
  const Ledger ledger = GrownLedger();
  // Offsets from 0 to 100 were used twice by this learner, those after once, with any model.
  EXPECT_DOUBLE_EQ(ledger.Learners()[0].epsilon, EpsilonOf(0.5));
  auto restored = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_TRUE(restored->Declare(GrownPromise("a")));
  EXPECT_FALSE(restored->Declare(PromiseOf("a")));
  AppendOne(*restored, 6, StepOf("a", 0, 100));
  EXPECT_DOUBLE_EQ(restored->Learners()[0].epsilon, EpsilonOf(0.75));
  EXPECT_EQ(restored->entries().size(), 6u);
  EXPECT_TRUE(VerifyChain(restored->entries()));
}

// Right after it, too, when its entry is the last.
TEST(GrowthLedger, IsRestoredWhereItIsTheLastEntry) {
  Ledger ledger;
  EXPECT_TRUE(ledger.Declare(PromiseOf("a")));
  AppendOne(ledger, 1, StepOf("a", 0, 100));
  TakeOverOne(ledger, 2, GrownPromise("a"));
  auto restored = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  ASSERT_TRUE(restored) << restored.error().message;
  TakeOverOne(*restored, 3, PromiseOf("a"));
  AppendOne(*restored, 4, StepOf("a", 0, 100));
  EXPECT_DOUBLE_EQ(restored->Learners()[0].epsilon, EpsilonOf(0.5));
  EXPECT_EQ(restored->entries().size(), 4u);
  EXPECT_TRUE(VerifyChain(restored->entries()));
}

TEST(GrowthLedger, OnlyTheModelMayBeAnother) {
  Ledger ledger;
  EXPECT_TRUE(ledger.Declare(PromiseOf("a")));
  AppendOne(ledger, 1, StepOf("a", 0, 100));
  Promise other = GrownPromise("a");
  other.delta = 1e-3;
  const Ledger::Heir heir{.promise = other};
  const auto refused = ledger.TakeOver(CommitSeq(2), 2000, {&heir, 1}, "test");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("delta was"));
  EXPECT_EQ(ledger.entries().size(), 1u);
  other = GrownPromise("a");
  other.epsilon = 3;  // a budget may change, as at any start
  TakeOverOne(ledger, 2, other);
}

TEST(GrowthLedger, WhatWasNeverChargedNeedsNoEntry) {
  Ledger ledger;
  EXPECT_TRUE(ledger.Declare(PromiseOf("a")));
  const Ledger::Heir grown{.promise = GrownPromise("a")};
  const auto added = ledger.TakeOver(CommitSeq(1), 1000, {&grown, 1}, "test");
  ASSERT_TRUE(added);
  EXPECT_TRUE(added->empty());
}

using Chain = std::vector<LedgerEntry>;

// Says of a chain that was changed, with all its links made anew, what is wrong with it.
std::string VerdictOn(Chain chain, void (*edit)(Chain&)) {
  edit(chain);
  const Status status = VerifyChain(Linked(std::move(chain)));
  return status ? "valid" : status.error().message;
}

TEST(GrowthLedger, ForgedOnesAreFound) {
  const auto entries = GrownLedger().entries();
  const auto with = [&](void (*edit)(Chain&)) { return VerdictOn(entries, edit); };
  EXPECT_EQ(with([](Chain&) {}), "valid");
  EXPECT_THAT(with([](Chain& c) { c.erase(c.begin() + 3); }),
              HasSubstr("the model has changed, and no entry says so"));
  EXPECT_THAT(with([](Chain& c) { c[3].steps = 1; }), HasSubstr("a growth with steps"));
  EXPECT_THAT(with([](Chain& c) { c[3].epsilon *= 1.01; }),
              HasSubstr("a growth that changes what was spent"));
  EXPECT_THAT(with([](Chain& c) { c[3].worst = c[0].worst; }),
              HasSubstr("a growth that changes what was spent"));
  EXPECT_THAT(with([](Chain& c) { c[3].delta = 1e-3; }), HasSubstr("the promise has changed"));
  EXPECT_THAT(with([](Chain& c) { c[3].charge.clip_gradient = 2; }),
              HasSubstr("steps that nothing paid for"));
  EXPECT_THAT(with([](Chain& c) { c.erase(c.begin(), c.begin() + 3); }),
              HasSubstr("steps that nothing paid for"));
  EXPECT_THAT(with([](Chain& c) { c[4].model_fingerprint = {7}; }),
              HasSubstr("the model has changed, and no entry says so"));
}

void CallOtherwise(Ledger& ledger, uint64_t commit, const std::string& before,
                   const std::string& now) {
  const Ledger::Heir heir{.promise = PromiseOf(now), .before = before};
  const auto added =
      ledger.TakeOver(CommitSeq(commit), static_cast<int64_t>(commit) * 1000, {&heir, 1}, "test");
  ASSERT_TRUE(added) << added.error().message;
}

// Learners a and b; a is called c from the middle on, and d later.
Ledger RenamedLedger() {
  Ledger ledger;
  for (const char* learner : {"a", "b"}) EXPECT_TRUE(ledger.Declare(PromiseOf(learner)));
  AppendOne(ledger, 1, StepOf("a", 0, 100));
  AppendOne(ledger, 2, StepOf("b", 0, 100));
  CallOtherwise(ledger, 3, "a", "c");
  AppendOne(ledger, 4, StepOf("c", 0, 100));
  CallOtherwise(ledger, 5, "c", "d");
  AppendOne(ledger, 6, StepOf("d", 0, 100));
  return ledger;
}

TEST(RenamedLearner, ItsAccountGoesOn) {
  // The same steps under one name.
  Ledger plain;
  for (const char* learner : {"a", "b"}) EXPECT_TRUE(plain.Declare(PromiseOf(learner)));
  for (const auto& [commit, learner] : {std::pair{1, "a"}, {2, "b"}, {4, "a"}, {6, "a"}})
    AppendOne(plain, static_cast<uint64_t>(commit), StepOf(learner, 0, 100));
  const Ledger ledger = RenamedLedger();
  const auto totals = ledger.Learners();
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].learner, "b");
  EXPECT_EQ(totals[1].learner, "d");
  EXPECT_EQ(totals[1].steps, 3u);
  EXPECT_DOUBLE_EQ(totals[1].epsilon, EpsilonOf(0.75));
  EXPECT_DOUBLE_EQ(totals[1].epsilon, plain.Learners()[0].epsilon);
  EXPECT_DOUBLE_EQ(ledger.Total().epsilon, plain.Total().epsilon);
  EXPECT_DOUBLE_EQ(*ledger.Total().advantage, *plain.Total().advantage);
  const Status whole = VerifyChain(ledger.entries());
  EXPECT_TRUE(whole) << whole.error().message;
  for (const LedgerEntry& entry : ledger.entries()) {
    const auto decoded = LedgerEntry::Decode(entry.Encode());
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->Encode(), entry.Encode());
    EXPECT_EQ(decoded->before, entry.before);
  }
  auto restored = Ledger::Restore(ledger.entries(), ledger.EncodeState());
  ASSERT_TRUE(restored) << restored.error().message;
  AppendOne(*restored, 7, StepOf("d", 0, 100));
  EXPECT_DOUBLE_EQ(restored->Learners()[1].epsilon, EpsilonOf(1.0));
  EXPECT_TRUE(VerifyChain(restored->entries()));
  // A reader has the entries alone.
  auto learners = ledger.Learners();
  LedgerTotal total = ledger.Total();
  for (LedgerTotal& one : learners) one.advantage.reset();
  AddAdvantages(ledger.entries(), &learners, &total);
  EXPECT_DOUBLE_EQ(*learners[1].advantage, *ledger.Learners()[1].advantage);
}

TEST(RenamedLearner, NoNameIsGivenTwice) {
  Ledger ledger = RenamedLedger();
  for (const char* old : {"a", "c"}) {
    const Status refused = ledger.Declare(PromiseOf(old));
    ASSERT_FALSE(refused) << old;
    EXPECT_THAT(refused.error().message, HasSubstr("it is called 'd' now"));
  }
  for (const char* taken : {"a", "b", "c"}) {
    const Ledger::Heir heir{.promise = PromiseOf(taken), .before = "d"};
    const auto refused = ledger.TakeOver(CommitSeq(9), 9000, {&heir, 1}, "test");
    ASSERT_FALSE(refused) << taken;
    EXPECT_THAT(refused.error().message, HasSubstr("a learner has or had that name"));
  }
  EXPECT_EQ(ledger.entries().size(), 6u);
}

TEST(RenamedLearner, ForgedOnesAreFound) {
  const auto entries = RenamedLedger().entries();
  const auto with = [&](void (*edit)(Chain&)) { return VerdictOn(entries, edit); };
  EXPECT_EQ(with([](Chain&) {}), "valid");
  // Two accounts that become one, an account that begins anew, a name out of nowhere.
  EXPECT_THAT(with([](Chain& c) { c[2].learner = "b"; }), HasSubstr("a name that was given up"));
  EXPECT_THAT(with([](Chain& c) { c[2].learner = "a"; }), HasSubstr("has or had that name"));
  EXPECT_THAT(with([](Chain& c) { c[3].learner = "a"; }), HasSubstr("a name that was given up"));
  EXPECT_THAT(with([](Chain& c) { c[2].before = "x"; }), HasSubstr("no learner was called 'x'"));
  EXPECT_THAT(with([](Chain& c) { c.erase(c.begin() + 4); }),
              HasSubstr("spent more than there was to spend"));
  // Two learners whose steps come one after the other, as if they had always been one.
  EXPECT_THAT(with([](Chain& c) {
                std::swap(c[0], c[1]);
                c[2].before = "a";
                c[2].learner = "b";
                c.resize(3);
              }),
              ::testing::Not("valid"));
  EXPECT_THAT(with([](Chain& c) { c[2].epsilon /= 2; }),
              HasSubstr("a growth that changes what was spent"));
  EXPECT_THAT(with([](Chain& c) { c[2].before = ""; }), HasSubstr("steps that nothing paid for"));
  EXPECT_THAT(with([](Chain& c) { c[3].before = "a"; }), HasSubstr("no growth"));
}

}  // namespace
}  // namespace tacit::privacy
