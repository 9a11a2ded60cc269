// The metric of the day on which a budget runs out, against the day by a closed form.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <mutex>

#include "daemon/budget_outlook.h"
#include "privacy/gaussian.h"
#include "support/eventually.h"

namespace tacit {
namespace {

constexpr double kDayMs = 86400e3;
constexpr double kSigma = 4;
constexpr int kPassesMade = 10;

// A commit of nothing but a ledger.
class LedgerSnapshot final : public store::Snapshot {
 public:
  LedgerSnapshot(const privacy::Ledger& ledger, uint64_t version)
      : version_(version), learners_(ledger.Learners()), total_(ledger.Total()) {
    for (const auto& entry : ledger.entries()) entries_.push_back(entry.Encode());
  }
  CommitSeq version() const override { return CommitSeq(version_); }
  const Digest& head() const override { return head_; }
  std::string lineage() const override { return ""; }
  const std::vector<privacy::LedgerTotal>& learners() const override { return learners_; }
  const privacy::LedgerTotal& total() const override { return total_; }
  uint64_t ledger_entries() const override { return entries_.size(); }
  // One at a time, so that pages are put together.
  Result<std::vector<std::string>> LedgerEntries(uint64_t from, uint64_t) const override {
    return std::vector<std::string>{entries_.at(from)};
  }
  std::shared_ptr<const store::DenseState> Dense(LearnerIndex) const override { return nullptr; }
  Status Rows(LearnerIndex, std::span<const uint64_t>, std::span<float>) const override {
    return {};
  }

 private:
  uint64_t version_;
  Digest head_{};
  std::vector<privacy::LedgerTotal> learners_;
  privacy::LedgerTotal total_;
  std::vector<std::string> entries_;
};

// One learner; each pass over the same records, one a day, is a step of mu 1 / kSigma.
class OutlookTest : public testing::Test {
 protected:
  void Learn(int passes, double epsilon) {
    privacy::Ledger ledger;
    ASSERT_TRUE(ledger.Declare({.learner = "ctr", .epsilon = 100, .delta = 1e-6}));
    const privacy::Charge charge{.mechanism = privacy::MechanismKind::kDpSgd,
                                 .noise_multiplier = kSigma,
                                 .sigma_gradient = kSigma};
    for (int pass = 0; pass < passes; ++pass)
      ledger.Append(CommitSeq(static_cast<uint64_t>(pass) + 1), static_cast<int64_t>(kDayMs * pass),
                    std::vector<privacy::CommitCharge>{{.learner = "ctr",
                                                        .charge = charge,
                                                        .steps = 1,
                                                        .topic = "log",
                                                        .ranges = {{0, 0, 1000}}}},
                    {}, "test");
    wiring::Assembly assembly;
    assembly.learners.emplace_back();
    assembly.learners[0].id = "ctr";
    assembly.learners[0].promise = {.learner = "ctr", .epsilon = epsilon, .delta = 1e-6};
    assembly.config.learners.emplace_back();
    assembly.config.learners[0].id = "ctr";
    assembly.config.learners[0].privacy.epsilon = epsilon;
    assembly.config.learners[0].participation.max_participations = most_;
    const auto snapshot =
        std::make_shared<const LedgerSnapshot>(ledger, static_cast<uint64_t>(passes));
    looked_ = std::make_unique<daemon::BudgetOutlook>(
        assembly, [snapshot] { return snapshot; }, registry_);
  }
  double RunsOut() const {
    const std::string page = registry_.Scrape(metrics::Audience::kPublic);
    const std::string name = "\ntacit_privacy_budget_runs_out_timestamp_seconds{learner=\"ctr\"} ";
    const size_t at = page.find(name);
    return at == std::string::npos ? -1 : std::strtod(&page[at + name.size()], nullptr);
  }

  metrics::Registry registry_;
  std::unique_ptr<daemon::BudgetOutlook> looked_;
  uint32_t most_ = 100'000;
};

TEST_F(OutlookTest, TheDayIsThatOfTheClosedForm) {
  constexpr double kEpsilon = 8;
  Learn(kPassesMade, kEpsilon);
  ASSERT_TRUE(test::Eventually("it has looked", [&] { return !std::isnan(RunsOut()); }));
  // The budget has room for this many passes; the next one begins a day after the last of them.
  const double passes = std::pow(privacy::GaussianMu(Epsilon(kEpsilon), Delta(1e-6)) * kSigma, 2);
  EXPECT_GT(passes, 2 * kPassesMade);
  EXPECT_NEAR(RunsOut() * 1000 / kDayMs, passes, 1.5);
}

TEST_F(OutlookTest, WhatHasRunOutWasAtTheLastCommit) {
  Learn(kPassesMade, privacy::GaussianEpsilon(std::sqrt(10.5) / kSigma, Delta(1e-6)).value);
  ASSERT_TRUE(test::Eventually("it has looked", [&] { return !std::isnan(RunsOut()); }));
  EXPECT_NEAR(RunsOut() * 1000 / kDayMs, kPassesMade - 1, 1.5);
}

TEST_F(OutlookTest, WithinWhatTheConfigurationAllowsThereIsNoEnd) {
  most_ = 20;
  Learn(kPassesMade, 8);
  ASSERT_TRUE(test::Eventually("it has looked", [&] { return std::isinf(RunsOut()); }));
}

TEST_F(OutlookTest, BeforeTheFirstCommitNothingCanBeSaid) {
  Learn(0, 8);
  EXPECT_TRUE(std::isnan(RunsOut()));
}

}  // namespace
}  // namespace tacit
