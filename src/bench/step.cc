#include <algorithm>
#include <utility>

#include "bench/step_rig.h"
#include "bench/suite.h"
#include "wiring/kinds/click.h"

namespace tacit::bench {
namespace {

constexpr size_t kTimedSteps = 8;
constexpr double kSigmaRatio = 5;  // sigma1 / sigma2 of the private step

Result<std::unique_ptr<StepRig>> MakeRig(const std::string& compute, bool private_mechanism) {
  TACIT_ASSIGN(BenchSetup setup, MakeBenchSetup({.compute = compute,
                                                 .private_mechanism = private_mechanism,
                                                 .steps = kTimedSteps,
                                                 .sigma_ratio = kSigmaRatio}));
  return StepRig::Make(std::move(setup));
}

Status AddPrecision(const std::string& compute, std::vector<BenchRow>* rows) {
  TACIT_ASSIGN(const auto with, MakeRig(compute, true));
  TACIT_ASSIGN(const auto without, MakeRig(compute, false));
  const auto precision = compute == "bf16" ? ops::Precision::kBf16 : ops::Precision::kF32;
  double limit = ops::MeasureGemmLimit(precision, 0.5);
  TACIT_RETURN_IF_ERROR(TakeTurns({with.get(), without.get()}, 24));
  limit = std::max(limit, ops::MeasureGemmLimit(precision, 0.5));
  const model::Pctr shape(wiring::ClickOptionsOf(with->setup().assembly.learners[0])->model,
                          with->backend());
  const double most = limit / shape.FlopsPerExample();
  const double private_rate = with->ExamplesPerSecond();
  const double plain_rate = without->ExamplesPerSecond();
  rows->push_back({"gemm-" + compute, limit / 1e9, "GFLOP/s/core", std::nullopt});
  rows->push_back({"step-private-" + compute, private_rate, "examples/s/core", most});
  rows->push_back({"step-plain-" + compute, plain_rate, "examples/s/core", most});
  const BenchSetup& setup = with->setup();
  rows->push_back({"step-private-over-plain-" + compute,
                   plain_rate / private_rate,
                   "times",
                   std::nullopt,
                   {{"batch", setup.steps[0].examples.size()},
                    {"tables", setup.assembly.learners[0].model->Rows().space.tables().size()},
                    {"sigma_ratio", kSigmaRatio}}});
  return {};
}

}  // namespace

Result<std::vector<BenchRow>> BenchStep() {
  std::vector<BenchRow> rows;
  TACIT_RETURN_IF_ERROR(AddPrecision("f32", &rows));
  WorkerPool workers({.workers = 1});
  if (ops::MakeCpuBackend(workers)->has_fast_bf16())
    TACIT_RETURN_IF_ERROR(AddPrecision("bf16", &rows));
  return rows;
}

}  // namespace tacit::bench
