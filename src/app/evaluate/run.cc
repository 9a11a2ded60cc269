#include "app/progressive_run.h"

#include <atomic>
#include <cmath>

#include "app/mechanism_factory.h"
#include "base/auc.h"
#include "base/clock.h"
#include "train/feed.h"
#include "train/memory_rows.h"

namespace tacit::app {
namespace {

// An experiment counts its dead letters and keeps none.
class CountingSink final : public event::DeadLetterSink {
 public:
  Status Write(std::span<const event::DeadLetter>) override { return {}; }
};

void Measure(const train::LearnerStep& step, std::span<const float> logits,
             const ProgressiveOptions& options, ProgressiveResult* result) {
  const event::Batch& batch = step.batch.examples;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch.offset[i] < options.measure_from || batch.offset[i] >= options.measure_to) continue;
    result->logits.push_back(logits[i]);
    result->labels.push_back(batch.label[i]);
  }
}

}  // namespace

double ProgressiveResult::Auc() const { return ExactAuc(logits, labels); }

double ProgressiveResult::LogLoss() const {
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double z = labels[i] > 0.5f ? -logits[i] : logits[i];
    sum += z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z));
  }
  return logits.empty() ? 0 : sum / static_cast<double>(logits.size());
}

Result<ProgressiveResult> RunProgressive(const Assembly& assembly,
                                         const ProgressiveOptions& options) {
  LearnerPlan plan = assembly.learners[options.learner];
  plan.options.seed += options.seed_offset;
  plan.options.index = LearnerIndex(0);
  WorkerPool workers({.workers = assembly.config.training.workers});
  const auto backend = ops::MakeCpuBackend(workers);
  const model::Pctr shape(plan.options.model, *backend);
  train::MemoryRows rows(train::MakeRowLayout(plan.options, shape));
  TACIT_ASSIGN(auto mechanism,
               MakeMechanism(assembly.config, options.learner, plan.options.model.space));
  train::Learner learner(plan.options, std::move(mechanism), noise::MakeNoiseSource(workers),
                         *backend, rows, nullptr);

  config::Source log = assembly.config.source;
  log.kind = config::Source::Kind::kLog;
  log.files = options.files;
  TACIT_ASSIGN(const auto source, OpenSource(log));
  CountingSink sink;
  const auto codec = event::MakeCriteoTsvCodec(*assembly.transform);
  train::FeedOptions records;
  records.learners.push_back({.index = LearnerIndex(0),
                              .participation = MakeParticipationOf(
                                  assembly.config.learners[options.learner].participation),
                              .start = {}});
  train::Feed feed(std::move(records), *source, *codec, *assembly.transform, sink);
  TACIT_RETURN_IF_ERROR(feed.Start());

  const SystemClock clock;
  const std::atomic<bool> abandon = false;
  ProgressiveResult result;
  while (auto step = feed.steps().Pop()) {
    const auto start = clock.Now();
    train::StepReport report;
    if (step->batch.preview) {
      TACIT_RETURN_IF_ERROR(learner.Preview(step->batch, &report));
    } else {
      TACIT_ASSIGN(const bool taken, learner.TakeStep(step->batch, abandon, &report));
      if (!taken) break;
      result.rows_written += report.rows_written;
      ++result.steps;
    }
    result.seconds += Seconds(clock.Now() - start);
    if (!step->batch.whole_period) {
      result.events += step->batch.examples.size();
      Measure(*step, report.logits, options, &result);
    }
    if (options.progress) options.progress(result.events);
  }
  feed.Stop();
  result.dead_letters = feed.records_dead();
  TACIT_RETURN_IF_ERROR(feed.status());
  return result;
}

}  // namespace tacit::app
