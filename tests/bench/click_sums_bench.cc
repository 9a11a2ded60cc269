// The click model out of noised sums over a log, period by period, at epsilon 1, 3 and 8 and
// without privacy: learns the first periods, predicts the rest with the model as it is then
// ("held"), then goes on learning them, each predicted before it is learnt from ("served"). Prints
// AUC, log loss, how near predictions are to clicks, weights written a period and the seconds a
// period takes.
//
//   click_sums_bench [--churn SHARE] [--selection DEVIATIONS] [--crosses] [SEED...]
//       the streaming log: 24 days, 18 learnt; seeds 1 to 3. With --selection no value moves whose
//       count has fewer deviations, and no table of categories is released whole. With --crosses
//       the generator's pairs of columns are crossed
//   click_sums_bench --log FILE PARTS
//       Criteo lines: 60,000 learnt in PARTS, 20,000 held
//   click_sums_bench --start FILE OPENING
//       Criteo lines: four files of 20,000, a period each, the first opened by OPENING records (0:
//       not): entropy over a constant's, predicted over clicks, of all and of each file
//   click_sums_bench --tables
//       the same periods of 150,000 events over columns of 1e5 and of 1e8 values, released by their
//       counts: processor time a period, in turns, and the memory that grew
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/auc.h"
#include "base/check.h"
#include "base/threads/worker_pool.h"
#include "event/codec.h"
#include "noise/noise.h"
#include "privacy/calibrate.h"
#include "stream/generator/criteo_generator.h"
#include "stream/log/log_source.h"
#include "support/criteo_schema.h"
#include "train/click/memory_rows.h"
#include "train/linear/linear_columns.h"
#include "train/linear/linear_learner.h"

namespace tacit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilons[] = {1, 3, 8, kInfinity};
constexpr uint32_t kDays = 24, kLearntDays = 18;
constexpr uint64_t kRowsPerDay = 150'000;
constexpr double kStreamDelta = 3.7e-7;       // 1 / (18 * 150,000)
constexpr uint64_t kWholeWithSelection = 64;  // the bins of the numbers
// The columns that act together in the generator.
constexpr const char* kPairs[] = {"C6*C14", "C17*C23", "C5*C9", "C25*C22", "C8*C20"};
constexpr uint64_t kLogLearnt = 60'000, kLogRecords = 80'000;

// The tables of config/demo.yaml.
event::FeatureSchema Schema() {
  std::vector<uint64_t> buckets = {1473, 1154, 82742, 18941, 610, 46,    1173,  1266, 16,
                                   9091, 5919, 64301, 3208,  54,  1551,  44263, 20,   5486,
                                   2162, 16,   56474, 34,    30,  27361, 208,   12935};
  for (uint64_t& rows : buckets) rows = std::max<uint64_t>(256, 2 * rows);
  return event::CriteoSchema(13, buckets);
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
  double LogLoss() const {
    double sum = 0;
    for (size_t i = 0; i < logits.size(); ++i)
      sum += std::log1p(std::exp(labels[i] > 0.5f ? -logits[i] : logits[i]));
    return sum / static_cast<double>(logits.size());
  }
  // Predicted clicks over clicks: of all events, and where it is furthest from 1 of the events'
  // tenths by prediction.
  std::pair<double, double> Calibration() const {
    std::vector<uint32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [&](uint32_t i) { return logits[i]; });
    double predicted = 0, clicks = 0, worst = 1;
    for (size_t tenth = 0; tenth < 10; ++tenth) {
      double of_predicted = 0, of_clicks = 0;
      for (size_t i = order.size() * tenth / 10; i < order.size() * (tenth + 1) / 10; ++i) {
        of_predicted += 1 / (1 + std::exp(-static_cast<double>(logits[order[i]])));
        of_clicks += labels[order[i]];
      }
      const double ratio = of_predicted / of_clicks;
      if (std::abs(std::log(ratio)) > std::abs(std::log(worst))) worst = ratio;
      predicted += of_predicted;
      clicks += of_clicks;
    }
    return {predicted / clicks, worst};
  }
};

// The runs of one call share these.
struct Setting {
  double delta = 0;
  bool opens = false;
  double selection = 0;  // 0: whole tables
  std::vector<std::string> crosses = {};
};

