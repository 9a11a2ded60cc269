#include "cuda/bench/timing.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "bench/bench_data.h"
#include "cuda/device/buffer.h"
#include "cuda/device/graph.h"
#include "cuda/kernels/noise/noise.h"

namespace tacit::cuda {
namespace {

constexpr int kBatches = 5;

}  // namespace

Result<double> MedianOfCalls(double seconds, const std::function<Status()>& call) {
  const SystemClock clock;
  TACIT_RETURN_IF_ERROR(call());
  std::vector<double> times;
  const auto begin = clock.Now();
  while (times.size() < 3 || Seconds(clock.Now() - begin) < seconds) {
    const auto start = clock.Now();
    TACIT_RETURN_IF_ERROR(call());
    times.push_back(Seconds(clock.Now() - start));
  }
  return bench::Median(std::move(times));
}

Result<double> SecondsOnDevice(Stream& stream, double seconds,
                               const std::function<Status(Stream&)>& work) {
  const SystemClock clock;
  const auto take = [&](int times) -> Result<double> {
    const auto start = clock.Now();
    for (int i = 0; i < times; ++i) TACIT_RETURN_IF_ERROR(work(stream));
    TACIT_RETURN_IF_ERROR(stream.Synchronize());
    return Seconds(clock.Now() - start) / times;
  };
  TACIT_RETURN_IF_ERROR(take(1));
  TACIT_ASSIGN(const double one, take(1));
  const int times = static_cast<int>(std::clamp(seconds / kBatches / one, 1.0, 10000.0));
  std::vector<double> each;
  for (int batch = 0; batch < kBatches; ++batch) {
    TACIT_ASSIGN(const double now, take(times));
    each.push_back(now);
  }
  return bench::Median(std::move(each));
}

Result<double> SecondsAsGraph(Stream& stream, double seconds,
                              const std::function<Status(Stream&)>& work) {
  TACIT_ASSIGN(Graph graph, Graph::Capture(stream, work));
  return SecondsOnDevice(stream, seconds, [&](Stream& on) { return graph.Launch(on); });
}

Result<double> CopyRate(Stream& stream, double seconds, size_t bytes) {
  TACIT_ASSIGN(const auto from, Buffer<uint8_t>::Make(stream.device(), bytes));
  TACIT_ASSIGN(const auto to, Buffer<uint8_t>::Make(stream.device(), bytes));
  TACIT_RETURN_IF_ERROR(stream.Fill(from.span(), 0x5a));
  TACIT_ASSIGN(const double time, SecondsOnDevice(stream, seconds, [&](Stream& on) {
                 return on.CopyOnDevice<uint8_t>(from.span(), to.span());
               }));
  return 2.0 * static_cast<double>(bytes) / time;
}

Result<double> GridNoiseRate(Stream& stream, double seconds, size_t numbers) {
  constexpr double kDeviation = 1 << 20;  // in steps
  TACIT_ASSIGN(const auto key, Buffer<NoiseKey>::Make(stream.device(), 1));
  TACIT_ASSIGN(const auto out, Buffer<float>::Make(stream.device(), numbers));
  TACIT_RETURN_IF_ERROR(stream.Fill(key.span(), 0x35));
  TACIT_ASSIGN(const double time, SecondsOnDevice(stream, seconds, [&](Stream& on) {
                 return FillGridNoise(on, key.span(), NoiseQuery::kDense, kDeviation, 1,
                                      out.span());
               }));
  return static_cast<double>(numbers) / time;
}

}  // namespace tacit::cuda
