// The processor's engine under the audit of engines, which shows that the audit itself is right.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>

#include "audit/engine.h"
#include "train/host_click_engine.h"

namespace tacit::audit {
namespace {

// Under the address sanitizer too few runs to prove anything: there it is memory that is tested.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kProvesOfEngines = false;
constexpr EngineAuditOptions kEngineRuns = {.canaries = 32, .runs = 200, .runs_of_choice = 100};
#else
constexpr bool kProvesOfEngines = true;
constexpr EngineAuditOptions kEngineRuns = {.mu = 1, .runs = 100'000, .runs_of_choice = 10'000};
#endif

std::string EngineTestName(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

// An engine, and the arithmetic under it.
class HostEngineAudit : public ::testing::Test {
 protected:
  Finding Audit(const EngineCase& audited) {
    const Finding finding =
        AuditEngine(audited, kEngineRuns, [&](const EngineParts& parts, const EngineCase&) {
          return train::MakeHostClickEngine(parts.options, parts.mechanism, parts.noise, *backend_,
                                            parts.rows, parts.dense);
        });
    std::puts(Describe(audited, finding).c_str());
    return finding;
  }

 private:
  const std::unique_ptr<ops::Backend> backend_ = ops::MakeReferenceBackend();
};

class RightHostEngine : public HostEngineAudit, public ::testing::WithParamInterface<size_t> {};

TEST_P(RightHostEngine, StaysUnderItsChargeAndReachesIt) {
  const EngineCase audited = RightEngineCases()[GetParam()];
  const Finding finding = Audit(audited);
  EXPECT_NEAR(finding.charged_mu, kEngineRuns.mu, 1e-9);
  EXPECT_FALSE(finding.Exceeds()) << Describe(audited, finding);
  EXPECT_TRUE(finding.Reaches(0.8) || !kProvesOfEngines) << Describe(audited, finding);
}

INSTANTIATE_TEST_SUITE_P(Audit, RightHostEngine,
                         ::testing::Range(size_t{0}, RightEngineCases().size()),
                         [](const auto& info) {
                           return EngineTestName(RightEngineCases()[info.param].name);
                         });

TEST_F(HostEngineAudit, FindsOutWhatIsWrong) {
  for (const EngineCase& audited : FaultyEngineCases()) {
    // It draws its noise from the source itself, and has no key.
    if (audited.fault == EngineFault::kSameKey) continue;
    const Finding finding = Audit(audited);
    EXPECT_TRUE(finding.Exceeds() || !kProvesOfEngines) << Describe(audited, finding);
  }
}

}  // namespace
}  // namespace tacit::audit
