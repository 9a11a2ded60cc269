// The click model out of noised sums over a log, period by period, at epsilon 1, 3 and 8 and
// without privacy: learns the first periods, predicts the rest with the model as it is then
// ("held"), then goes on learning them, each predicted before it is learnt from ("served"). Prints
// AUC beside what the model's prototype measured, weights written a period and the seconds a period
// takes.
//
//   click_sums_bench [--churn SHARE] [SEED...]   the streaming log: 24 days, 18 learnt; seeds 1 to
//   3 click_sums_bench --log FILE PARTS            Criteo lines: 60,000 learnt in PARTS, 20,000
//   held
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/auc.h"
#include "base/check.h"
#include "base/worker_pool.h"
#include "event/codec.h"
#include "noise/noise.h"
#include "privacy/calibrate.h"
#include "stream/generator/criteo_generator.h"
#include "stream/log/log_source.h"
#include "support/criteo_schema.h"
#include "train/linear_learner.h"
#include "train/memory_rows.h"

namespace tacit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilons[] = {1, 3, 8, kInfinity};
constexpr uint32_t kDays = 24, kLearntDays = 18;
constexpr uint64_t kRowsPerDay = 150'000;
constexpr double kStreamDelta = 3.7e-7;  // 1 / (18 * 150,000)
constexpr uint64_t kLogLearnt = 60'000, kLogRecords = 80'000;

// The prototype's AUC at kEpsilons, held and served.
struct Expected {
  double held[4], served[4];
};
std::optional<Expected> ExpectedOf(uint64_t seed, double churn) {
  if (churn == 0 && seed == 1)
    return Expected{{.7531, .7614, .7648, .7671}, {.7596, .7678, .7715, .7740}};
  if (churn == 0 && seed == 2)
    return Expected{{.7478, .7555, .7588, .7617}, {.7549, .7624, .7657, .7685}};
  if (churn == 0.9 && seed == 2)
    return Expected{{.7249, .7299, .7311, .7327}, {.7450, .7514, .7527, .7537}};
  return std::nullopt;
}

// The tables of config/demo.yaml.
event::FeatureSchema Schema() {
  static const std::vector<uint64_t> kBuckets = {
      1473, 1154, 82742, 18941, 610,  46,   1173, 1266,  16, 9091, 5919,  64301, 3208,
      54,   1551, 44263, 20,    5486, 2162, 16,   56474, 34, 30,   27361, 208,   12935};
  return event::CriteoSchema(13, kBuckets);
}

event::Batch Decode(const event::FeatureTransform& transform, const event::RawRecords& records) {
  event::Batch batch;
  std::vector<event::DeadLetter> dead;
  transform.StartBatch(&batch);
  event::MakeCriteoTsvCodec(transform)->Decode(records, &batch, &dead);
  TACIT_CHECK(dead.empty(), "lines that cannot be read");
  return batch;
}

event::Batch GenerateDay(const event::FeatureTransform& transform,
                         const stream::CriteoGenerator& generator, uint32_t day) {
  std::string lines;
  generator.Generate(day, 0, generator.options().rows_per_day, &lines, nullptr);
  event::RawRecords records;
  records.first_offset = day * generator.options().rows_per_day;
  for (size_t from = 0, to; from < lines.size(); from = to + 1) {
    to = lines.find('\n', from);
    records.bytes.append(lines, from, to - from);
    records.end.push_back(static_cast<uint32_t>(records.bytes.size()));
  }
  return Decode(transform, records);
}

// Examples [begin, end) as a step: every event is a unit.
stream::StepBatch StepOf(const event::Batch& all, size_t begin, size_t end) {
  stream::StepBatch step;
  step.examples = EmptyLike(all);
  step.examples.AppendRange(all, begin, end);
  step.units = static_cast<uint32_t>(end - begin);
  for (uint32_t u = 0; u < step.units; ++u) step.unit_of.push_back(u);
  return step;
}

struct Predictions {
  std::vector<float> logits, labels;
  void Add(const stream::StepBatch& step, const train::StepReport& report) {
    logits.insert(logits.end(), report.logits.begin(), report.logits.end());
    labels.insert(labels.end(), step.examples.label.begin(), step.examples.label.end());
  }
  double Auc() const { return ExactAuc(logits, labels); }
};

// One learner's way through a log.
class Run {
 public:
  Run(double epsilon, double delta, const event::FeatureSchema& schema, WorkerPool& workers)
      : epsilon_(epsilon) {
    train::LinearLearnerOptions options;
    options.id = "sums";
    options.columns = std::make_shared<const model::linear::Columns>(train::LinearColumns(schema));
    if (epsilon < kInfinity) {
      const auto sigma = privacy::CalibrateOnce({.epsilon = epsilon, .delta = delta});
      TACIT_CHECK(sigma.has_value(), "no noise fits the promise");
      options.noise_multiplier = *sigma;
    }
    sigma_ = options.noise_multiplier;
    rows_ = std::make_unique<train::MemoryRows>(train::LinearRowLayout(*options.columns));
    learner_ = std::make_unique<train::LinearLearner>(
        std::move(options), noise::MakeNoiseSource(workers), *rows_, workers);
  }

