#include "lab/clicks/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/auc.h"
#include "base/clock.h"
#include "lab/clicks/lazy_dense.h"
#include "privacy/bill.h"
#include "privacy/coverage.h"
#include "train/click/click_learner.h"
#include "train/click/flat_rows.h"
#include "train/click/memory_rows.h"
#include "wiring/kinds/click.h"
#include "wiring/plans/mechanism_factory.h"

namespace tacit::lab {
namespace {

constexpr char kTopic[] = "log";

// Takes one learner through the log.
class Run {
 public:
  // `records` are those of the log.
  static Result<std::unique_ptr<Run>> Start(const wiring::Assembly& assembly,
                                            const RunOptions& options, uint64_t records);

  Status Learn(const EventLog& log);
  // Predicts the records after those learnt from.
  Status Predict(const EventLog& log);
  RunResult Finish() &&;

 private:
  Run(const wiring::Assembly& assembly, const RunOptions& options, uint64_t records)
      : assembly_(assembly),
        options_(options),
        records_(records +
                 (assembly.config.source.passes - 1) * std::min(options.train_to, records)),
        plan_(assembly.learners[options.learner]),
        workers_({.workers = options.workers}),
        backend_(ops::MakeCpuBackend(workers_)) {}

  Status MakeLearner();
  Status MakeClickLearner(train::ClickOptions options);
  Status LearnPass(const EventLog& log);
  Status Take(stream::StepBatch&& step);
  Status TakeStep(const stream::StepBatch& step);
  Status Preview(const stream::StepBatch& step);
  void Observe(const stream::StepBatch& step);
  void Book();  // adds the bill to coverage_
  void Tell(uint64_t records) {
    options_.progress(static_cast<double>(told_ += records) / static_cast<double>(records_));
  }
  bool Measured(const event::Batch& batch) const;
  void Measure(const event::Batch& batch, std::span<const float> logits);

