// The audit of a learner whose records draw their steps (README.md): a period stays under its bill
// and comes near it, and each planted fault is found.
#include <gtest/gtest.h>

#include <cstdio>

#include "audit/held.h"

namespace tacit::audit {
namespace {

// As in audit_test.cc.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kProves = false;
#else
constexpr bool kProves = true;
#endif

HeldFinding Find(const HeldCase& audited) {
  const uint64_t runs = kProves ? audited.runs : 1000;
  const HeldFinding finding =
      AuditHeld(audited, {.runs = runs, .runs_of_choice = runs / 5, .alpha = 1e-8});
  std::puts(Describe(audited, finding).c_str());
  return finding;
}

TEST(HeldAudit, PeriodsStayUnderTheirBillAndComeNearIt) {
  for (const HeldCase& audited : RightPeriods()) {
    const HeldFinding finding = Find(audited);
    ASSERT_EQ(finding.bill.size(), 1u);
    EXPECT_EQ(finding.bill[0].event,
              privacy::Event::Allocation(audited.setting.sigma, audited.setting.block_steps));
    EXPECT_EQ(finding.bill[0].count, audited.setting.blocks);
    EXPECT_FALSE(finding.Exceeds()) << Describe(audited, finding);
    EXPECT_TRUE(finding.Reaches(0.85) || !kProves) << Describe(audited, finding);
  }
}

TEST(HeldAudit, FaultyPeriodsAreFound) {
  for (const HeldCase& fault : PlantedPeriods()) {
    const HeldFinding finding = Find(fault);
    EXPECT_TRUE(finding.Exceeds() || !kProves) << Describe(fault, finding);
  }
}

}  // namespace
}  // namespace tacit::audit
