#include "cuda/learn/product_choice.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/files/log.h"
#include "cuda/device/device.h"
#include "cuda/device/graph.h"
#include "cuda/kernels/gemm/gemm_library.h"

namespace tacit::cuda {
namespace {

// The numbers of batches, of which the median counts, and of launches in each between two waits.
constexpr size_t kTimings = 5;
constexpr int kLaunches = 10;

Result<double> SecondsOfLaunches(Graph& graph, Stream& stream, const Clock& clock) {
  const auto start = clock.Now();
  for (int i = 0; i < kLaunches; ++i) TACIT_RETURN_IF_ERROR(graph.Launch(stream));
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  return Seconds(clock.Now() - start) / kLaunches;
}

// The two take turns, so that a clock of the card that changes meanwhile changes both.
Result<bool> LibraryIsFaster(Stream& stream, Blas* library, const Clock& clock,
                             const PutProducts& put) {
  const auto capture = [&](Blas* by) {
    return Graph::Capture(stream, [&](Stream&) { return put(by); });
  };
  // A kernel that comes for the first time may have to be loaded, which is no work for a graph.
  for (Blas* by : {static_cast<Blas*>(nullptr), library}) TACIT_RETURN_IF_ERROR(put(by));
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  TACIT_ASSIGN(Graph own, capture(nullptr));
  TACIT_ASSIGN(Graph other, capture(library));
  std::array<double, kTimings> times_own, times_other;
  for (Graph* graph : {&own, &other}) TACIT_RETURN_IF_ERROR(graph->Launch(stream));
  TACIT_RETURN_IF_ERROR(stream.Synchronize());
  for (size_t i = 0; i < kTimings; ++i) {
    TACIT_ASSIGN(times_own[i], SecondsOfLaunches(own, stream, clock));
    TACIT_ASSIGN(times_other[i], SecondsOfLaunches(other, stream, clock));
  }
  const auto median = [](std::array<double, kTimings>& times) {
    std::ranges::sort(times);
    return times[kTimings / 2];
  };
  const double time_own = median(times_own), time_other = median(times_other);
  spdlog::info(
      "GPU {}: gpu.gemm is auto: a step's products take {:.1f} us by cuBLAS and {:.1f} us by "
      "Tacit's own kernels, so {} taken",
      stream.device().facts().ordinal, time_other * 1e6, time_own * 1e6,
      time_other < time_own ? "cuBLAS is" : "the kernels are");
  return time_other < time_own;
}

}  // namespace

Result<std::unique_ptr<Blas>> ChooseProducts(Stream& stream, const ProductOptions& options,
                                             const PutProducts& put) {
  using By = train::GpuProducts;
  if (options.by == By::kOwn) return nullptr;
  auto loaded = Blas::Load(stream, options.library);
  if (!loaded) {
    TACIT_RETURN_IF_ERROR(stream.device().Health());
    if (options.by == By::kLibrary) return Fail(std::move(loaded.error()));
    spdlog::info("GPU {}: gpu.gemm is auto: Tacit's own kernels multiply, because {}",
                 stream.device().facts().ordinal, loaded.error().message);
    return nullptr;
  }
  TACIT_RETURN_IF_ERROR(CheckLibrary(**loaded));
  if (options.by == By::kLibrary) return loaded;
  const SystemClock host;
  TACIT_ASSIGN(const bool is_faster,
               LibraryIsFaster(stream, loaded->get(),
                               options.clock == nullptr ? host : *options.clock, put));
  if (!is_faster) return nullptr;
  return loaded;
}

}  // namespace tacit::cuda
