// Measures workers that sum without a broker, by stages; workers_model.h carries the rates to more
// of them. One and two workers are also measured, and held against the formula.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

#include "bench/bench_data.h"
#include "bench/suite.h"
#include "bench/workers_model.h"
#include "noise/noise.h"
#include "stream/generator/criteo_generator.h"
#include "train/click/memory_rows.h"
#include "train/learner/part_summer.h"
#include "workers/collector.h"
#include "workers/dealer.h"
#include "workers/records.h"

namespace tacit::bench {
namespace {

using Steady = std::chrono::steady_clock;

// The rest of a gap was no part of this measurement: it is that of the metric beside real brokers.
constexpr double kRestSeconds = 0.1;
constexpr double kPeriodSeconds = 10;
// The bar: seconds in which a million rows of messages are added.
constexpr double kAskedSeconds = 0.025;
constexpr uint64_t kRunRecords = 4096;
constexpr size_t kAddings = 5;  // of a message: the median counts

double SecondsSince(Steady::time_point begin) {
  return std::chrono::duration<double>(Steady::now() - begin).count();
}

// Processor time of this thread.
double ProcessorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Runs of generated records, as a source hands them over.
std::vector<event::RawRecords> MakeRuns(size_t runs, uint64_t seed) {
  const stream::CriteoGenerator generator(
      {.days = 1, .rows_per_day = runs * kRunRecords, .seed = seed});
  std::vector<event::RawRecords> all(runs);
  for (size_t i = 0; i < runs; ++i) {
    std::string lines;
    generator.Generate(0, i * kRunRecords, kRunRecords, &lines, nullptr);
    all[i].first_offset = i * kRunRecords;
    for (size_t begin = 0, end; begin < lines.size(); begin = end + 1) {
      end = lines.find('\n', begin);
      all[i].bytes.append(lines, begin, end - begin);
      all[i].end.push_back(static_cast<uint32_t>(all[i].bytes.size()));
    }
  }
  return all;
}

// A worker's whole work on a slice, on one core.
class SumWorker {
 public:
  SumWorker(const wiring::Assembly& assembly, store::WorkingRows& rows)
      : transform_(*assembly.transform),
        codec_(event::MakeCriteoTsvCodec(transform_)),
        summer_(assembly.learners[0].model->MakeSummer(rows, pool_)) {}

  Status Load(const std::string& released) { return summer_->Load(released); }
  Result<std::string> Sum(const std::vector<event::RawRecords>& runs) {
    for (const event::RawRecords& run : runs) {
      stream::StepBatch step;
      dead_.clear();
      transform_.StartBatch(&step.examples);
      codec_->Decode(run, &step.examples, &dead_);
      step.units = static_cast<uint32_t>(step.examples.size());
      for (uint32_t i = 0; i < step.units; ++i) step.unit_of.push_back(i);
      TACIT_RETURN_IF_ERROR(summer_->Add(step));
    }
    return summer_->Take();
  }

 private:
  const event::FeatureTransform& transform_;
  const std::unique_ptr<event::Codec> codec_;
  WorkerPool pool_{{.workers = 1}};
  const std::unique_ptr<train::PartSummer> summer_;
  std::vector<event::DeadLetter> dead_;
};

// A trainer that takes messages, and a model that workers sum by.
class SumTrainer {
 public:
  static Result<std::unique_ptr<SumTrainer>> Make(const wiring::Assembly& assembly) {
    auto trainer = std::make_unique<SumTrainer>(assembly);
    TACIT_ASSIGN(trainer->learner_,
                 trainer->model_.Make({.noise = noise::MakeNoiseSource(trainer->pool_),
                                       .backend = {},
                                       .workers = trainer->pool_,
                                       .rows = trainer->rows_}));
    return trainer;
  }
  explicit SumTrainer(const wiring::Assembly& assembly)
      : model_(*assembly.learners[0].model), rows_(model_.Rows()) {}

