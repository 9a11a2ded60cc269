// The audit of a period's noised sums (README.md): releases stay under their charge and reach it,
// and each planted fault is found.
#include <gtest/gtest.h>

#include <cstdio>

#include "audit/sums.h"

namespace tacit::audit {
namespace {

// As in audit_test.cc.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kProves = false;
constexpr AuditOptions kSumsRuns = {.runs = 1000, .runs_of_choice = 300};
constexpr AuditOptions kLearnerRuns = kSumsRuns;
#else
constexpr bool kProves = true;
constexpr AuditOptions kSumsRuns = {.runs = 100'000, .runs_of_choice = 10'000};
constexpr AuditOptions kLearnerRuns = {.runs = 60'000, .runs_of_choice = 6'000};
#endif

void ExpectUnderTheCharge(const SumsCase& audited, const AuditOptions& options) {
  const SumsFinding finding = AuditSums(audited, options);
  std::puts(Describe(audited, finding).c_str());
  EXPECT_FALSE(finding.Exceeds()) << Describe(audited, finding);
  EXPECT_TRUE(finding.Reaches(0.85) || !audited.reaches || !kProves) << Describe(audited, finding);
}

void ExpectFound(const FaultySums& fault, const AuditOptions& options) {
  const SumsFinding finding = AuditSums(fault.audited, options);
  std::puts(Describe(fault.audited, finding).c_str());
  if (!kProves) return;
  EXPECT_EQ(finding.Exceeds(), fault.exceeds) << Describe(fault.audited, finding);
  if (!fault.exceeds) {
    EXPECT_FALSE(finding.Reaches(0.85)) << Describe(fault.audited, finding);
  }
}

TEST(SumsAudit, ReleasesStayUnderTheirCharge) {
  for (const SumsCase& audited : RightSums()) ExpectUnderTheCharge(audited, kSumsRuns);
}

TEST(SumsAudit, FaultyReleasesAreFound) {
  for (const FaultySums& fault : PlantedSums()) ExpectFound(fault, kSumsRuns);
}

TEST(SumsAudit, TheLearnerStaysUnderItsCharge) {
  for (const SumsCase& audited : RightLearners()) ExpectUnderTheCharge(audited, kLearnerRuns);
}

TEST(SumsAudit, FaultyLearnersAreFound) {
  for (const FaultySums& fault : PlantedLearners()) ExpectFound(fault, kLearnerRuns);
}

}  // namespace
}  // namespace tacit::audit