// One learner's way through a log.
class Run {
 public:
  Run(double epsilon, const Setting& setting, const event::FeatureSchema& schema,
      WorkerPool& workers)
      : epsilon_(epsilon) {
    train::LinearLearnerOptions options;
    options.id = "sums";
    options.opens = setting.opens;
    auto crosses = train::LinearCrosses(schema, setting.crosses);
    TACIT_CHECK(crosses.has_value(), "the schema has these columns");
    options.columns = std::make_shared<const model::linear::Columns>(
        train::LinearColumns(schema, std::move(*crosses)));
    if (epsilon < kInfinity) {
      const auto sigma = privacy::CalibrateOnce({.epsilon = epsilon, .delta = setting.delta});
      TACIT_CHECK(sigma.has_value(), "no noise fits the promise");
      options.noise_multiplier = *sigma;
    }
    sigma_ = options.noise_multiplier;
    if (setting.selection > 0) {
      options.threshold_deviations = options.update.known_deviations = setting.selection;
      options.whole_column_most = kWholeWithSelection;
    }
    rows_ = std::make_unique<train::MemoryRows>(train::LinearRowLayout(*options.columns));
    learner_ = std::make_unique<train::LinearLearner>(
        std::move(options), noise::MakeNoiseSource(workers), *rows_, workers);
  }

  // It predicts a step, then learns from it; the predictions go to `kept`, unless that is null.
  void Learn(const stream::StepBatch& step, Predictions* kept) {
    static const std::atomic<bool> kNever = false;
    const auto start = std::chrono::steady_clock::now();
    train::StepReport report;
    const auto taken = learner_->TakeStep(step, kNever, &report);
    TACIT_CHECK(taken.has_value() && *taken);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++periods_;
    written_ += report.rows_written;
    if (kept != nullptr) kept->Add(step, report);
  }
  void Predict(const stream::StepBatch& step) {
    train::StepReport report;
    TACIT_CHECK(learner_->Preview(step, &report).has_value());
    held_.Add(step, report);
  }

  double epsilon() const { return epsilon_; }
  Predictions& early() { return early_; }
  Predictions& served() { return served_; }

  void Print(std::string_view log) const {
    const auto periods = static_cast<double>(periods_);
    fmt::print("| {} | {} | {:.2f} | {:.4f}", log,
               epsilon_ < kInfinity ? fmt::format("{}", epsilon_) : "none", sigma_, held_.Auc());
    if (!served_.logits.empty()) {
      const auto [all, tenth] = served_.Calibration();
      fmt::print(" | {:.4f} | {:.4f} | {:.4f} | {:.3f}, {:.3f}", served_.Auc(), early_.Auc(),
                 served_.LogLoss(), all, tenth);
    }
    fmt::print(" | {:.3f} | {:.0f} | {:.2f} |\n", learner_->state().rate,
               static_cast<double>(written_) / periods, seconds_ / periods);
    std::fflush(stdout);
  }

 private:
  const double epsilon_;
  double sigma_ = 0;
  std::unique_ptr<train::MemoryRows> rows_;
  std::unique_ptr<train::LinearLearner> learner_;
  Predictions held_, early_, served_;
  uint64_t periods_ = 0, written_ = 0;
  double seconds_ = 0;
};

std::vector<Run> MakeRuns(const Setting& setting, WorkerPool& workers) {
  std::vector<Run> runs;
  runs.reserve(std::size(kEpsilons));
  for (const double epsilon : kEpsilons) runs.emplace_back(epsilon, setting, Schema(), workers);
  return runs;
}

void RunStream(uint64_t seed, double churn, const Setting& setting, WorkerPool& workers) {
  const event::FeatureTransform transform(Schema());
  const stream::CriteoGenerator generator(
      {.days = kDays, .rows_per_day = kRowsPerDay, .seed = seed, .churn = churn});
  std::vector<Run> runs = MakeRuns(setting, workers);
  const auto day = [&](uint32_t d) {
    const event::Batch batch = GenerateDay(transform, generator, d);
    return StepOf(batch, 0, batch.size());
  };
  for (uint32_t d = 0; d < kDays; ++d) {
    const stream::StepBatch step = day(d);
    for (Run& run : runs)
      d >= kLearntDays ? run.Predict(step)
                       : run.Learn(step, d == 1 || d == 2 ? &run.early() : nullptr);
  }
  for (uint32_t d = kLearntDays; d < kDays; ++d) {
    const stream::StepBatch step = day(d);
    for (Run& run : runs) run.Learn(step, &run.served());
  }
  for (const Run& run : runs)
    run.Print(fmt::format("seed {}{}{}", seed, churn > 0 ? fmt::format(", churn {}", churn) : "",
                          setting.crosses.empty() ? "" : ", crossed"));
}