  // Checks and adds a message, as the dealer and the trainer do.
  Status Add(const std::string& message) {
    TACIT_RETURN_IF_ERROR(model_.EventsOfPart(message));
    TACIT_RETURN_IF_ERROR(learner_->AddPart(message));
    return {};
  }
  // Releases what was added; returns the rows that it touched.
  Result<double> Release(const stream::StepBatch& nothing) {
    const std::atomic<bool> go_on = false;
    train::StepReport report;
    TACIT_RETURN_IF_ERROR(learner_->TakeStep(nothing, go_on, &report));
    if (const auto released = learner_->TakeReleased()) released_ = *released;
    return static_cast<double>(report.rows_touched);
  }
  const std::string& released() const { return released_; }
  train::MemoryRows& rows() { return rows_; }

 private:
  const wiring::ModelPlan& model_;
  train::MemoryRows rows_;
  WorkerPool pool_{{.workers = 1}};
  std::unique_ptr<train::Learner> learner_;
  std::string released_;
};

Status Copy(const store::RowLayout& layout, store::WorkingRows& from, store::WorkingRows& to) {
  for (uint64_t row = 0; row < layout.space.rows(); ++row) {
    float *its = nullptr, *copy = nullptr;
    TACIT_RETURN_IF_ERROR(from.Gather({&row, 1}, {&its, 1}));
    TACIT_RETURN_IF_ERROR(to.Gather({&row, 1}, {&copy, 1}));
    std::copy_n(its, layout.RowFloats(0), copy);
  }
  return {};
}

// Opens the chunks of a message, and puts it together, as the dealer does. Returns the processor
// time.
Result<double> Open(const std::string& message, uint64_t events) {
  const workers::SharedKey key{};
  const workers::Origin origin{.worker = "bench"};
  const OffsetRange range{0, 0, events};
  const workers::Body body{
      .ranges = {{.range = range, .last = stream::LastRecord{.offset = events - 1}}},
      .sums = workers::EncodeParts({{.key = 0, .bytes = message}})};
  const auto chunks = workers::SealBody(key, origin, workers::EncodeBody(body));
  workers::Collector collector(key, workers::kHeldBytesMost);
  collector.Begin({.head = origin.head, .build = origin.build, .ranges = {range}, .before = {}});
  const double before = ProcessorSeconds();
  for (const workers::KafkaRecord& chunk : chunks) {
    TACIT_ASSIGN(const auto sealed, workers::ReadSums(chunk.key, chunk.value));
    const workers::Taken taken = collector.Take(sealed);
    if (taken.outcome != workers::Outcome::kCounted) continue;
    TACIT_ASSIGN(const auto parts, workers::DecodeParts(taken.body.sums));
    if (parts[0].bytes == message) return ProcessorSeconds() - before;
  }
  return Fail(ErrorCode::kInternal, "a message that was sealed is not the one that was opened");
}

struct SumsMeasured {
  WorkersRates rates;
  double open_row_s = 0;
  double two_events_s = 0;  // of two workers on two threads
};

Result<SumsMeasured> Measure(const wiring::Assembly& assembly, size_t runs) {
  SumsMeasured measured;
  WorkersRates& rates = measured.rates;
  TACIT_ASSIGN(const auto trainer, SumTrainer::Make(assembly));
  stream::StepBatch nothing;
  assembly.transform->StartBatch(&nothing.examples);
  TACIT_RETURN_IF_ERROR(trainer->Release(nothing));
  train::MemoryRows other_rows(assembly.learners[0].model->Rows());
  TACIT_RETURN_IF_ERROR(Copy(assembly.learners[0].model->Rows(), trainer->rows(), other_rows));
  SumWorker worker(assembly, trainer->rows()), other(assembly, other_rows);
  TACIT_RETURN_IF_ERROR(worker.Load(trainer->released()));
  TACIT_RETURN_IF_ERROR(other.Load(trainer->released()));

  const std::vector<event::RawRecords> all = MakeRuns(runs, 1);
  const std::vector<event::RawRecords> some(all.begin(),
                                            all.begin() + static_cast<ptrdiff_t>(runs / 4));
  const double events = static_cast<double>(runs * kRunRecords);
  double bytes = 0;
  for (const event::RawRecords& run : all) bytes += static_cast<double>(run.bytes.size());
  rates.event_bytes = bytes / events;
  TACIT_RETURN_IF_ERROR(worker.Sum(some));  // its memory is there from now on
  auto begin = Steady::now();
  TACIT_ASSIGN(const std::string large, worker.Sum(all));
  rates.events_s = events / SecondsSince(begin);
  TACIT_ASSIGN(const std::string small, worker.Sum(some));

  begin = Steady::now();
  Result<std::string> first, second;
  std::thread beside([&] { second = other.Sum(all); });
  first = worker.Sum(all);
  beside.join();
  measured.two_events_s = 2 * events / SecondsSince(begin);
  if (!first || !second || *first != large || *second != large)
    return Fail(ErrorCode::kInternal, "two workers have other sums of the same records");

  TACIT_ASSIGN(const std::string empty, worker.Sum({}));
  const auto add = [&](const std::string& message) -> Result<WorkersRates::Message> {
    std::array<double, kAddings> added_s{};
    double rows = 0;
    for (double& seconds : added_s) {
      TACIT_RETURN_IF_ERROR(trainer->Add(empty));  // a period's sums are there from now on
      const double before = ProcessorSeconds();
      TACIT_RETURN_IF_ERROR(trainer->Add(message));
      seconds = ProcessorSeconds() - before;
      begin = Steady::now();
      TACIT_ASSIGN(rows, trainer->Release(nothing));
      rates.release_s = SecondsSince(begin);
    }
    std::ranges::nth_element(added_s, added_s.begin() + kAddings / 2);
    rates.add_row_s = added_s[kAddings / 2] / rows;
    rates.row_bytes = static_cast<double>(message.size()) / rows;
    return WorkersRates::Message{.events = 0, .rows = rows};
  };
  TACIT_ASSIGN(rates.small, add(small));
  TACIT_ASSIGN(rates.large, add(large));
  TACIT_ASSIGN(const double open_s, Open(large, runs * kRunRecords));
  measured.open_row_s = open_s / rates.large.rows;
  rates.small.events = static_cast<double>(some.size() * kRunRecords);
  rates.large.events = events;
  rates.rows_most = static_cast<double>(assembly.learners[0].model->Rows().space.rows());
  rates.rest_s = kRestSeconds;
  return measured;
}

BenchRow Outlook(const WorkersRates& rates, double workers) {
  const WorkersOutlook outlook = LookAhead(rates, {.workers = workers, .period_s = kPeriodSeconds});
  return {.name = fmt::format("workers-ahead-{:.0f}", workers),
          .value = outlook.events_s,
          .unit = "events/s",
          .limit = workers * rates.events_s,
          .more = {{"period_s", kPeriodSeconds},
                   {"gap_s", outlook.gap_s},
                   {"message_rows", outlook.message_rows},
                   {"period_bytes", outlook.period_bytes},
                   {"adding_s", outlook.adding_s},
                   {"event_bytes_s", outlook.event_bytes_s},
                   {"adds_in_time", outlook.adds_in_time}}};
}

}  // namespace

Result<std::vector<BenchRow>> BenchWorkers(const BenchRequest& request) {
  TACIT_ASSIGN(const BenchSetup setup, MakeBenchSetup({.batch = kRunRecords, .linear = true}));
  TACIT_ASSIGN(const SumsMeasured measured, Measure(setup.assembly, request.quick ? 8 : 128));
  const WorkersRates& rates = measured.rates;
  std::vector<BenchRow> rows = {
      {.name = "workers-sum", .value = rates.events_s, .unit = "events/s", .limit = {}},
      {.name = "workers-sum-two",
       .value = measured.two_events_s,
       .unit = "events/s",
       .limit = 2 * rates.events_s,
       .note = "of the formula, without a gap"},
      {.name = "workers-message",
       .value = rates.row_bytes,
       .unit = "bytes/row",
       .more = {{"rows", rates.large.rows}, {"events", rates.large.events}}},
      {.name = "workers-add",
       .value = 1e6 * rates.add_row_s,
       .unit = "s for 1e6 rows",
       .limit = kAskedSeconds},
      {.name = "workers-open", .value = 1e6 * measured.open_row_s, .unit = "s for 1e6 rows"},
      {.name = "workers-release", .value = rates.release_s, .unit = "s"}};
  for (const double workers : {1, 8, 24, 100}) rows.push_back(Outlook(rates, workers));
  return rows;
}

}  // namespace tacit::bench
