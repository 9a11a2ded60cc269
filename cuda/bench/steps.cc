#include "cuda/bench/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "bench/step_rig.h"
#include "bench/training_rig.h"
#include "cuda/bench/parts.h"
#include "cuda/bench/timing.h"
#include "cuda/learn/gpu.h"

namespace tacit::cuda {
namespace {

using bench::BenchModel;
using bench::BenchRow;
using bench::BenchSetup;

constexpr size_t kDistinctSteps = 6;

Result<std::vector<ProductLayer>> LayersOf(const BenchSetup& setup) {
  std::vector<ProductLayer> layers;
  for (const wiring::DenseTensor& tensor : setup.assembly.learners[0].model->DenseTensors())
    if (tensor.shape.size() == 2)
      layers.push_back(
          {static_cast<uint32_t>(tensor.shape[0]), static_cast<uint32_t>(tensor.shape[1])});
  return layers;
}

// Steps of a second, taken one after the other.
Result<double> SecondsPerStep(bench::StepRig& rig, double seconds) {
  for (size_t i = 0; i < 2 * kDistinctSteps; ++i) TACIT_RETURN_IF_ERROR(rig.Step());
  rig.ForgetTimes();
  const SystemClock clock;
  const auto begin = clock.Now();
  for (size_t i = 0; i < kDistinctSteps || Seconds(clock.Now() - begin) < seconds; ++i)
    TACIT_RETURN_IF_ERROR(rig.Step());
  return rig.SecondsPerStep();
}

Status AddBatch(const GpuSizes& sizes, uint64_t batch, std::vector<BenchRow>* rows) {
  TACIT_ASSIGN(const auto gpu, OpenGpu({}));
  const BenchModel model = ClickModelOf(sizes, batch);
  TACIT_ASSIGN(BenchSetup setup, MakeBenchSetup(model));
  TACIT_ASSIGN(const auto layers, LayersOf(setup));
  double products = 0;
  {
    TACIT_ASSIGN(const auto device, OpenDevice(0));
    TACIT_ASSIGN(Stream stream, Stream::Make(*device));
    TACIT_ASSIGN(const auto alone,
                 StepProducts::Make(stream, layers, static_cast<uint32_t>(batch)));
    TACIT_ASSIGN(products,
                 SecondsAsGraph(stream, sizes.seconds, [&](Stream& on) { return alone->Put(on); }));
  }
  TACIT_ASSIGN(const auto rig, bench::StepRig::Make(std::move(setup), gpu.get()));
  TACIT_ASSIGN(const double step, SecondsPerStep(*rig, 3 * sizes.seconds));
  BenchModel without = model;
  without.private_mechanism = false;
  TACIT_ASSIGN(BenchSetup plain_setup, MakeBenchSetup(without));
  TACIT_ASSIGN(const auto plain_rig, bench::StepRig::Make(std::move(plain_setup), gpu.get()));
  TACIT_ASSIGN(const double plain, SecondsPerStep(*plain_rig, 3 * sizes.seconds));
  const double examples = static_cast<double>(batch);
  rows->push_back({fmt::format("gpu-step-private-{}", batch),
                   examples / step / 1e6,
                   "M examples/s",
                   examples / products / 1e6,
                   {{"step_us", step * 1e6}, {"products_us", products * 1e6}},
                   fmt::format("{:.0f} us a step", step * 1e6)});
  rows->push_back({fmt::format("gpu-step-private-over-plain-{}", batch),
                   step / plain,
                   "times",
                   {},
                   {{"plain_us", plain * 1e6}},
                   fmt::format("{:.0f} us without privacy", plain * 1e6)});
  return {};
}

// Steps with commits between them.
struct CommittedSteps {
  double examples_per_second = 0;
  std::vector<double> pauses;       // seconds of each commit in which no step was taken
  double last_commit_ms = 0;        // on the store's own thread
  uint64_t commits = 0, bytes = 0;  // that the store has written
};

// Takes steps with a commit every `every` seconds.
Result<CommittedSteps> Committed(const GpuSizes& sizes, train::Gpu& gpu, double every) {
  TACIT_ASSIGN(BenchSetup setup, MakeBenchSetup(ClickModelOf(sizes, sizes.batches.back())));
  bench::TrainingRig rig(std::move(setup), {.name = "gpu", .gpu = &gpu});
  TACIT_RETURN_IF_ERROR(rig.Open());
  uint64_t examples = 0;
  for (size_t i = 0; i < 2 * kDistinctSteps; ++i) TACIT_RETURN_IF_ERROR(rig.Step(&examples));
  TACIT_RETURN_IF_ERROR(rig.Commit());
  const SystemClock clock;
  const auto begin = clock.Now();
  double last = 0, now = 0;
  examples = 0;
  CommittedSteps steps;
  do {
    TACIT_RETURN_IF_ERROR(rig.Step(&examples));
    now = Seconds(clock.Now() - begin);
    if (now - last < every) continue;
    const auto stopped = clock.Now();
    TACIT_RETURN_IF_ERROR(rig.Commit());
    steps.pauses.push_back(Seconds(clock.Now() - stopped));
    last = now;
  } while (now < sizes.commit_seconds);
  steps.examples_per_second = static_cast<double>(examples) / Seconds(clock.Now() - begin);
  TACIT_RETURN_IF_ERROR(rig.store().Flush());
  const store::Store::Stats stats = rig.store().stats();
  steps.last_commit_ms = stats.last_commit_ms;
  steps.commits = stats.commits;
  steps.bytes = stats.commit_bytes;
  return steps;
}

}  // namespace

BenchModel ClickModelOf(const GpuSizes& sizes, uint64_t batch) {
  return {.compute = "bf16",
          .steps = kDistinctSteps,
          .sigma_ratio = 5,
          .batch = batch,
          .hidden = sizes.hidden};
}

Result<std::vector<ProductLayer>> ClickLayers(const GpuSizes& sizes) {
  BenchModel model = ClickModelOf(sizes, sizes.batches[0]);
  model.steps = 1;
  TACIT_ASSIGN(const BenchSetup setup, MakeBenchSetup(model));
  return LayersOf(setup);
}

Result<std::vector<BenchRow>> BenchClickSteps(const GpuSizes& sizes) {
  std::vector<BenchRow> rows;
  for (const uint64_t batch : sizes.batches) TACIT_RETURN_IF_ERROR(AddBatch(sizes, batch, &rows));
  TACIT_ASSIGN(const auto gpu, OpenGpu({}));
  TACIT_ASSIGN(const CommittedSteps without, Committed(sizes, *gpu, 1e9));
  TACIT_ASSIGN(const CommittedSteps with, Committed(sizes, *gpu, sizes.commit_every));
  const double pause = with.pauses.empty() ? 0 : 1e3 * bench::Median(with.pauses);
  rows.push_back(
      {"gpu-step-with-commits",
       with.examples_per_second / 1e6,
       "M examples/s",
       without.examples_per_second / 1e6,
       {{"pause_ms", pause},
        {"last_commit_ms", with.last_commit_ms},
        {"bytes_per_commit", with.bytes / std::max<uint64_t>(1, with.commits)}},
       fmt::format("{:.1f} ms without a step a commit, which takes {:.0f} ms beside them", pause,
                   with.last_commit_ms)});
  return rows;
}

}  // namespace tacit::cuda
