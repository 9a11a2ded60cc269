// The private step of a transformer, bf16: MovieLens-1M's shape, users of one full window each. Its
// limit are its three products with the catalogue alone.
#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "bench/bench_data.h"
#include "cuda/bench/parts.h"
#include "cuda/bench/products.h"
#include "cuda/bench/timing.h"
#include "cuda/learn/gpu.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "train/sequence/sequence_stepper.h"

namespace tacit::cuda {

Result<std::vector<bench::BenchRow>> BenchSequences(const GpuSizes& sizes) {
  WorkerPool workers{{.workers = 1}};
  const auto backend = ops::MakeCpuBackend(workers);
  TACIT_ASSIGN(const auto gpu, OpenGpu({}));
  double products = 0;
  {
    TACIT_ASSIGN(const auto device, OpenDevice(0));
    TACIT_ASSIGN(Stream stream, Stream::Make(*device));
    TACIT_ASSIGN(const auto alone, StepProducts::Make(stream, {{sizes.width, sizes.catalogue}},
                                                      sizes.sequences * sizes.length));
    TACIT_ASSIGN(products,
                 SecondsAsGraph(stream, sizes.seconds, [&](Stream& on) { return alone->Put(on); }));
  }
  const model::Histories histories =
      bench::FullWindows(sizes.catalogue, sizes.length, sizes.sequences);
  std::vector<uint64_t> everybody(histories.units());
  std::iota(everybody.begin(), everybody.end(), 0);
  train::SequenceTrainingOptions options;
  options.model.catalogue = sizes.catalogue;
  options.model.length = sizes.length;
  options.model.width = sizes.width;
  options.model.precision = ops::Precision::kBf16;
  options.expected_batch = sizes.sequences;
  options.privacy.sigma = 1;
  options.privacy.clip = train::SequenceGuard::Clip::kNormalised;
  train::SequenceStepper stepper(options, {}, *backend, noise::MakeNoiseSource());
  TACIT_ASSIGN(auto engine, gpu->MakeSequenceEngine(stepper.EngineOptions(), *stepper.noise()));
  stepper.UseEngine(std::move(engine));
  TACIT_ASSIGN(const double step, MedianOfCalls(3 * sizes.seconds, [&]() -> Status {
                 train::SequenceStepReport report;
                 return stepper.Step(
                     model::HistoryUnits(stepper.options().model, histories, everybody), &report);
               }));
  const double sequences = sizes.sequences;
  return std::vector<bench::BenchRow>{{"gpu-sequence-private",
                                       sequences / step,
                                       "sequences/s",
                                       sequences / products,
                                       {{"step_ms", step * 1e3}, {"products_ms", products * 1e3}},
                                       fmt::format("{:.2f} ms a step", step * 1e3)}};
}

}  // namespace tacit::cuda
