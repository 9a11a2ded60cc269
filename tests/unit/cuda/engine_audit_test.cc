// The device's engine under the audit of tests/audit: what it releases costs what is charged for
// it, and no more.
#include "unit/cuda/engine_audit.h"

#include <cctype>

namespace tacit::cuda::testing {
namespace {

using audit::EngineCase;
using audit::Finding;

class RightDeviceEngine : public DeviceEngineAudit, public ::testing::WithParamInterface<size_t> {};

TEST_P(RightDeviceEngine, StaysUnderItsChargeAndReachesIt) {
  if (device_ == nullptr) return;
  const EngineCase audited = audit::RightEngineCases()[GetParam()];
  const Finding finding = Audit(audited, AuditRunsOf(audited));
  EXPECT_NEAR(finding.charged_mu, kAuditRuns.mu, 1e-9);
  EXPECT_FALSE(finding.Exceeds()) << Describe(audited, finding);
  EXPECT_TRUE(finding.Reaches(0.8) || !kAuditProves) << Describe(audited, finding);
}

INSTANTIATE_TEST_SUITE_P(Audit, RightDeviceEngine,
                         ::testing::Range(size_t{0}, audit::RightEngineCases().size()),
                         [](const auto& info) {
                           std::string name = audit::RightEngineCases()[info.param].name;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

class FaultyDeviceEngine : public DeviceEngineAudit {};

TEST_F(FaultyDeviceEngine, IsFoundOut) {
  if (device_ == nullptr) return;
  for (const EngineCase& audited : audit::FaultyEngineCases()) {
    const Finding finding = Audit(audited, kFaultRuns);
    EXPECT_TRUE(finding.Exceeds() || !kAuditProves) << Describe(audited, finding);
  }
}

}  // namespace
}  // namespace tacit::cuda::testing