  const wiring::Assembly& assembly_;
  const RunOptions options_;
  const uint64_t records_;  // to be processed, over all passes
  uint64_t told_ = 0;
  const wiring::LearnerPlan& plan_;
  WorkerPool workers_;
  std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<store::WorkingRows> rows_;
  std::unique_ptr<train::Learner> learner_;
  mechanism::Mechanism* mechanism_ = nullptr;  // owned by the learner; null if it has none
  model::ActivationIndexer indexer_;           // for events that are observed but not predicted
  model::Activations observed_;
  stream::Position position_;
  privacy::Coverage coverage_;
  privacy::Bill bill_{"", kTopic};  // of the steps that coverage_ does not have yet
  // With lazy noise on rows: what a step would have written. 0: as reported.
  uint64_t floats_every_step_ = 0, rows_every_step_ = 0;
  RunResult result_;
};

// With plain SGD, noise on rows that no step reads adds up, so it may be drawn later.
bool MayBeLazy(const config::Mechanism& mechanism, const train::OptimizerOptions& optimizer) {
  return mechanism.traits().every_row &&
         mechanism.clipping != config::Mechanism::Clipping::kQuantile && optimizer.kind->linear &&
         optimizer.momentum == 0 && optimizer.average_decay == 0;
}

Result<std::unique_ptr<Run>> Run::Start(const wiring::Assembly& assembly, const RunOptions& options,
                                        uint64_t records) {
  const config::Learner& configured = assembly.config.learners[options.learner];
  if (configured.privacy.of_users())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("learner '{}': privacy.unit: evaluate keeps no count of users; set "
                            "it to event",
                            configured.id));
  std::unique_ptr<Run> run(new Run(assembly, options, records));
  TACIT_RETURN_IF_ERROR(run->MakeLearner());
  return run;
}

Status Run::MakeLearner() {
  if (const train::ClickOptions* clicks = wiring::ClickOptionsOf(plan_))
    return MakeClickLearner(*clicks);
  rows_ = std::make_unique<train::MemoryRows>(plan_.model->Rows());
  TACIT_ASSIGN(learner_,
               plan_.model->Make({.noise = noise::MakeNoiseSource(workers_),
                                  .backend = [this]() -> ops::Backend& { return *backend_; },
                                  .workers = workers_,
                                  .rows = *rows_}));
  return {};
}

Status Run::MakeClickLearner(train::ClickOptions learner) {
  learner.seed += options_.seed_offset;
  learner.index = LearnerIndex(0);
  const config::Mechanism& kind = assembly_.config.learners[options_.learner].mechanism;
  const model::Pctr shape(learner.model, *backend_);
  const store::RowLayout layout = train::MakeRowLayout(learner, shape);
  TACIT_ASSIGN(auto mechanism,
               wiring::MakeMechanism({.config = assembly_.config, .index = options_.learner},
                                     wiring::ClickOptionsOf(plan_)->model.space));
  if (MayBeLazy(kind, learner.optimizer)) {
    auto lazy =
        MakeLazyDense(std::move(mechanism), std::make_unique<train::MemoryRows>(layout), layout,
                      learner.optimizer.row_learning_rate, noise::MakeNoiseSource(workers_));
    mechanism = std::move(lazy.mechanism);
    rows_ = std::move(lazy.rows);
    floats_every_step_ = learner.model.space.floats();
    rows_every_step_ = learner.model.space.rows();
  } else if (kind.traits().every_row && layout.space.rows() > 0) {
    TACIT_ASSIGN(rows_, train::FlatRows::Make(layout, train::AvailableMemory() / 2, workers_));
  } else {
    rows_ = std::make_unique<train::MemoryRows>(layout);
  }
  mechanism_ = mechanism.get();
  learner_ = std::make_unique<train::ClickLearner>(std::move(learner), std::move(mechanism),
                                                   noise::MakeNoiseSource(workers_), *backend_,
                                                   *rows_, nullptr);
  return {};
}

Status Run::Learn(const EventLog& log) {
  for (uint64_t pass = 0; pass < assembly_.config.source.passes; ++pass) {
    position_.pass = pass;
    position_.period_start.clear();
    position_.next.clear();
    result_.events = 0;
    TACIT_RETURN_IF_ERROR(LearnPass(log));
  }
  return {};
}

Status Run::LearnPass(const EventLog& log) {
  const config::Learner& learner = assembly_.config.learners[options_.learner];
  const auto participation = wiring::MakeParticipationOf(
      learner.participation,
      {.has_files = true,
       .opening_offsets = assembly_.learners[options_.learner].model->OpeningRecords(),
       .growing_from = config::FirstPeriod(learner)})(position_);
  Status failed;
  const stream::Participation::Emit emit = [&](stream::StepBatch&& step) {
    position_ = step.after;
    failed = Take(std::move(step));
    return failed.has_value();
  };
  const auto cut = [&](const event::RawRecords& frame,
                       const event::Batch& examples) -> Result<bool> {
    result_.events += examples.size();
    if (!participation->Cut(frame, examples, emit)) return Fail(failed.error());
    Tell(frame.size());
    return true;
  };
  TACIT_RETURN_IF_ERROR(log.ForEach(0, options_.train_to, cut));
  participation->Finish(emit);
  return failed;
}

Status Run::Predict(const EventLog& log) {
  const auto preview = [&](const event::RawRecords& frame,
                           const event::Batch& examples) -> Result<bool> {
    stream::StepBatch batch;
    batch.examples = examples;
    batch.units = static_cast<uint32_t>(examples.size());
    for (uint32_t i = 0; i < batch.units; ++i) batch.unit_of.push_back(i);
    if (Measured(examples)) {
      const SystemClock clock;
      const auto start = clock.Now();
      train::StepReport report;
      TACIT_RETURN_IF_ERROR(learner_->Preview(batch, &report));
      result_.seconds += Seconds(clock.Now() - start);
      Measure(examples, report.logits);
    }
    Tell(frame.size());
    return true;
  };
  if (options_.train_to >= log.records()) return {};
  return log.ForEach(options_.train_to, log.records(), preview);
}

Status Run::Take(stream::StepBatch&& step) {
  const SystemClock clock;
  const auto start = clock.Now();
  TACIT_RETURN_IF_ERROR(step.preview() ? Preview(step) : TakeStep(step));
  result_.seconds += Seconds(clock.Now() - start);
  return {};
}

// Predicts a batch only if it is measured.
Status Run::Preview(const stream::StepBatch& step) {
  const bool measured = position_.pass == 0 && Measured(step.examples);
  if (!measured) {
    if (mechanism_ != nullptr && mechanism_->observes_periods()) Observe(step);
    return {};
  }
  train::StepReport report;
  TACIT_RETURN_IF_ERROR(learner_->Preview(step, &report));
  Measure(step.examples, report.logits);
  return {};
}

// Shows a batch to the mechanism as Learner::Preview does. A mechanism that observes has rows to
// choose from.
void Run::Observe(const stream::StepBatch& step) {
  const event::Batch& batch = step.examples;
  indexer_.Index(batch.row, batch.slot_end, batch.slots, step.unit_of, step.units, &observed_);
  mechanism_->Observe(observed_);
}

Status Run::TakeStep(const stream::StepBatch& step) {
  static const std::atomic<bool> kNever = false;
  // Billed as by the trainer and the ledger, offset by offset.
  const privacy::BilledStep billed = train::Billed(step);
  if (bill_.EndsBefore(billed)) Book();
  bill_.Add(billed, learner_->charge(), learner_->opening_charge());
  train::StepReport report;
  TACIT_ASSIGN(const bool taken, learner_->TakeStep(step, kNever, &report));
  TACIT_CHECK(taken, "a step of an experiment is never abandoned");
  ++result_.steps;
  result_.rows_written += floats_every_step_ > 0 ? rows_every_step_ : report.rows_written;
  result_.row_floats_written +=
      floats_every_step_ > 0 ? floats_every_step_ : report.row_floats_written;
  if (!step.whole_period() && position_.pass == 0) Measure(step.examples, report.logits);
  return {};
}

void Run::Book() {
  bill_.AddTo(&coverage_);
  bill_.Take();
}

bool Run::Measured(const event::Batch& batch) const {
  return batch.size() > 0 && batch.offset.back() >= options_.measure_from &&
         batch.offset.front() < options_.measure_to;
}

void Run::Measure(const event::Batch& batch, std::span<const float> logits) {
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch.offset[i] < options_.measure_from || batch.offset[i] >= options_.measure_to) continue;
    result_.logits.push_back(logits[i]);
    result_.labels.push_back(batch.label[i]);
  }
}

RunResult Run::Finish() && {
  Book();
  privacy::EpsilonMeter meter;
  for (const privacy::Spending& worst : coverage_.Worst())
    result_.epsilon_spent =
        std::max(result_.epsilon_spent, worst.bounded()
                                            ? meter.Bounds(worst, Delta(plan_.promise.delta)).upper
                                            : std::numeric_limits<double>::infinity());
  return std::move(result_);
}

}  // namespace

double RunResult::Auc() const { return ExactAuc(logits, labels); }

double RunResult::LogLoss() const {
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double z = labels[i] > 0.5f ? -logits[i] : logits[i];
    sum += z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z));
  }
  return logits.empty() ? 0 : sum / static_cast<double>(logits.size());
}

Result<RunResult> RunLearner(const wiring::Assembly& assembly, const EventLog& log,
                             const RunOptions& options) {
  TACIT_ASSIGN(auto run, Run::Start(assembly, options, log.records()));
  TACIT_RETURN_IF_ERROR(run->Learn(log));
  TACIT_RETURN_IF_ERROR(run->Predict(log));
  return std::move(*run).Finish();
}

}  // namespace tacit::lab
