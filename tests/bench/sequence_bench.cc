// Whole training steps of the sequence model on one core, in the shape of MovieLens-1M (200
// positions, 3,417 items, width 64, two blocks): private (forward, backward, norms, grid, noise,
// Adam), the same without privacy, with Re-Attention, and with every unit's gradient in memory of
// its own. Beside them the GEMM limit of this core, measured in the same run, and the process's
// peak of memory. Prints JSON lines.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads/worker_pool.h"
#include "lab/next_item/sequence_data.h"
#include "model/histories.h"
#include "model/sequence/sequence_model.h"
#include "noise/noise.h"
#include "ops/backend.h"
#include "support/sequence_trainer.h"

namespace tacit {
namespace {

constexpr uint32_t kItems = 3417, kLength = 200;

// Users of one window each, popular items often.
model::Histories MakeHistories(size_t users, uint32_t length) {
  model::Histories histories;
  histories.catalogue = kItems;
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (size_t u = 0; u < users; ++u) {
    for (uint32_t i = 0; i <= length; ++i)
      histories.items.push_back(
          std::min(kItems - 1, static_cast<uint32_t>(std::pow(kItems, uniform(random)) - 1)));
    histories.end.push_back(histories.items.size());
  }
  return histories;
}

// The first users of a file, as many as asked for, again from the first where there are fewer.
model::Histories FirstOf(const model::Histories& all, size_t users) {
  model::Histories histories;
  histories.catalogue = all.catalogue;
  for (size_t u = 0; u < users; ++u) {
    const auto items = all.Of(u % all.units());
    histories.items.insert(histories.items.end(), items.begin(), items.end());
    histories.end.push_back(histories.items.size());
  }
  return histories;
}

// The multiplications and additions of a crop of this many positions, forward and backward.
double FlopsPerCrop(const model::SequenceLayout& layout, size_t positions) {
  const auto rows = static_cast<double>(positions);
  const size_t scored =
      layout.options().negatives > 0 ? layout.options().negatives + 1 : layout.output().rows;
  double products = rows * static_cast<double>(scored * layout.output().cols);
  for (const model::SequenceLayout::Block& block : layout.blocks()) {
    for (const auto* layer : {&block.qkv, &block.projection, &block.inner, &block.outer})
      products += rows * static_cast<double>(layer->in * layer->out);
    // Counts logits and sums of values of all pairs: keys hidden from a query count too.
    products += 2 * rows * rows * layout.options().width;
  }
  for (const model::SequenceLayout::Recurrent& layer : layout.recurrent())
    products += rows * static_cast<double>(2 * layer.input.in * layer.input.out);
  return 2 * 3 * products;
}

train::SequenceTrainingOptions Options(size_t batch, uint32_t catalogue, bool is_private,
                                       float kappa, ops::Precision precision) {
  train::SequenceTrainingOptions options;
  options.model.precision = precision;
  options.model.catalogue = catalogue;
  options.model.length = kLength;
  options.model.re_attention.kappa = kappa;
  options.expected_batch = static_cast<double>(batch);
  options.schedule.steps = 1'000'000;
  options.privacy.on = is_private;
  options.privacy.sigma = 1;
  options.privacy.clip = train::SequenceGuard::Clip::kNormalised;
  return options;
}

void Check(const Status& status) {
  if (status) return;
  fmt::print(stderr, "sequence_bench: {}\n", status.error().message);
  std::exit(1);
}

// Measures the processor's time, which a busy neighbour disturbs less than the clock's.
template <class Body>
double Seconds(const Body& body) {
  const std::clock_t begin = std::clock();
  body();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

double StepSeconds(train::SequenceTrainer& trainer) {
  return Seconds([&] {
    train::SequenceStepReport report;
    Check(trainer.Step(&report));
  });
}

// Every unit's gradient side by side, then norms, then the sum: what a framework's per-example
// gradients are.
class Naive {
 public:
  Naive(const model::Histories& histories, ops::Precision precision, ops::Backend& backend)
      : histories_(histories),
        model_(Options(1, histories.catalogue, true, 0, precision).model, backend) {
    parameters_ = model_.layout().Initial(1);
  }

  double StepSeconds() {
    return Seconds([&] {
      const size_t size = parameters_.size(), units = histories_.units();
      gradients_.resize(size * units);
      for (uint64_t u = 0; u < units; ++u) {
        Check(model_.ClippedSum(parameters_,
                                model::HistoryUnits(model_.layout().options(), histories_, {&u, 1}),
                                {}, plain_, &sum_));
        std::copy(sum_.values.begin(), sum_.values.end(),
                  gradients_.begin() + static_cast<ptrdiff_t>(u * size));
      }
      total_.assign(size, 0.0f);
      for (size_t u = 0; u < units; ++u) {
        const float* g = gradients_.data() + u * size;
        double squared = 0;
        for (size_t i = 0; i < size; ++i) squared += double{g[i]} * g[i];
        const auto scale = static_cast<float>(1 / (std::sqrt(squared) + 0.01));
        for (size_t i = 0; i < size; ++i) total_[i] += scale * g[i];
      }
    });
  }

 private:
  const model::Histories& histories_;
  const model::Unscaled plain_;
  model::SequenceModel model_;
  model::SequenceSum sum_;
  std::vector<float> parameters_, gradients_, total_;
};

void ForgetPeak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

// Peak of this process since ForgetPeak, in MiB.
double PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  return 0;
}

void Report(const std::string& name, double value, const char* unit, double limit) {
  fmt::print(
      "{{\"name\":\"{}\",\"value\":{:.4g},\"unit\":\"{}\",\"limit\":{:.4g},\"share\":{:.3f}}}\n",
      name, value, unit, limit, value / limit);
}

double Least(const std::vector<double>& x) { return *std::ranges::min_element(x); }

// The median ratio of steps that were taken one after the other, so that a busy neighbour slowed
// both.
double Ratio(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> ratios;
  for (size_t i = 0; i < above.size(); ++i) ratios.push_back(above[i] / below[i]);
  std::ranges::sort(ratios);
  const size_t half = ratios.size() / 2;
  return ratios.size() % 2 == 1 ? ratios[half] : (ratios[half - 1] + ratios[half]) / 2;
}

// Steps of each kind in turns; speeds are those of the fastest.
void Run(const model::Histories& histories, int steps, ops::Precision precision,
         ops::Backend& backend) {
  const size_t batch = histories.units();
  const auto make = [&](bool is_private, float kappa) {
    return train::SequenceTrainer(Options(batch, histories.catalogue, is_private, kappa, precision),
                                  histories, backend, noise::MakeNoiseSource(),
                                  noise::MakeNoiseSource());
  };
  double memory[2] = {};
  ForgetPeak();
  {
    train::SequenceTrainer plain = make(false, 0);
    StepSeconds(plain);
    memory[0] = PeakMemory();
  }
  train::SequenceTrainer clipped = make(true, 0);
  StepSeconds(clipped);
  memory[1] = PeakMemory();
  train::SequenceTrainer plain = make(false, 0), corrected = make(true, 1);
  Naive naive(histories, precision, backend);
  std::vector<double> took[4];
  double limit = 0;
  for (int i = 0; i < steps; ++i) {
    took[0].push_back(StepSeconds(clipped));
    took[1].push_back(StepSeconds(plain));
    took[2].push_back(StepSeconds(corrected));
    if (batch <= 256) took[3].push_back(naive.StepSeconds());
    limit = std::max(limit, ops::MeasureGemmLimit(precision, 0.3));
  }
  const auto count = static_cast<double>(batch);
  const std::string prefix =
      fmt::format("sequence_{}_{}", batch, precision == ops::Precision::kBf16 ? "bf16_" : "");
  double flops = 0;
  for (size_t u = 0; u < batch; ++u) {
    const size_t positions = std::min<size_t>(kLength, histories.Of(u).size() - 1);
    flops += FlopsPerCrop(clipped.model().layout(), positions) / count;
  }
  const double most = limit / flops;
  Report(prefix + "gemm_limit", limit / 1e9, "GF/s/core", limit / 1e9);
  Report(prefix + "private", count / Least(took[0]), "sequences/s/core", most);
  Report(prefix + "plain", count / Least(took[1]), "sequences/s/core", most);
  Report(prefix + "re_attention", count / Least(took[2]), "sequences/s/core", most);
  if (batch <= 256) Report(prefix + "naive", count / Least(took[3]), "sequences/s/core", most);
  Report(prefix + "private_over_plain", Ratio(took[1], took[0]), "ratio", 1.0);
  Report(prefix + "re_attention_cost", Ratio(took[2], took[0]) - 1, "share of a step", 0.1);
  Report(prefix + "memory_private_over_plain", memory[1] / memory[0], "ratio", 1.15);
  Report(prefix + "memory_plain", memory[0], "MiB", memory[0]);
}

}  // namespace
}  // namespace tacit

