#include "audit/audit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "audit/cases.h"
#include "audit/product.h"
#include "privacy/gaussian.h"
#include "support/statistics.h"

namespace tacit::audit {
namespace {

// Seeds are fixed, so that a machine's run repeats another's; tests/campaign/audit takes new ones.
// Under the address sanitizer too few runs to prove anything: there it is memory that is tested.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kProves = false;
constexpr AuditOptions kRight = {.runs = 10'000, .runs_of_choice = 1000};
constexpr AuditOptions kFaulty = kRight;
#else
constexpr bool kProves = true;
constexpr AuditOptions kRight = {};
constexpr AuditOptions kFaulty = {.runs = 200'000, .runs_of_choice = 20'000};
#endif

std::string TestName(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

class RightMechanism : public ::testing::TestWithParam<size_t> {};

TEST_P(RightMechanism, StaysUnderItsChargeAndReachesIt) {
  const Case audited = RightCases()[GetParam()];
  const Finding finding = RunAudit(audited, kRight);
  std::puts(Describe(audited, finding).c_str());
  EXPECT_LE(privacy::GaussianEpsilon(finding.charged_mu, Delta{1e-5}).value, 1 + 1e-9);
  EXPECT_FALSE(finding.Exceeds()) << Describe(audited, finding);
  EXPECT_TRUE(finding.Reaches(0.8) || !kProves) << Describe(audited, finding);
}

INSTANTIATE_TEST_SUITE_P(Audit, RightMechanism, ::testing::Range(size_t{0}, RightCases().size()),
                         [](const auto& info) { return TestName(RightCases()[info.param].name); });

class FaultyMechanism : public ::testing::TestWithParam<size_t> {};

TEST_P(FaultyMechanism, IsFoundOut) {
  const PlantedFault fault = PlantedFaults()[GetParam()];
  const Finding finding = RunAudit(fault.audited, kFaulty);
  std::puts(Describe(fault.audited, finding).c_str());
  if (!kProves) return;
  EXPECT_EQ(finding.Exceeds(), fault.exceeds) << Describe(fault.audited, finding);
  if (!fault.exceeds) {
    EXPECT_FALSE(finding.Reaches(0.8)) << Describe(fault.audited, finding);
  }
}

INSTANTIATE_TEST_SUITE_P(Audit, FaultyMechanism,
                         ::testing::Range(size_t{0}, PlantedFaults().size()), [](const auto& info) {
                           return TestName(PlantedFaults()[info.param].audited.name);
                         });

// Sums that the click model makes of units with several records. That no noise hides anything there
// is measured before it is added: a unit moves the sum by a clip at most.
class RightProduct : public ::testing::TestWithParam<size_t> {};

TEST_P(RightProduct, StaysUnderItsCharge) {
  const ProductCase audited = RightProducts()[GetParam()];
  const ProductFinding finding = AuditProduct(audited, kFaulty);
  std::puts(Describe(audited, finding).c_str());
  EXPECT_FALSE(finding.Exceeds()) << Describe(audited, finding);
  EXPECT_LE(finding.moved, 1) << Describe(audited, finding);
  if (audited.reaches) {
    EXPECT_GT(finding.moved, 0.95) << Describe(audited, finding);
  }
}

INSTANTIATE_TEST_SUITE_P(Audit, RightProduct, ::testing::Range(size_t{0}, RightProducts().size()),
                         [](const auto& info) {
                           return TestName(RightProducts()[info.param].name);
                         });

class FaultyProduct : public ::testing::TestWithParam<size_t> {};

TEST_P(FaultyProduct, IsFoundOut) {
  const ProductCase audited = FaultyProducts()[GetParam()];
  const ProductFinding finding = AuditProduct(audited, kFaulty);
  std::puts(Describe(audited, finding).c_str());
  EXPECT_GT(finding.moved, 1) << Describe(audited, finding);
  EXPECT_TRUE(finding.Exceeds() || !kProves || !audited.proves) << Describe(audited, finding);
}

INSTANTIATE_TEST_SUITE_P(Audit, FaultyProduct, ::testing::Range(size_t{0}, FaultyProducts().size()),
                         [](const auto& info) {
                           return TestName(FaultyProducts()[info.param].name);
                         });

}  // namespace
}  // namespace tacit::audit