  void Learn(const stream::StepBatch& step, bool served) {
    static const std::atomic<bool> kNever = false;
    const auto start = std::chrono::steady_clock::now();
    train::StepReport report;
    const auto taken = learner_->TakeStep(step, kNever, &report);
    TACIT_CHECK(taken.has_value() && *taken);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++periods_;
    written_ += report.rows_written;
    if (served) served_.Add(step, report);
  }
  void Predict(const stream::StepBatch& step) {
    train::StepReport report;
    TACIT_CHECK(learner_->Preview(step, &report).has_value());
    held_.Add(step, report);
  }

  void Print(std::string_view log, size_t place, const std::optional<Expected>& expected) const {
    const auto beside = [&](const double* figures) {
      return expected ? fmt::format(" ({:.4f})", figures[place]) : std::string();
    };
    const auto periods = static_cast<double>(periods_);
    fmt::print("| {} | {} | {:.2f} | {:.4f}{} | {:.4f}{} | {:.3f} | {:.0f} | {:.2f} |\n", log,
               epsilon_ < kInfinity ? fmt::format("{}", epsilon_) : "none", sigma_, held_.Auc(),
               beside(expected ? expected->held : nullptr),
               served_.logits.empty() ? 0 : served_.Auc(),
               served_.logits.empty() ? "" : beside(expected ? expected->served : nullptr),
               learner_->state().rate, static_cast<double>(written_) / periods, seconds_ / periods);
    std::fflush(stdout);
  }

 private:
  const double epsilon_;
  double sigma_ = 0;
  std::unique_ptr<train::MemoryRows> rows_;
  std::unique_ptr<train::LinearLearner> learner_;
  Predictions held_, served_;
  uint64_t periods_ = 0, written_ = 0;
  double seconds_ = 0;
};

std::vector<Run> MakeRuns(double delta, WorkerPool& workers) {
  std::vector<Run> runs;
  runs.reserve(std::size(kEpsilons));
  for (const double epsilon : kEpsilons) runs.emplace_back(epsilon, delta, Schema(), workers);
  return runs;
}

void RunStream(uint64_t seed, double churn, WorkerPool& workers) {
  const event::FeatureTransform transform(Schema());
  const stream::CriteoGenerator generator(
      {.days = kDays, .rows_per_day = kRowsPerDay, .seed = seed, .churn = churn});
  std::vector<Run> runs = MakeRuns(kStreamDelta, workers);
  const auto day = [&](uint32_t d) {
    const event::Batch batch = GenerateDay(transform, generator, d);
    return StepOf(batch, 0, batch.size());
  };
  for (uint32_t d = 0; d < kDays; ++d) {
    const stream::StepBatch step = day(d);
    for (Run& run : runs) d < kLearntDays ? run.Learn(step, false) : run.Predict(step);
  }
  for (uint32_t d = kLearntDays; d < kDays; ++d) {
    const stream::StepBatch step = day(d);
    for (Run& run : runs) run.Learn(step, true);
  }
  for (size_t i = 0; i < runs.size(); ++i)
    runs[i].Print(fmt::format("seed {}{}", seed, churn > 0 ? fmt::format(", churn {}", churn) : ""),
                  i, ExpectedOf(seed, churn));
}

void RunLog(const std::string& path, uint64_t parts, WorkerPool& workers) {
  const event::FeatureTransform transform(Schema());
  auto source = stream::OpenLogSource({.files = {path}});
  TACIT_CHECK(source.has_value(), "the log cannot be opened");
  event::Batch all;
  transform.StartBatch(&all);
  event::RawRecords records;
  while (*(*source)->Poll(std::chrono::milliseconds(0), &records) ==
         stream::PollOutcome::kRecords) {
    const event::Batch some = Decode(transform, records);
    all.AppendRange(some, 0, some.size());
  }
  TACIT_CHECK(all.size() >= kLogRecords, "the log is too short");
  std::vector<Run> runs = MakeRuns(1.0 / kLogLearnt, workers);
  for (Run& run : runs) {
    for (uint64_t part = 0; part < parts; ++part)
      run.Learn(StepOf(all, kLogLearnt * part / parts, kLogLearnt * (part + 1) / parts), false);
    run.Predict(StepOf(all, kLogLearnt, kLogRecords));
  }
  for (size_t i = 0; i < runs.size(); ++i)
    runs[i].Print(fmt::format("{} parts", parts), i, std::nullopt);
}

int Main(int argc, char** argv) {
  const auto is = [&](int i, std::string_view text) { return argc > i && argv[i] == text; };
  WorkerPool workers({.workers = 1});
  fmt::print(
      "| log | epsilon | sigma | AUC held (prototype) | AUC served | eta | weights a period "
      "| s a period |\n|---|---|---|---|---|---|---|---|\n");
  if (is(1, "--log")) {
    TACIT_CHECK(argc == 4, "--log FILE PARTS");
    RunLog(argv[2], std::strtoull(argv[3], nullptr, 10), workers);
    return 0;
  }
  int next = 1;
  double churn = 0;
  if (is(1, "--churn") && argc > 2) {
    churn = std::strtod(argv[2], nullptr);
    next = 3;
  }
  std::vector<uint64_t> seeds;
  for (; next < argc; ++next) seeds.push_back(std::strtoull(argv[next], nullptr, 10));
  if (seeds.empty()) seeds = {1, 2, 3};
  for (const uint64_t seed : seeds) RunStream(seed, churn, workers);
  return 0;
}

}  // namespace
}  // namespace tacit

int main(int argc, char** argv) { return tacit::Main(argc, argv); }
