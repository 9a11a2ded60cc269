#include "store/witness/price_tally.h"

#include <gtest/gtest.h>

#include <random>

namespace tacit::store {
namespace {

using Priced = WitnessedLearner::Priced;

// Entries as a ledger has them: only a learner's last one grows.
class GrowingEntries {
 public:
  // Adds steps, and returns the first entry that is new or has changed.
  size_t Add(const std::string& learner, double noise, uint64_t steps) {
    for (size_t i = entries_.size(); i-- > 0;) {
      if (entries_[i].learner != learner) continue;
      if (entries_[i].charge.noise_multiplier != noise || !entries_[i].before.empty()) break;
      entries_[i].steps += steps;
      return i;
    }
    privacy::LedgerEntry entry;
    entry.learner = learner;
    entry.charge.noise_multiplier = noise;
    entry.steps = steps;
    entries_.push_back(entry);
    return entries_.size() - 1;
  }
  size_t Rename(const std::string& before, const std::string& now) {
    privacy::LedgerEntry entry;
    entry.is_growth = true;
    entry.before = before;
    entry.learner = now;
    entries_.push_back(entry);
    return entries_.size() - 1;
  }
  const std::vector<privacy::LedgerEntry>& entries() const { return entries_; }

 private:
  std::vector<privacy::LedgerEntry> entries_;
};

WitnessedLearner::Charged At(double noise) {
  WitnessedLearner::Charged charged;
  charged.charge.noise_multiplier = noise;
  return charged;
}

TEST(PriceTallyTest, CountsWhatAllEntriesAddUpToWhicheverWayItGoesThere) {
  std::mt19937_64 random(7);
  GrowingEntries chain;
  PriceTally tally;
  std::map<std::string, std::map<double, uint64_t>> naive;
  std::vector<std::string> names{"a", "b", "c"};
  for (int round = 0; round < 3000; ++round) {
    std::string& name = names[random() % names.size()];
    size_t first;
    if (round % 500 == 499) {
      const std::string before = std::exchange(name, name + "'");
      naive[name] = std::exchange(naive[before], {});
      first = chain.Rename(before, name);
    } else {
      const double noise = 1 + static_cast<double>(random() % 5);
      const uint64_t steps = random() % 4;
      first = chain.Add(name, noise, steps);
      if (steps > 0) naive[name][noise] += steps;
    }
    tally.Count(chain.entries(), first);
  }
  const PriceTally at_once(chain.entries());
  for (const std::string& name : names) {
    ASSERT_EQ(tally.Of(name).size(), naive[name].size());
    ASSERT_EQ(at_once.Of(name).size(), naive[name].size());
    for (const auto& [noise, steps] : naive[name]) {
      EXPECT_EQ(tally.StepsAt(name, At(noise)), steps);
      EXPECT_EQ(at_once.StepsAt(name, At(noise)), steps);
    }
  }
  EXPECT_TRUE(tally.Of("a").empty()) << "it has another name";
  EXPECT_EQ(tally.StepsAt("nobody", At(1)), 0u);
}

TEST(PriceTallyTest, WhateverElseIsPromisedIsAnotherPrice) {
  privacy::LedgerEntry event, user;
  event.learner = user.learner = "a";
  event.steps = 3, user.steps = 4;
  user.bounds.allowance = 9;
  const PriceTally tally(std::vector{event, user});
  ASSERT_EQ(tally.Of("a").size(), 2u);
  EXPECT_EQ(tally.StepsAt("a", ChargedIn(event)), 3u);
  EXPECT_EQ(tally.StepsAt("a", ChargedIn(user)), 4u);
}

// A record has no room for ever more prices: it has those that were charged last.
TEST(PriceTallyTest, AWitnessKnowsTheSixtyFourPricesThatWereChargedLast) {
  privacy::Ledger ledger;
  ASSERT_TRUE(ledger.Declare({.learner = "a", .epsilon = 8, .delta = 1e-6}));
  std::vector<LearnerRecord> records(1);
  records[0].name = "a";
  const std::vector<std::string> positions{""};
  const auto prices = [&] {
    return WitnessLearners(records, positions, ledger, PriceTally(ledger.entries()))[0].prices;
  };
  EXPECT_TRUE(prices().empty());
  privacy::CommitCharge charge{
      .learner = "a", .charge = {}, .steps = 1, .topic = "t", .ranges = {{0, 0, 1}}};
  charge.charge.mechanism = privacy::MechanismKind::kDpSgd;
  uint64_t commits = 0;
  const auto add = [&](int price) {
    charge.charge.noise_multiplier = 1 + price;
    ledger.Append(CommitSeq(++commits), 0, {&charge, 1}, {}, "");
  };
  for (int price = 1; price <= 64; ++price) add(price);
  add(1);
  EXPECT_EQ(prices().size(), 64u);
  EXPECT_EQ(prices().back().charged.charge.noise_multiplier, 2);
  EXPECT_EQ(prices().back().steps, 2u);
  add(65);
  ASSERT_EQ(prices().size(), 64u);
  EXPECT_EQ(prices().front().charged.charge.noise_multiplier, 4) << "3 was charged before all";
  EXPECT_EQ(prices().back().charged.charge.noise_multiplier, 66);
}

}  // namespace
}  // namespace tacit::store