event::Batch ReadLog(const std::string& path) {
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
  return all;
}

void RunStart(const std::string& path, uint64_t opening, WorkerPool& workers) {
  constexpr uint64_t kFiles = 4, kFile = kLogRecords / kFiles;
  const event::Batch all = ReadLog(path);
  std::vector<Run> runs = MakeRuns({.delta = 1e-6, .opens = opening > 0}, workers);
  for (Run& run : runs) {
    double loss = 0, constants = 0;
    std::string files;
    for (uint64_t file = 0; file < kFiles; ++file) {
      Predictions kept;
      const uint64_t begin = file * kFile, end = begin + kFile;
      const uint64_t from = file == 0 ? opening : begin;
      if (from > begin) run.Learn(StepOf(all, begin, from), &kept);
      run.Learn(StepOf(all, from, end), &kept);
      const double rate = std::accumulate(kept.labels.begin(), kept.labels.end(), 0.0) / kFile;
      const double constant = -rate * std::log(rate) - (1 - rate) * std::log1p(-rate);
      loss += kept.LogLoss();
      constants += constant;
      files +=
          fmt::format(" {:.3f}, {:.2f} |", kept.LogLoss() / constant, kept.Calibration().first);
    }
    fmt::print("| {} | {} | {:.4f} |{}\n", opening, run.epsilon(), loss / constants, files);
    std::fflush(stdout);
  }
}

void RunLog(const std::string& path, uint64_t parts, WorkerPool& workers) {
  const event::Batch all = ReadLog(path);
  std::vector<Run> runs = MakeRuns({.delta = 1.0 / kLogLearnt}, workers);
  for (Run& run : runs) {
    for (uint64_t part = 0; part < parts; ++part)
      run.Learn(StepOf(all, kLogLearnt * part / parts, kLogLearnt * (part + 1) / parts), nullptr);
    run.Predict(StepOf(all, kLogLearnt, kLogRecords));
  }
  for (const Run& run : runs) run.Print(fmt::format("{} parts", parts));
}

// Learns periods over four columns of `rows` values each, and a small one.
class TableRun {
 public:
  explicit TableRun(uint64_t rows) {
    std::vector<model::linear::CategoryColumn> columns{{.name = "small", .rows = 64}};
    for (size_t j = 0; j < kLargeColumns; ++j)
      columns.push_back({.name = fmt::format("large{}", j), .rows = rows});
    train::LinearLearnerOptions options;
    options.id = "sums";
    options.columns = std::make_shared<const model::linear::Columns>(
        std::move(columns), std::vector<model::linear::NumberColumn>());
    options.noise_multiplier = 1;
    options.whole_column_most = 64;
    columns_ = options.columns;
    rows_ = std::make_unique<train::MemoryRows>(train::LinearRowLayout(*columns_));
    learner_ = std::make_unique<train::LinearLearner>(std::move(options), noise::MakeNoiseSource(),
                                                      *rows_, workers_);
  }

  // Values by Zipf among the first 1e5 of the table, spread over all of it.
  stream::StepBatch Period(uint64_t seed) const {
    stream::StepBatch step;
    event::Batch& batch = step.examples;
    batch.slots = kLargeColumns + 1;
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<> uniform;
    const auto tables = columns_->space().tables();
    for (uint32_t i = 0; i < kRowsPerDay; ++i) {
      batch.label.push_back(random() % 4 == 0 ? 1.0f : 0.0f);
      for (size_t j = 0; j <= kLargeColumns; ++j) {
        const auto rank = static_cast<uint64_t>(std::pow(kRanks, uniform(random)));
        batch.row.push_back(tables[j].first +
                            (j == 0 ? rank % 64 : rank * (tables[j].rows / kRanks)));
        batch.slot_end.push_back(static_cast<uint32_t>(batch.row.size()));
      }
      step.unit_of.push_back(i);
    }
    step.units = kRowsPerDay;
    return step;
  }
  // Learns a period; returns the processor time.
  double Learn(const stream::StepBatch& step) {
    static const std::atomic<bool> kNever = false;
    train::StepReport report;
    const std::clock_t start = std::clock();
    const auto taken = learner_->TakeStep(step, kNever, &report);
    TACIT_CHECK(taken.has_value() && *taken);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }

