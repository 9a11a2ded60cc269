#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledger_fixture.h"
#include "privacy/gaussian.h"
#include "privacy/ledger.h"

namespace tacit::privacy {
namespace {

using ::testing::HasSubstr;

// Two learners, five entries: a, b, a again, b again, a again.
std::vector<LedgerEntry> SomeChain() {
  Ledger ledger;
  for (const char* learner : {"a", "b"}) EXPECT_TRUE(ledger.Declare(PromiseOf(learner)));
  uint64_t commit = 0;
  for (const char* learner : {"a", "b", "a", "b", "a"})
    AppendOne(ledger, ++commit, StepOf(learner, 0, 100));
  EXPECT_EQ(ledger.entries().size(), 5u);
  return ledger.entries();
}

// Makes heads and links right again, as an editor of the chain would.
void Relink(std::vector<LedgerEntry>& entries) {
  Digest head{};
  for (LedgerEntry& entry : entries) {
    entry.previous_head = head;
    entry.head = head = entry.ComputeHead();
  }
}

TEST(LedgerEntry, EncodingRoundTrips) {
  for (const LedgerEntry& entry : SomeChain()) {
    auto decoded = LedgerEntry::Decode(entry.Encode());
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->Encode(), entry.Encode());
    EXPECT_EQ(decoded->learner, entry.learner);
    EXPECT_EQ(decoded->charge, entry.charge);
    EXPECT_EQ(decoded->head, entry.head);
    EXPECT_EQ(decoded->worst, entry.worst);
  }
}

TEST(LedgerEntry, DecodeRefusesEveryOtherLength) {
  const std::string bytes = SomeChain()[0].Encode();
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(LedgerEntry::Decode(std::string_view(bytes).substr(0, n)));
  EXPECT_FALSE(LedgerEntry::Decode(bytes + '\0'));
}

TEST(VerifyChain, AcceptsAChainAndAnEmptyOne) {
  const Status status = VerifyChain(SomeChain());
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_TRUE(VerifyChain({}));
}

TEST(VerifyChain, FindsEveryFlippedBit) {
  const auto entries = SomeChain();
  for (size_t at : {0u, 2u, 4u}) {
    const std::string bytes = entries[at].Encode();
    for (size_t i = 0; i < bytes.size() * 8; ++i) {
      std::string broken = bytes;
      broken[i / 8] ^= static_cast<char>(1 << i % 8);
      auto decoded = LedgerEntry::Decode(broken);
      if (!decoded) continue;
      auto chain = entries;
      chain[at] = *decoded;
      EXPECT_FALSE(VerifyChain(chain)) << "entry " << at << " bit " << i;
    }
  }
}

struct Edit {
  const char* what;
  void (*apply)(LedgerEntry&);
};

const Edit kEdits[] = {
    {"index", [](LedgerEntry& e) { ++e.index; }},
    {"learner", [](LedgerEntry& e) { e.learner += "x"; }},
    {"mechanism", [](LedgerEntry& e) { e.charge.mechanism = MechanismKind::kDpSgd; }},
    {"noise_multiplier", [](LedgerEntry& e) { e.charge.noise_multiplier += 0.01; }},
    {"sigma_selection", [](LedgerEntry& e) { e.charge.sigma_selection += 0.01; }},
    {"sigma_gradient", [](LedgerEntry& e) { e.charge.sigma_gradient += 0.01; }},
    {"clip_selection", [](LedgerEntry& e) { e.charge.clip_selection += 0.01; }},
    {"clip_gradient", [](LedgerEntry& e) { e.charge.clip_gradient += 0.01; }},
    {"sigma_clip", [](LedgerEntry& e) { e.charge.sigma_clip += 0.01; }},
    {"zcdp_rho", [](LedgerEntry& e) { e.charge.zcdp_rho += 0.01; }},
    {"unit", [](LedgerEntry& e) { e.unit = Unit::kUser; }},
    {"adjacency", [](LedgerEntry& e) { e.adjacency = Adjacency::kAddRemove; }},
    {"participation", [](LedgerEntry& e) { e.participation = ParticipationMode::kPoisson; }},
    {"sampling_rate", [](LedgerEntry& e) { e.charge.sampling_rate = 0.5; }},
    {"steps", [](LedgerEntry& e) { ++e.steps; }},
    {"first_commit", [](LedgerEntry& e) { --e.first_commit; }},
    {"last_commit", [](LedgerEntry& e) { ++e.last_commit; }},
    {"first_time_ms", [](LedgerEntry& e) { --e.first_time_ms; }},
    {"last_time_ms", [](LedgerEntry& e) { ++e.last_time_ms; }},
    {"delta", [](LedgerEntry& e) { e.delta *= 1.1; }},
    {"worst", [](LedgerEntry& e) { e.worst.mu_squared *= 0.9; }},
    {"epsilon", [](LedgerEntry& e) { e.epsilon *= 0.999; }},
    {"model_fingerprint", [](LedgerEntry& e) { e.model_fingerprint[5] ^= 1; }},
    {"code_version", [](LedgerEntry& e) { e.code_version = "other"; }},
    {"ranges_digest", [](LedgerEntry& e) { e.ranges_digest[5] ^= 1; }},
    {"previous_head", [](LedgerEntry& e) { e.previous_head[5] ^= 1; }},
    {"head", [](LedgerEntry& e) { e.head[5] ^= 1; }},
};

TEST(VerifyChain, FindsAnEditOfEveryField) {
  for (const Edit& edit : kEdits) {
    auto chain = SomeChain();
    edit.apply(chain[2]);
    EXPECT_FALSE(VerifyChain(chain)) << edit.what;
    // The editor also corrects this entry's head: the next entry's link gives it away.
    if (std::string_view(edit.what) == "head") continue;
    chain[2].head = chain[2].ComputeHead();
    EXPECT_FALSE(VerifyChain(chain)) << edit.what;
  }
}

// Costs are recomputed: with all heads made right, a chain that claims less is still refused.
TEST(VerifyChain, FindsCostsThatDoNotAddUp) {
  const Edit edits[] = {
      {"epsilon", [](LedgerEntry& e) { e.epsilon *= 0.999; }},
      {"worst", [](LedgerEntry& e) { e.worst.mu_squared *= 0.9; }},
      {"worst and epsilon",
       [](LedgerEntry& e) {
         e.worst.mu_squared = 0.2;
         e.epsilon = GaussianEpsilon(std::sqrt(0.2), Delta(e.delta)).value;
       }},
      {"more than was spent",
       [](LedgerEntry& e) {
         e.worst.mu_squared = 0.75;
         e.epsilon = GaussianEpsilon(std::sqrt(0.75), Delta(e.delta)).value;
       }},
      {"delta", [](LedgerEntry& e) { e.delta *= 10; }},
      {"more noise than its parts", [](LedgerEntry& e) { e.charge.noise_multiplier = 3; }},
      {"a charge of nothing", [](LedgerEntry& e) { e.charge.noise_multiplier = INFINITY; }},
      {"no steps", [](LedgerEntry& e) { e.steps = 0; }},
      {"unit", [](LedgerEntry& e) { e.unit = Unit::kUser; }},
      {"fingerprint", [](LedgerEntry& e) { e.model_fingerprint[0] ^= 1; }},
      {"commits", [](LedgerEntry& e) { e.first_commit = e.last_commit = 1; }},
      {"times", [](LedgerEntry& e) { e.first_time_ms = e.last_time_ms = 1; }},
      {"a time before 1970", [](LedgerEntry& e) { e.first_time_ms = -1; }},
      {"an end before its beginning", [](LedgerEntry& e) { e.last_time_ms = e.first_time_ms - 1; }},
      {"a rho that was never charged", [](LedgerEntry& e) { e.worst.rho = 0.01; }},
      {"a rho below 0", [](LedgerEntry& e) { e.charge.zcdp_rho = -1; }},
      {"a step that costs more than the worst unit", [](LedgerEntry& e) { e.charge.zcdp_rho = 9; }},
      {"an infinite rho", [](LedgerEntry& e) { e.charge.zcdp_rho = INFINITY; }},
      {"index", [](LedgerEntry& e) { e.index = 7; }},
  };
  for (const Edit& edit : edits) {
    auto chain = SomeChain();
    edit.apply(chain[3]);
    Relink(chain);
    const Status status = VerifyChain(chain);
    ASSERT_FALSE(status) << edit.what;
    EXPECT_THAT(status.error().message, HasSubstr("ledger entry 3")) << edit.what;
  }
  auto untouched = SomeChain();
  Relink(untouched);
  EXPECT_TRUE(VerifyChain(untouched));
}

TEST(VerifyChain, FindsMissingAndReorderedEntries) {
  for (size_t gone = 0; gone < 4; ++gone) {
    auto chain = SomeChain();
    chain.erase(chain.begin() + static_cast<ptrdiff_t>(gone));
    EXPECT_FALSE(VerifyChain(chain)) << gone;
  }
  auto chain = SomeChain();
  std::swap(chain[1], chain[2]);
  EXPECT_FALSE(VerifyChain(chain));
  // An entry of learner b left out and everything linked anew: its next one costs too much.
  chain = SomeChain();
  chain.erase(chain.begin() + 1);
  for (uint64_t i = 0; i < chain.size(); ++i) chain[i].index = i;
  Relink(chain);
  EXPECT_FALSE(VerifyChain(chain));
}

}  // namespace
}  // namespace tacit::privacy
