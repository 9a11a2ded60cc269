// The bare private step of the click model on one core: index, gather, forward, backward, norms,
// clipped sum; no noise, no optimiser, no store. Beside it the same step without privacy, and the
// GEMM limit of this core measured in the same run. Prints JSON lines.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/threads/worker_pool.h"
#include "model/pctr.h"
#include "ops/backend.h"

namespace tacit {
namespace {

constexpr size_t kBatch = 2048, kSlots = 26, kDense = 13;
constexpr uint64_t kTableRows = 40'000;

// min(1, C / |g|), or no clip at all.
class FlatClip final : public model::ScaleRule {
 public:
  explicit FlatClip(bool on) : on_(on) {}
  bool needs_norms() const override { return on_; }
  void Scales(const model::GroupNorms& norms, std::span<float> scales) const override {
    for (size_t u = 0; u < norms.units; ++u) {
      double squared = 0;
      for (size_t g = 0; g < norms.groups; ++g) squared += norms.squared[g * norms.units + u];
      const auto scale = static_cast<float>(std::min(1.0, 1.0 / std::sqrt(squared)));
      for (size_t g = 0; g < norms.groups; ++g) scales[g * norms.units + u] = scale;
    }
  }

 private:
  const bool on_;
};

// A batch of the Criteo shape: 26 features whose embeddings make 363 columns, popular values often.
struct Workload {
  RowSpace space;
  std::vector<float> table;  // every row at 16 floats
  std::vector<float> label, dense;
  std::vector<uint64_t> row;
  std::vector<uint32_t> unit_of, slot_end;

  Workload() {
    for (size_t s = 0; s < kSlots; ++s)
      space.AddTable(fmt::format("c{}", s), kTableRows, s + 1 < kSlots ? 14 : 13);
    table.resize(space.rows() * 16);
    for (uint64_t r = 0; r < space.rows(); ++r)
      InitialRow(1, r, 0.25f, std::span(table).subspan(r * 16, 16));
    std::mt19937_64 random(7);
    std::uniform_real_distribution<float> uniform(0, 1);
    for (size_t i = 0; i < kBatch; ++i) {
      unit_of.push_back(static_cast<uint32_t>(i));
      label.push_back(uniform(random) < 0.25f);
      for (size_t d = 0; d < kDense; ++d) dense.push_back(uniform(random));
      for (size_t s = 0; s < kSlots; ++s) {
        // Log-uniform, close to Zipf.
        const double place = std::pow(double{kTableRows}, uniform(random)) - 1;
        row.push_back(space.tables()[s].first +
                      std::min(kTableRows - 1, static_cast<uint64_t>(place)));
        slot_end.push_back(static_cast<uint32_t>(row.size()));
      }
    }
  }
};

struct Phases {
  static constexpr std::array<const char*, 4> kNames = {"index", "forward", "backward",
                                                        "clipped_sum"};
  std::array<double, 4> seconds{};
  double total() const { return seconds[0] + seconds[1] + seconds[2] + seconds[3]; }
};

class Stepper {
 public:
  Stepper(Workload& workload, ops::Precision precision, ops::Backend& backend)
      : workload_(workload),
        model_({workload.space, kDense, {598, 598, 598, 598}, precision}, backend),
        dense_(model_.InitialDense(1)),
        logits_(kBatch),
        loss_(kBatch) {}

  Phases Step(const model::ScaleRule& rule) {
    Phases phases;
    size_t phase = 0;
    auto last = std::chrono::steady_clock::now();
    const auto lap = [&] {
      const auto now = std::chrono::steady_clock::now();
      phases.seconds[phase++] = std::chrono::duration<double>(now - last).count();
      last = now;
    };
    indexer_.Index(workload_.row, workload_.slot_end, kSlots, workload_.unit_of, kBatch,
                   &activations_);
    lap();
    rows_.clear();
    for (uint64_t row : activations_.rows) rows_.push_back(workload_.table.data() + row * 16);
    const model::Examples examples{kBatch,
                                   kBatch,
                                   workload_.unit_of,
                                   workload_.label,
                                   workload_.dense,
                                   workload_.slot_end,
                                   activations_.slot_row};
    Check(model_.Forward(examples, dense_, rows_, logits_));
    lap();
    Check(model_.Backward(examples, dense_, loss_));
    lap();
    selection_.kept.assign(activations_.rows.size(), 1);
    Check(model_.ClippedSum(examples, activations_, selection_, rule, &sum_, &norms_));
    lap();
    return phases;
  }

  double flops() const { return model_.FlopsPerExample() * kBatch; }

 private:
  static void Check(const Status& status) {
    if (status) return;
    fmt::print(stderr, "step_bench: {}\n", status.error().message);
    std::exit(1);
  }

  Workload& workload_;
  model::Pctr model_;
  std::vector<float> dense_, logits_, loss_;
  model::ActivationIndexer indexer_;
  model::Activations activations_;
  std::vector<float*> rows_;
  model::RowSelection selection_;
  model::StepGradient sum_;
  model::GroupNorms norms_;
};

Phases Fastest(const std::vector<Phases>& steps) {
  return *std::min_element(steps.begin(), steps.end(),
                           [](const Phases& a, const Phases& b) { return a.total() < b.total(); });
}

void Report(const std::string& name, double value, const char* unit, double limit) {
  fmt::print(
      "{{\"name\":\"{}\",\"value\":{:.4g},\"unit\":\"{}\",\"limit\":{:.4g},\"share\":{:.3f}}}\n",
      name, value, unit, limit, value / limit);
}

void Run(Workload& workload, ops::Backend& backend, ops::Precision precision, int steps) {
  const std::string prefix = precision == ops::Precision::kBf16 ? "pctr_bf16" : "pctr_f32";
  Stepper stepper(workload, precision, backend);
  const FlatClip clipped(true), plain(false);
  stepper.Step(clipped);
  // In turns, so that a busy neighbour slows both.
  std::vector<Phases> with, without;
  for (int i = 0; i < steps; ++i) {
    with.push_back(stepper.Step(clipped));
    without.push_back(stepper.Step(plain));
  }
  const double limit = ops::MeasureGemmLimit(precision, 1.0);
  const double most = limit / stepper.flops() * kBatch;
  Report(prefix + "_gemm_limit", limit / 1e9, "GF/s/core", limit / 1e9);
  Report(prefix + "_private", kBatch / Fastest(with).total(), "examples/s/core", most);
  Report(prefix + "_plain", kBatch / Fastest(without).total(), "examples/s/core", most);
  Report(prefix + "_private_over_plain", Fastest(with).total() / Fastest(without).total(), "ratio",
         1.0);
  for (const auto& [name, best] :
       {std::pair("private", Fastest(with)), std::pair("plain", Fastest(without))}) {
    for (size_t p = 0; p < Phases::kNames.size(); ++p)
      Report(fmt::format("{}_{}_{}", prefix, name, Phases::kNames[p]), best.seconds[p] * 1e3, "ms",
             best.total() * 1e3);
  }
}

}  // namespace
}  // namespace tacit

// step_bench [steps]
int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20;
  tacit::WorkerPool workers({1, false});
  const auto backend = tacit::ops::MakeCpuBackend(workers);
  tacit::Workload workload;
  tacit::Run(workload, *backend, tacit::ops::Precision::kBf16, steps);
  tacit::Run(workload, *backend, tacit::ops::Precision::kF32, steps);
}