 private:
  static constexpr size_t kLargeColumns = 4;
  static constexpr uint64_t kRanks = 100'000;

  std::shared_ptr<const model::linear::Columns> columns_;
  std::unique_ptr<train::MemoryRows> rows_;
  WorkerPool workers_{{.workers = 1}};
  std::unique_ptr<train::LinearLearner> learner_;
};

double ResidentMiB() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void RunTables() {
  constexpr uint64_t kTurns = 15;
  const double before = ResidentMiB();
  TableRun small(100'000);
  const double after_small = (small.Learn(small.Period(0)), ResidentMiB());
  TableRun large(100'000'000);
  const double after_large = (large.Learn(large.Period(0)), ResidentMiB());
  std::vector<double> seconds[2], ratios;
  for (uint64_t turn = 1; turn <= kTurns; ++turn) {
    const stream::StepBatch of_small = small.Period(turn), of_large = large.Period(turn);
    double took[2];
    for (const uint64_t i : {turn % 2, 1 - turn % 2})
      took[i] = i == 0 ? small.Learn(of_small) : large.Learn(of_large);
    for (const size_t i : {0, 1}) seconds[i].push_back(took[i]);
    ratios.push_back(took[1] / took[0]);
  }
  for (auto* some : {&seconds[0], &seconds[1], &ratios}) std::ranges::sort(*some);
  fmt::print(
      "| values a column | s a period | MiB |\n|---|---|---|\n| 1e5 | {:.3f} | {:.0f} |\n"
      "| 1e8 | {:.3f} | {:.0f} |\n\n1e8 over 1e5: {:.3f} (quartiles {:.3f}, {:.3f})\n",
      seconds[0][kTurns / 2], after_small - before, seconds[1][kTurns / 2],
      after_large - after_small, ratios[kTurns / 2], ratios[kTurns / 4], ratios[3 * kTurns / 4]);
}

int Main(int argc, char** argv) {
  const auto is = [&](int i, std::string_view text) { return argc > i && argv[i] == text; };
  WorkerPool workers({.workers = 1});
  if (is(1, "--log")) {
    TACIT_CHECK(argc == 4, "--log FILE PARTS");
    fmt::print("| log | epsilon | sigma | held | eta | weights a period | s a period |\n");
    fmt::print("|---|---|---|---|---|---|---|\n");
    RunLog(argv[2], std::strtoull(argv[3], nullptr, 10), workers);
    return 0;
  }
  if (is(1, "--start")) {
    TACIT_CHECK(argc == 4, "--start FILE OPENING");
    fmt::print("| opening | epsilon | all | file 1 | file 2 | file 3 | file 4 |\n");
    fmt::print("|---|---|---|---|---|---|---|\n");
    RunStart(argv[2], std::strtoull(argv[3], nullptr, 10), workers);
    return 0;
  }
  if (is(1, "--tables")) {
    RunTables();
    return 0;
  }
  Setting setting{.delta = kStreamDelta};
  double churn = 0;
  int next = 1;
  for (; next < argc && argv[next][0] == '-'; ++next) {
    if (is(next, "--crosses")) {
      setting.crosses.assign(std::begin(kPairs), std::end(kPairs));
      continue;
    }
    TACIT_CHECK(next + 1 < argc && (is(next, "--churn") || is(next, "--selection")),
                "an option that there is not");
    (is(next, "--churn") ? churn : setting.selection) = std::strtod(argv[next + 1], nullptr);
    ++next;
  }
  fmt::print(
      "| log | epsilon | sigma | held | served | days 1, 2 | log loss | predicted / clicks: all, "
      "worst tenth | eta | weights a period | s a period |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::vector<uint64_t> seeds;
  for (; next < argc; ++next) seeds.push_back(std::strtoull(argv[next], nullptr, 10));
  if (seeds.empty()) seeds = {1, 2, 3};
  for (const uint64_t seed : seeds) RunStream(seed, churn, setting, workers);
  return 0;
}

}  // namespace
}  // namespace tacit

int main(int argc, char** argv) { return tacit::Main(argc, argv); }
