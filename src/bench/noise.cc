#include "noise/noise.h"

#include <algorithm>
#include <string>

#include "base/threads/worker_pool.h"
#include "bench/bench_data.h"
#include "bench/suite.h"
#include "mechanism/grid.h"
#include "noise/keystream.h"

namespace tacit::bench {
namespace {

constexpr auto kDrawFor = std::chrono::milliseconds(500);

// Draws normals on one core or more, walking through memory too large for any cache.
class NoiseRig {
 public:
  explicit NoiseRig(size_t cores)
      : cores_(cores),
        pool_({.workers = cores}),
        source_(noise::MakeNoiseSource(pool_)),
        floats_(kCalls * kDrawsMax),
        steps_(kCalls * kDrawsMax) {}

  void AddRows(std::vector<BenchRow>* rows) {
    // A normal takes one word of keystream in f32, three on the grid.
    const double words = Words();
    const double read_write = Rate([&] { Touch(NextSteps()); });
    const double write = Rate([&] { Clear(NextFloats()); });
    const double f32 = Rate([&] { source_->AddGaussian(1, NextFloats()); });
    const double grid = Rate([&] { source_->AddGridGaussian(kGrid.stddev, NextSteps()); });
    const double released =
        Rate([&] { mechanism::ReleaseNoise(kGrid, 1, *source_, NextFloats()); });
    const auto add = [&](const char* name, double value, const char* unit,
                         std::optional<double> limit) {
      rows->push_back({name, value, Unit(unit), limit});
    };
    add("keystream", words, "G words/s", std::nullopt);
    add("memory-int64", read_write, "G read and written/s", std::nullopt);
    add("memory-f32", write, "G written/s", std::nullopt);
    add("noise-f32", f32, "G normals/s", std::min(words, write));
    add("noise-grid", grid, "G normals/s", std::min(words / 3, read_write));
    add("noise-grid-released", released, "G normals/s", std::min(words / 3, write));
    rows->push_back({"noise-f32-over-grid", f32 / grid, "times", std::nullopt});
  }

 private:
  // Calls are short, so that a busy neighbour seldom interrupts one, but long enough for workers to
  // wake up.
  static constexpr size_t kDrawsMax = size_t{1} << 20, kCalls = 16;
  // The grid for a noise multiplier of 1.
  static constexpr mechanism::Grid kGrid{.step = 0x1p-30, .stddev = 0x1p30};

  double Rate(const std::function<void()>& call) const {
    return static_cast<double>(draws_) / MedianSeconds(call, kDrawFor) / 1e9;
  }
  std::string Unit(const std::string& unit) const {
    return unit + (cores_ == 1 ? "/core" : " on " + std::to_string(cores_) + " cores");
  }

  std::span<float> NextFloats() { return std::span(floats_).subspan(Next(), draws_); }
  std::span<int64_t> NextSteps() { return std::span(steps_).subspan(Next(), draws_); }
  size_t Next() { return draws_ * (call_++ % (floats_.size() / draws_)); }

  double Words() {
    std::vector<noise::Keystream> streams(cores_);
    return Rate([&] {
      pool_.Run(draws_, [&](size_t begin, size_t end, size_t worker) {
        for (size_t left = end - begin; left >= 2;) left -= streams[worker].Take(left).size();
      });
    });
  }
  void Touch(std::span<int64_t> values) {
    pool_.Run(values.size(), [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i) ++values[i];
    });
  }
  void Clear(std::span<float> values) {
    pool_.Run(values.size(), [&](size_t begin, size_t end, size_t) {
      std::fill(values.begin() + static_cast<ptrdiff_t>(begin),
                values.begin() + static_cast<ptrdiff_t>(end), 0.0f);
    });
  }

  const size_t cores_;
  const size_t draws_ = cores_ == 1 ? kDrawsMax / 16 : kDrawsMax;
  WorkerPool pool_;
  const std::unique_ptr<noise::NoiseSource> source_;
  std::vector<float> floats_;
  std::vector<int64_t> steps_;
  size_t call_ = 0;
};

}  // namespace

Result<std::vector<BenchRow>> BenchNoise() {
  std::vector<BenchRow> rows;
  for (const size_t cores : {1, 2}) NoiseRig(cores).AddRows(&rows);
  return rows;
}

}  // namespace tacit::bench