// sequence_bench [--length N | --data FILE] [steps [batch...]]: N positions a user instead of 200,
// or the users of a file of lines `user item`, of whom the last 200 positions count.
int main(int argc, char** argv) {
  uint32_t length = tacit::kLength;
  tacit::lab::SequenceData data;
  if (argc > 2 && std::string_view(argv[1]).starts_with("--")) {
    if (std::string_view(argv[1]) == "--length") {
      length = std::max(1u, static_cast<uint32_t>(std::atoi(argv[2])));
    } else {
      auto read = tacit::lab::ReadSequences(argv[2]);
      if (!read) {
        fmt::print(stderr, "sequence_bench: {}\n", read.error().message);
        return 1;
      }
      data = std::move(*read);
    }
    argc -= 2, argv += 2;
  }
  const int steps = argc > 1 ? std::atoi(argv[1]) : 5;
  tacit::WorkerPool workers({1, false});
  const auto backend = tacit::ops::MakeCpuBackend(workers);
  std::vector<size_t> batches;
  for (int i = 2; i < argc; ++i) batches.push_back(static_cast<size_t>(std::atoll(argv[i])));
  if (batches.empty()) batches = {256, 1024};
  for (const size_t batch : batches)
    for (const auto precision : {tacit::ops::Precision::kF32, tacit::ops::Precision::kBf16})
      tacit::Run(data.path.empty() ? tacit::MakeHistories(batch, length)
                                   : tacit::FirstOf(data.histories, batch),
                 steps, precision, *backend);
}
