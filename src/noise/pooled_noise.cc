#include "noise/pooled_noise.h"

#include <unistd.h>

#include <utility>

#include "base/check.h"

namespace tacit::noise {
namespace {

// Parts begin at a cache line, for every type.
constexpr size_t kGrain = 64;

std::vector<std::unique_ptr<Keystream>> FreshStreams(size_t n) {
  std::vector<std::unique_ptr<Keystream>> streams;
  while (streams.size() < n) streams.push_back(std::make_unique<Keystream>());
  return streams;
}

}  // namespace

PooledNoise::PooledNoise(WorkerPool& workers)
    : PooledNoise(workers, FreshStreams(workers.workers())) {}

PooledNoise::PooledNoise(WorkerPool& workers, std::vector<std::unique_ptr<Keystream>> streams)
    : workers_(workers), owner_(getpid()) {
  TACIT_CHECK(streams.size() == workers.workers(), "a stream for each worker");
  for (auto& stream : streams) sources_.push_back(std::make_unique<StreamNoise>(std::move(stream)));
}

void PooledNoise::ForParts(size_t n, const Part& part) {
  if (n < kSplitMin || getpid() != owner_) {
    if (n > 0) part(0, n, first());
    return;
  }
  workers_.Run(
      n, [&](size_t begin, size_t end, size_t worker) { part(begin, end, *sources_[worker]); },
      kGrain);
}

void PooledNoise::AddGridGaussian(double stddev, std::span<int64_t> values) {
  ForParts(values.size(), [&](size_t begin, size_t end, NoiseSource& source) {
    source.AddGridGaussian(stddev, values.subspan(begin, end - begin));
  });
}

void PooledNoise::FillGridGaussian(double stddev, double factor, std::span<float> out) {
  ForParts(out.size(), [&](size_t begin, size_t end, NoiseSource& source) {
    source.FillGridGaussian(stddev, factor, out.subspan(begin, end - begin));
  });
}

void PooledNoise::AddGaussian(double stddev, std::span<float> values) {
  ForParts(values.size(), [&](size_t begin, size_t end, NoiseSource& source) {
    source.AddGaussian(stddev, values.subspan(begin, end - begin));
  });
}

void PooledNoise::FillGaussian(std::span<double> out) {
  ForParts(out.size(), [&](size_t begin, size_t end, NoiseSource& source) {
    source.FillGaussian(out.subspan(begin, end - begin));
  });
}

void PooledNoise::Rekey() {
  for (const auto& source : sources_) source->Rekey();
}

}  // namespace tacit::noise
