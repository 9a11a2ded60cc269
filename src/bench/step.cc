#include <algorithm>
#include <atomic>

#include "base/clock.h"
#include "bench/bench_data.h"
#include "bench/suite.h"
#include "train/memory_rows.h"
#include "wiring/kinds/click.h"

namespace tacit::bench {
namespace {

constexpr size_t kTimedSteps = 8;
constexpr double kSigmaRatio = 5;  // sigma1 / sigma2 of the private step

// A learner with its rows in memory, ready to take the setup's steps over and over.
struct Rig {
  BenchSetup setup;
  WorkerPool workers{{.workers = 1}};
  std::unique_ptr<ops::Backend> backend = ops::MakeCpuBackend(workers);
  std::unique_ptr<train::MemoryRows> rows;
  std::unique_ptr<train::Learner> learner;
  size_t next = 0;
  std::vector<double> seconds;

  static Result<std::unique_ptr<Rig>> Make(const std::string& compute, bool private_mechanism) {
    auto rig = std::make_unique<Rig>();
    TACIT_ASSIGN(rig->setup, MakeBenchSetup(compute, private_mechanism, kTimedSteps, kSigmaRatio));
    const wiring::ModelPlan& model = *rig->setup.assembly.learners[0].model;
    rig->rows = std::make_unique<train::MemoryRows>(model.Rows());
    TACIT_ASSIGN(rig->learner, model.Make({.noise = noise::MakeNoiseSource(rig->workers),
                                           .backend = *rig->backend,
                                           .workers = rig->workers,
                                           .rows = *rig->rows}));
    return rig;
  }

  Status Step() {
    const SystemClock clock;
    const std::atomic<bool> abandon = false;
    train::StepReport report;
    const auto start = clock.Now();
    TACIT_ASSIGN(const bool taken,
                 learner->TakeStep(setup.steps[next++ % kTimedSteps], abandon, &report));
    if (!taken) return Fail(ErrorCode::kInternal, "a step was abandoned");
    seconds.push_back(Seconds(clock.Now() - start));
    return {};
  }

  double ExamplesPerSecond() {
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
    return static_cast<double>(setup.steps[0].examples.size()) / seconds[seconds.size() / 2];
  }
};

Status AddPrecision(const std::string& compute, std::vector<BenchRow>* rows) {
  TACIT_ASSIGN(const auto with, Rig::Make(compute, true));
  TACIT_ASSIGN(const auto without, Rig::Make(compute, false));
  const auto precision = compute == "bf16" ? ops::Precision::kBf16 : ops::Precision::kF32;
  double limit = ops::MeasureGemmLimit(precision, 0.5);
  // They alternate, so that a noisy neighbour hits both; the first round warms up.
  for (int round = 0; round < 25; ++round) {
    if (round == 1) {
      with->seconds.clear();
      without->seconds.clear();
    }
    TACIT_RETURN_IF_ERROR(with->Step());
    TACIT_RETURN_IF_ERROR(without->Step());
  }
  limit = std::max(limit, ops::MeasureGemmLimit(precision, 0.5));
  const model::Pctr shape(wiring::ClickOptionsOf(with->setup.assembly.learners[0])->model,
                          *with->backend);
  const double most = limit / shape.FlopsPerExample();
  const double private_rate = with->ExamplesPerSecond();
  const double plain_rate = without->ExamplesPerSecond();
  rows->push_back({"gemm-" + compute, limit / 1e9, "GFLOP/s/core", std::nullopt});
  rows->push_back({"step-private-" + compute, private_rate, "examples/s/core", most});
  rows->push_back({"step-plain-" + compute, plain_rate, "examples/s/core", most});
  const auto& setup = with->setup;
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
