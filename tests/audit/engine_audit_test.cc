// The processor's engine under the audit of engines, which shows that the audit itself is right.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <cstdio>

#include "audit/engine.h"
#include "audit/engine_setting.h"
#include "model/sum_blocks.h"
#include "train/click/host_click_engine.h"

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

// Runs are independent because two canaries have hardly anything in common: each adversary looks at
// noise that no other looks at. Where any two of a step's 128 runs have a correlation of 5e-5, the
// standard deviation of their mean is .3 % larger than if they had none.
TEST(EngineCanaries, AreAsLongAsTheClipAndMoveNumbersOfTheirOwn) {
  for (const EngineCase& audited : RightEngineCases()) {
    const EngineSetting setting(audited, kEngineRuns);
    UnitSums sums(setting);
    for (const uint8_t written : {0, 1}) {
      // Without selection all rows are written, and where there is one, none may be.
      if (written == 0 && audited.rows != mechanism::Recipe::Rows::kThreshold) continue;
      const std::vector<uint8_t> rows(setting.model.space.rows(), written);
      const UnitSum &one = sums.Of(setting.canaries[0], rows),
                    &other = sums.Of(setting.canaries[1], rows);
      double common = 0;
      for (size_t i = 0; i < one.dense.size(); ++i) common += one.dense[i] * other.dense[i];
      const double squared_clip = 0.25 * std::pow(1 - model::kSumError, 2);
      EXPECT_LT(std::abs(common), 5e-5 * squared_clip) << audited.name;
      // A per-layer clip keeps the rows' share from a unit that has none.
      if (written == 0) continue;
      EXPECT_NEAR(one.squared / squared_clip, 1, 0.02) << audited.name;
    }
  }
}

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
