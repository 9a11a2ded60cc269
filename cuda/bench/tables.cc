// Paper 003's table 4 on a GPU: the setting of bench/vocabulary_data.h, whole tables in the
// device's memory.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "bench/vocabulary_data.h"
#include "cuda/bench/parts.h"
#include "cuda/bench/same_row.h"
#include "cuda/bench/timing.h"
#include "cuda/learn/gpu.h"
#include "ops/backend.h"

namespace tacit::cuda {
namespace {

using bench::BenchRow;
using Setting = bench::VocabularySetting;

constexpr size_t kDistinctSteps = 8;

struct TableMachine {
  WorkerPool workers{{.workers = 1}};
  std::unique_ptr<ops::Backend> backend = ops::MakeCpuBackend(workers);
};

Result<double> TimeStep(const GpuSizes& sizes, uint64_t vocabulary, bool dense) {
  TableMachine machine;
  train::GpuOptions whole;
  whole.rows.kind = train::GpuRowOptions::Kind::kWhole;
  TACIT_ASSIGN(const auto gpu, OpenGpu(whole));
  const train::ClickOptions options = bench::VocabularyLearner(vocabulary);
  auto mechanism = dense ? bench::VocabularyDense(options.model.space)
                         : bench::VocabularyAdaFest(options.model.space);
  auto noise = noise::MakeNoiseSource();
  const model::Pctr model(options.model, *machine.backend);
  SameRow rows(train::MakeRowLayout(options, model).RowFloats(0));
  TACIT_ASSIGN(auto engine, gpu->MakeClickEngine(options.Engine(0), *mechanism, *noise, rows,
                                                 train::InitialDense(options, model)));
  train::ClickLearner learner(options, std::move(mechanism), std::move(noise), std::move(engine));
  const auto steps = bench::VocabularySteps(vocabulary, kDistinctSteps, 1);
  size_t at = 0;
  return MedianOfCalls(sizes.seconds, [&]() -> Status {
    const std::atomic<bool> abandon = false;
    train::StepReport report;
    const stream::StepBatch& step = steps[at++ % kDistinctSteps];
    learner.Announce(steps[at % kDistinctSteps]);
    const auto taken = learner.TakeStep(step, abandon, &report);
    learner.Withdraw();
    TACIT_RETURN_IF_ERROR(taken);
    return {};
  });
}

}  // namespace

Result<std::vector<BenchRow>> BenchTables(const GpuSizes& sizes) {
  std::vector<BenchRow> rows;
  double noise = 0;
  {
    TACIT_ASSIGN(const auto device, OpenDevice(0));
    TACIT_ASSIGN(Stream stream, Stream::Make(*device));
    TACIT_ASSIGN(noise, GridNoiseRate(stream, sizes.seconds, sizes.noise_numbers));
  }
  for (const uint64_t vocabulary : sizes.vocabularies) {
    TACIT_ASSIGN(const double adafest, TimeStep(sizes, vocabulary, false));
    std::optional<double> dense;
    if (vocabulary >= sizes.dense_from) {
      TACIT_ASSIGN(dense, TimeStep(sizes, vocabulary, true));
      const double numbers = static_cast<double>(vocabulary) * Setting::kDim;
      rows.push_back({fmt::format("gpu-dense-{}", vocabulary),
                      numbers / *dense / 1e9,
                      "G numbers/s",
                      noise / 1e9,
                      {{"step_ms", *dense * 1e3}},
                      fmt::format("{:.2f} ms a step", *dense * 1e3)});
    }
    rows.push_back({fmt::format("gpu-adafest-{}", vocabulary),
                    adafest * 1e6,
                    "us/step",
                    {},
                    {{"over", dense ? *dense / adafest : 0}},
                    dense ? fmt::format("dense is {:.0f} times that", *dense / adafest) : ""});
  }
  return rows;
}

}  // namespace tacit::cuda
