// Measures how the time of 100 steps grows with the vocabulary, under dense DP-SGD and under
// AdaFEST (paper 003, table 4).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "bench/bench_data.h"
#include "bench/suite.h"
#include "bench/vocabulary_data.h"
#include "bench/vocabulary_store.h"
#include "mechanism/grid.h"
#include "train/click/flat_rows.h"
#include "train/click/memory_rows.h"

namespace tacit::bench {
namespace {

using Setting = VocabularySetting;

constexpr size_t kWarmUpSteps = 10;
constexpr size_t kRounds = 5;  // of AdaFEST, and of dense while that is short; the median counts
constexpr uint64_t kShortDense = 500'000;  // a dense table of at most this many rows is short
constexpr double kMemoryShare = 0.85;      // of what is available, for the dense table
constexpr size_t kLimitFloats = size_t{1} << 26;

struct Size {
  uint64_t vocabulary = 0;
  std::optional<double> paper_factor;  // none: dense is left out
};
constexpr Size kSizes[] = {{100'000, 3.045},           {200'000, 5.376},    {1'000'000, 20.746},
                           {2'000'000, 40.515},        {5'000'000, 94.340}, {10'000'000, 176.760},
                           {100'000'000, std::nullopt}};
constexpr Size kQuickSizes[] = {{100'000, 3.045}, {1'000'000, 20.746}, {100'000'000, std::nullopt}};

class ProgressNote {
 public:
  void Say(const std::string& what) const {
    if (terminal_) std::fprintf(stderr, "\r\033[K%s", what.c_str());
  }
  ~ProgressNote() { Say(""); }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
};

// A learner of the setting on the rows it is given.
class VocabularyRig {
 public:
  VocabularyRig(train::ClickOptions options, std::unique_ptr<mechanism::Mechanism> mechanism,
                WorkerPool& workers, ops::Backend& backend, store::WorkingRows& rows)
      : learner_(std::move(options), std::move(mechanism), noise::MakeNoiseSource(workers), backend,
                 rows, nullptr) {}

  // Seconds of these steps.
  Result<double> Take(std::span<const stream::StepBatch> steps,
                      const std::function<void(size_t)>& taken = {}) {
    const SystemClock clock;
    const std::atomic<bool> abandon = false;
    const auto start = clock.Now();
    for (size_t s = 0; s < steps.size(); ++s) {
      train::StepReport report;
      TACIT_RETURN_IF_ERROR(learner_.TakeStep(steps[s], abandon, &report));
      if (taken) taken(s + 1);
    }
    return Seconds(clock.Now() - start);
  }

 private:
  train::ClickLearner learner_;
};

struct Machine {
  WorkerPool workers{{.workers = std::max(1u, std::min(2u, std::thread::hardware_concurrency()))}};
  std::unique_ptr<ops::Backend> backend = ops::MakeCpuBackend(workers);
};

store::RowLayout LayoutOf(const train::ClickOptions& options, Machine& machine) {
  return train::MakeRowLayout(options, model::Pctr(options.model, *machine.backend));
}

// Seconds of 100 (or fewer) steps.
Result<double> TimeAdaFest(uint64_t vocabulary, size_t steps, Machine& machine) {
  const train::ClickOptions options = VocabularyLearner(vocabulary);
  train::MemoryRows rows(LayoutOf(options, machine));
  VocabularyRig rig(options, VocabularyAdaFest(options.model.space), machine.workers,
                    *machine.backend, rows);
  const auto batches = VocabularySteps(vocabulary, kWarmUpSteps + kRounds * steps, 1);
  const std::span all(batches);
  TACIT_RETURN_IF_ERROR(rig.Take(all.first(kWarmUpSteps)));
  std::vector<double> seconds;
  for (size_t round = 0; round < kRounds; ++round) {
    TACIT_ASSIGN(const double one, rig.Take(all.subspan(kWarmUpSteps + round * steps, steps)));
    seconds.push_back(one);
  }
  return Median(std::move(seconds));
}

// The least that dense noise can cost: drawing the noise into memory with all workers, and
// streaming the table through them. Seconds per number; the best of a few tries.
struct Limits {
  double noise = 1e9, memory = 1e9;
};
void MeasureLimits(uint64_t numbers, Machine& machine, Limits* best) {
  const size_t n = std::min<uint64_t>(numbers, kLimitFloats);
  std::vector<float> out(n);
  const auto noise = noise::MakeNoiseSource(machine.workers);
  const mechanism::Grid grid = mechanism::MakeGrid(1, 1);
  const SystemClock clock;
  for (int i = 0; i < 4; ++i) {
    const auto start = clock.Now();
    mechanism::ReleaseNoise(grid, 1, *noise, out);
    const auto middle = clock.Now();
    machine.workers.Run(n, [&](size_t begin, size_t end, size_t) {
      float* values = out.data();
      for (size_t k = begin; k < end; ++k) values[k] *= 0.999f;
    });
    const double numbers_now = static_cast<double>(n);
    best->noise = std::min(best->noise, Seconds(middle - start) / numbers_now);
    best->memory = std::min(best->memory, Seconds(clock.Now() - middle) / numbers_now);
  }
}

struct DenseTime {
  double seconds = 0;
  Limits limits;  // per number
};

Result<DenseTime> TimeDense(uint64_t vocabulary, size_t steps, Machine& machine,
                            const ProgressNote& progress) {
  const train::ClickOptions options = VocabularyLearner(vocabulary);
  const double available = static_cast<double>(train::AvailableMemory());
  TACIT_ASSIGN(
      const auto rows,
      train::FlatRows::Make(LayoutOf(options, machine),
                            static_cast<uint64_t>(available * kMemoryShare), machine.workers));
  VocabularyRig rig(options, VocabularyDense(options.model.space), machine.workers,
                    *machine.backend, *rows);
  const size_t rounds = vocabulary <= kShortDense ? kRounds : 1;
  const auto batches = VocabularySteps(vocabulary, rounds * steps + 1, 1);
  const std::span all(batches);
  DenseTime time;
  MeasureLimits(vocabulary * Setting::kDim, machine, &time.limits);
  TACIT_RETURN_IF_ERROR(rig.Take(all.first(1)));
  std::vector<double> seconds;
  for (size_t round = 0; round < rounds; ++round) {
    const size_t before = round * steps;
    TACIT_ASSIGN(const double one, rig.Take(all.subspan(1 + before, steps), [&](size_t taken) {
      progress.Say(fmt::format("dense DP-SGD, vocabulary {}: step {} of {}",
                               WithThousands(vocabulary), before + taken, rounds * steps));
    }));
    seconds.push_back(one);
  }
  time.seconds = Median(std::move(seconds));
  MeasureLimits(vocabulary * Setting::kDim, machine, &time.limits);
  return time;
}

void AddSetting(boost::json::object* more) {
  (*more)["dimension"] = Setting::kDim;
  (*more)["batch"] = Setting::kBatch;
  (*more)["ids"] = "zipf";
  (*more)["zipf_exponent"] = Setting::kZipfExponent;
  (*more)["sigma"] = Setting::kSigma;
  (*more)["sigma_selection"] = VocabularySigmas().selection;
  (*more)["sigma_gradient"] = VocabularySigmas().gradient;
  (*more)["clip_selection"] = Setting::kClipSelection;
  (*more)["clip_gradient"] = Setting::kClipGradient;
  (*more)["threshold"] = Setting::kThreshold;
}

void AddSelection(const SelectionFigures& figures, boost::json::object* more) {
  (*more)["touched_rows"] = figures.touched_rows;
  (*more)["kept_rows"] = figures.kept_rows;
  (*more)["kept_mass"] = figures.kept_mass;
  (*more)["extra_rows"] = figures.extra_rows;
  (*more)["extra_rows_expected"] = figures.extra_rows_expected;
  (*more)["extra_share"] = figures.extra_rows_expected / figures.touched_rows;
}

void AddDense(const std::optional<DenseTime>& dense, uint64_t vocabulary, double adafest,
              size_t steps, boost::json::object* more) {
  boost::json::object& out = *more;
  if (!dense) {
    out["dense_s"] = out["factor"] = out["dense_limit_s"] = out["dense_share"] = nullptr;
    return;
  }
  const double numbers = static_cast<double>(vocabulary * Setting::kDim * steps);
  const double limit = numbers * std::max(dense->limits.noise, dense->limits.memory);
  out["dense_s"] = dense->seconds;
  out["factor"] = dense->seconds / adafest;
  out["dense_limit_s"] = limit;
  out["dense_share"] = limit / dense->seconds;
  out["noise_limit_per_second"] = 1 / dense->limits.noise;
  out["memory_limit_per_second"] = 1 / dense->limits.memory;
}

std::string Note(const std::optional<DenseTime>& dense, const boost::json::object& more,
                 const SelectionFigures& figures) {
  std::string note;
  if (dense)
    note = fmt::format("dense {:.3f} s ({:.0f} % of its limit), {:.0f} times; ", dense->seconds,
                       100 * more.at("dense_share").as_double(), more.at("factor").as_double());
  return note + fmt::format(
                    "{:.0f} rows touched, {:.1f} kept with {:.0f} % of the mass, {:.3f} "
                    "extra ({:.2f} %)",
                    figures.touched_rows, figures.kept_rows, 100 * figures.kept_mass,
                    figures.extra_rows_expected, 100 * more.at("extra_share").as_double());
}

Result<BenchRow> BenchSize(const Size& size, size_t steps, Machine& machine,
                           const ProgressNote& progress) {
  const uint64_t vocabulary = size.vocabulary;
  progress.Say(fmt::format("AdaFEST, vocabulary {}", WithThousands(vocabulary)));
  TACIT_ASSIGN(const double adafest, TimeAdaFest(vocabulary, steps, machine));
  std::optional<DenseTime> dense;
  if (size.paper_factor) {
    auto time = TimeDense(vocabulary, steps, machine, progress);
    if (!time && time.error().code != ErrorCode::kRefused) return Fail(std::move(time.error()));
    if (time) dense = *time;
    if (!time) std::fprintf(stderr, "dense DP-SGD is left out: %s\n", time.error().message.c_str());
  }
  const train::ClickOptions options = VocabularyLearner(vocabulary);
  const SelectionFigures figures =
      MeasureSelection(options.model.space, VocabularySteps(vocabulary, 100, 2));
  BenchRow row{.name = fmt::format("vocabulary-{}", vocabulary),
               .value = adafest / static_cast<double>(steps) * 1e3,
               .unit = "ms/step, AdaFEST"};
  row.more = {
      {"vocabulary", vocabulary}, {"rows", "memory"}, {"steps", steps}, {"adafest_s", adafest}};
  AddDense(dense, vocabulary, adafest, steps, &row.more);
  row.more["paper_factor"] =
      size.paper_factor ? boost::json::value(*size.paper_factor) : boost::json::value(nullptr);
  AddSelection(figures, &row.more);
  AddSetting(&row.more);
  row.note = Note(dense, row.more, figures);
  return row;
}

}  // namespace

Result<std::vector<BenchRow>> BenchVocabulary(const BenchRequest& request) {
  const ProgressNote progress;
  Machine machine;
  std::vector<BenchRow> rows;
  const std::span<const Size> sizes =
      request.quick ? std::span<const Size>(kQuickSizes) : std::span<const Size>(kSizes);
  for (const Size& size : sizes) {
    TACIT_ASSIGN(BenchRow row, BenchSize(size, request.quick ? 10 : 100, machine, progress));
    rows.push_back(std::move(row));
  }
  for (const uint64_t vocabulary : {uint64_t{10'000'000}, uint64_t{100'000'000}}) {
    progress.Say(fmt::format("AdaFEST through a store, vocabulary {}", WithThousands(vocabulary)));
    TACIT_ASSIGN(BenchRow row, BenchVocabularyStore(vocabulary, request.quick));
    AddSetting(&row.more);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tacit::bench
