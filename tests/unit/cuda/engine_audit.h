#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "audit/engine.h"
#include "cuda/learn/click_engine.h"
#include "unit/cuda/trial_device.h"

namespace tacit::cuda::testing {

// Few runs of a large mu for an emulated device; under the address sanitizer too few to prove
// anything, for there it is memory that is tested; and as many as an audit has, for a real one.
#if defined(TACIT_AUDIT_IN_FULL)
inline constexpr bool kAuditProves = true;
inline constexpr audit::EngineAuditOptions kAuditRuns = {
    .mu = 1, .runs = 100'000, .runs_of_choice = 10'000};
inline constexpr audit::EngineAuditOptions kFaultRuns = kAuditRuns;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAuditProves = false;
inline constexpr audit::EngineAuditOptions kAuditRuns = {
    .canaries = 32, .runs = 64, .runs_of_choice = 32};
inline constexpr audit::EngineAuditOptions kFaultRuns = kAuditRuns;
#else
inline constexpr bool kAuditProves = true;
inline constexpr audit::EngineAuditOptions kAuditRuns = {};
inline constexpr audit::EngineAuditOptions kFaultRuns = {.runs = 2500, .runs_of_choice = 500};
#endif

// Every example is dear on an emulated device. Where no selection hides a part of mu, fewer do.
inline audit::EngineAuditOptions AuditRunsOf(const audit::EngineCase& audited) {
  audit::EngineAuditOptions options = kAuditRuns;
  const bool hides = audited.rows == mechanism::Recipe::Rows::kThreshold;
  if (!hides && options.runs < 10'000) options.runs = options.runs * 2 / 3;
  return options;
}

// The audit of the engine on this program's device.
class DeviceEngineAudit : public OnDevice {
 protected:
  audit::Finding Audit(const audit::EngineCase& audited, const audit::EngineAuditOptions& options) {
    const audit::Finding finding = audit::AuditEngine(
        audited, options, [&](const audit::EngineParts& parts, const audit::EngineCase& one) {
          return Make(parts, one);
        });
    std::puts(audit::Describe(audited, finding).c_str());
    return finding;
  }

 private:
  std::unique_ptr<train::ClickEngine> Make(const audit::EngineParts& parts,
                                           const audit::EngineCase& audited) {
    train::GpuRowOptions rows{.kind = train::GpuRowOptions::Kind::kWhole};
    if (audited.cached) rows = {.kind = train::GpuRowOptions::Kind::kCache, .cache_bytes = 1};
    auto engine = MakeDeviceClickEngine(*device_,
                                        {.click = parts.options,
                                         .chunk_examples = audited.chunk_examples,
                                         .round_examples = 8,
                                         .rows = rows},
                                        parts.mechanism, parts.noise, parts.rows, parts.dense);
    EXPECT_TRUE(engine) << engine.error().message;
    return std::move(*engine);
  }
};

}  // namespace tacit::cuda::testing
