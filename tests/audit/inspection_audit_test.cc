// Inspections by noised counts, audited: an adversary knows each record but the canary's, and sees
// all that is released. What can be told from that is at most what the ledger was charged. Faults
// that are planted must be proved to cost more.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "audit/mu_bound.h"
#include "inspect/noised_counts.h"
#include "inspect/private_columns.h"
#include "inspect/private_findings.h"
#include "privacy/ledger.h"
#include "support/fixed_noise.h"
#include "support/process.h"
#include "support/silent_noise.h"
#include "support/temp_dir.h"
#include "wiring/restore/inspection.h"

namespace tacit::inspect {
namespace {

constexpr double kSigma = 1;
constexpr double kAlpha = 1e-9;
constexpr int kRuns = 6'000;

struct InspectionCase {
  privacy::Unit unit = privacy::Unit::kEvent;
  bool noised = true, charged = true;
  uint32_t read = 2;  // records of a user that are read; what is promised is 2
};

// Records of several users, of which the canary has five.
std::string LinesWith(bool canary) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += fmt::format("{{\"u\":\"u{}\",\"y\":{}}}\n", i, i % 2);
  for (int i = 0; i < 5; ++i)
    text += canary ? fmt::format("{{\"u\":\"canary\",\"y\":7,\"z\":{}}}\n", i) : "\n";
  return text;
}

// All counts of a world, weighted, before noise.
NoisedCounts CountsOfWorld(const InspectionCase& c, const test::TempDir& dir, bool canary) {
  // The canary of unit event is a record: the first of the five.
  std::string text = LinesWith(true);
  if (!canary && c.unit == privacy::Unit::kUser) text = LinesWith(false);
  if (!canary && c.unit == privacy::Unit::kEvent) {
    const size_t at = text.find("{\"u\":\"canary\"");
    text.erase(at, text.find('\n', at) - at);
  }
  test::WriteFile(dir / "log", text);
  PrivateLook look{.records = RecordsOfFiles({dir / "log"}),
                   .unit = c.unit,
                   .user = "/u",
                   .user_records = c.read};
  const auto raw = ReadPrivately(look, {.format = Format::kJson}, {"/u", "/y", "/z"});
  EXPECT_TRUE(raw);
  NoisedCounts counts(kSigma);
  AddSample(*raw, c.unit == privacy::Unit::kUser ? 2 : 1, &counts);
  return counts;
}

struct FoundInspection {
  double charged = 0;
  audit::MuBound bound;
};

FoundInspection AuditInspection(const InspectionCase& c) {
  const test::TempDir dir;
  const NoisedCounts with = CountsOfWorld(c, dir, true), without = CountsOfWorld(c, dir, false);
  // The best question there is: how far towards the canary's world what was seen lies.
  std::vector<double> towards = with.weighted();
  double norm = 0;
  for (size_t i = 0; i < towards.size(); ++i) {
    towards[i] -= without.weighted()[i];
    norm += towards[i] * towards[i];
  }
  EXPECT_GT(norm, 0);
  noise::FixedNoise drawn(9);
  noise::SilentNoise silent;
  noise::NoiseSource& source = c.noised ? static_cast<noise::NoiseSource&>(drawn) : silent;
  FoundInspection found;
  if (c.charged) {
    privacy::Ledger ledger;
    EXPECT_TRUE(ledger.Declare({.learner = "tacit.inspect", .epsilon = 100, .delta = 1e-6}));
    const privacy::CommitCharge charge{.learner = "tacit.inspect",
                                       .charge = wiring::InspectionCharge(kSigma),
                                       .steps = 1,
                                       .topic = {},
                                       .ranges = {}};
    ledger.Append(CommitSeq(1), 1, {&charge, 1}, {}, "audit");
    found.charged = std::sqrt(ledger.entries().back().worst.mu_squared);
  }
  const auto see = [&](const NoisedCounts& world) {
    NoisedCounts counts = world;
    counts.Release(source);
    double statistic = 0;
    for (size_t i = 0; i < towards.size(); ++i)
      if (towards[i] != 0) statistic += towards[i] * counts[i] * counts.weight(i);
    return statistic / std::sqrt(norm);
  };
  std::vector<double> seen_with, seen_without;
  for (int run = 0; run < kRuns / 10; ++run) {
    seen_with.push_back(see(with));
    seen_without.push_back(see(without));
  }
  const audit::Threshold threshold = audit::ChooseThreshold(seen_without, seen_with);
  audit::Tally tally_with, tally_without;
  for (int run = 0; run < kRuns; ++run) {
    tally_with.Add(see(with), threshold);
    tally_without.Add(see(without), threshold);
  }
  found.bound = audit::BoundMu(tally_without, tally_with, kAlpha);
  return found;
}

TEST(InspectionAuditTest, TheRightOneCostsWhatItSays) {
  for (const privacy::Unit unit : {privacy::Unit::kEvent, privacy::Unit::kUser}) {
    const FoundInspection found = AuditInspection({.unit = unit});
    EXPECT_NEAR(found.charged, 1 / kSigma, 1e-9);
    EXPECT_LE(found.bound.lower, found.charged);
    EXPECT_GT(found.bound.shift, 0.4 * found.charged) << "the canary is not hard to see";
  }
}

TEST(InspectionAuditTest, OneWithoutNoiseIsCaught) {
  const FoundInspection found = AuditInspection({.noised = false});
  EXPECT_GT(found.bound.lower, 2 * found.charged);
}

TEST(InspectionAuditTest, OneThatIsNotChargedIsCaught) {
  const FoundInspection found = AuditInspection({.charged = false});
  EXPECT_EQ(found.charged, 0);
  EXPECT_GT(found.bound.lower, 0);
}

TEST(InspectionAuditTest, OneThatDoesNotBoundAUsersRecordsIsCaught) {
  const FoundInspection found = AuditInspection({.unit = privacy::Unit::kUser, .read = 4096});
  EXPECT_GT(found.bound.lower, found.charged);
}

// Names that one record alone has: shown by the product in no run, and by a threshold of one record
// in half of them.
double BoundOfNames(double threshold_or_product) {
  const test::TempDir dir;
  noise::FixedNoise noise(5);
  audit::Tally with, without;
  const audit::Threshold shown{.at = 0.5};
  for (const bool canary : {true, false}) {
    const std::string text = LinesWith(false) + (canary ? "{\"anna\":1}\n" : "\n");
    test::WriteFile(dir / "log", text);
    const auto raw = CountFields({.records = RecordsOfFiles({dir / "log"})});
    EXPECT_TRUE(raw);
    for (int run = 0; run < kRuns; ++run) {
      std::vector<double> counts;
      for (const auto& [name, count] : *raw) counts.push_back(count);
      NoisedCounts noised(kSigma);
      const size_t at = noised.Add(counts, std::sqrt(double{kFieldsOfRecordMost}));
      noised.Release(noise);
      auto fields = *raw;
      for (size_t i = 0; i < fields.size(); ++i) fields[i].second = noised[at + i];
      const double threshold =
          threshold_or_product > 0 ? threshold_or_product : NameThreshold(1, noised.deviation(at));
      const auto names = NamesAbove(fields, threshold);
      const bool seen = std::ranges::find(names, "/anna") != names.end();
      (canary ? with : without).Add(seen ? 1 : 0, shown);
    }
  }
  return audit::BoundMu(without, with, kAlpha).lower;
}

TEST(InspectionAuditTest, AThresholdThatIsMissingIsCaught) {
  EXPECT_LE(BoundOfNames(0), 1 / kSigma) << "the product's";
  EXPECT_GT(BoundOfNames(1), 2 / kSigma) << "planted: a name is shown from one record on";
}

}  // namespace
}  // namespace tacit::inspect
