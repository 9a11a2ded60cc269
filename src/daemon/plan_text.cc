#include "daemon/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "wiring/budget_check.h"
#include "wiring/privacy_forecast.h"
#include "wiring/signal.h"

namespace tacit::daemon {
namespace {

std::string LearnerText(const config::Learner& learner, const wiring::LearnerPlan& plan,
                        std::optional<uint64_t> file_records) {
  std::string text =
      fmt::format("# learner {}: epsilon {} at delta {} per {}; {}\n#   a step: {}\n", plan.id,
                  plan.promise.epsilon, plan.promise.delta, privacy::Name(plan.promise.unit),
                  plan.model->SizeText(), wiring::ChargeText(plan.charge));
  if (plan.opening_charge)
    text += fmt::format("#   a period first, its histogram: {}\n",
                        wiring::ChargeText(*plan.opening_charge));
  return text + fmt::format("#   noise: {}\n#   rows a step: {}\n",
                            wiring::SignalText(learner, plan, file_records),
                            plan.model->RowsText());
}

std::string MemoryText(const wiring::MemoryPlan& memory) {
  constexpr double kMiB = 1 << 20;
  return fmt::format(
      "# memory (MiB): row cache {:.0f} a learner, store {:.0f}, queues {:.0f}, model {:.0f}, "
      "unfolded commits {:.0f}, requests {:.0f}\n",
      memory.row_cache_bytes / kMiB, memory.store_bytes / kMiB, memory.queue_bytes / kMiB,
      memory.model_bytes / kMiB, memory.overlay_bytes / kMiB, memory.request_bytes / kMiB);
}

// Returns true if what is learnt leaves the daemon unasked: by the feed, or by release checkpoints
// on a schedule.
bool HandsOn(const config::Config& config) {
  const config::Checkpoints& checkpoints = config.store.checkpoints;
  return !config.feed.topic.empty() ||
         (checkpoints.every_s > 0 &&
          std::ranges::find(checkpoints.kinds, "release") != checkpoints.kinds.end());
}

}  // namespace

std::string PlanText(const wiring::Assembly& assembly) {
  std::string text = fmt::format("{}\n# In numbers\n", config::Dump(assembly.config));
  const auto file_records = assembly.config.source.records_per_day();
  for (size_t i = 0; i < assembly.learners.size(); ++i)
    text += LearnerText(assembly.config.learners[i], assembly.learners[i], file_records);
  for (const wiring::QualityPlan& plan : assembly.qualities)
    text += fmt::format("# quality {}\n", wiring::QualityText(plan));
  if (assembly.breaker)
    text += fmt::format("# source.halt_above {}\n", wiring::BreakerText(*assembly.breaker));
  for (const std::string& refused : wiring::FirstStepsRefused(assembly))
    text += fmt::format("# WARNING: {}\n", refused);
  for (size_t i = 0; i < assembly.learners.size(); ++i)
    if (const std::string few =
            wiring::TooFewRecords(assembly.config.learners[i], assembly.learners[i], file_records);
        !few.empty())
      text += fmt::format("# WARNING: {}\n", few);
  for (const std::string& warning : ConfigurationWarnings(assembly))
    text += fmt::format("# WARNING: {}\n", warning);
  return text + MemoryText(assembly.memory);
}

std::vector<std::string> ConfigurationWarnings(const wiring::Assembly& assembly) {
  std::vector<std::string> warnings = wiring::WeakPromises(assembly);
  for (const std::string& place : config::SecretsInTheOpen(assembly.config))
    warnings.push_back(place +
                       ": a secret in the open; {file: PATH} or {credential: NAME} keeps it "
                       "elsewhere");
  if (assembly.config.kafka.passed_over)
    warnings.push_back(
        "kafka: is written, and nothing uses it: it takes source.kind: kafka or a "
        "feed.topic");
  for (const config::Learner& learner : assembly.config.learners)
    if (!learner.mechanism.traits().adds_noise && HandsOn(assembly.config))
      warnings.push_back(
          fmt::format("learner '{}': mechanism: none adds no noise, so what others are handed of "
                      "it (feed.topic, release checkpoints) says what single records say",
                      learner.id));
  for (const config::Learner& learner : assembly.config.learners) {
    const config::Transitions& counts = learner.model.transitions;
    if (learner.model.kind != config::ModelKind::kTransitions || !counts.ranker) continue;
    if (counts.described && assembly.items != nullptr && assembly.items->described()) continue;
    warnings.push_back(
        fmt::format("learner '{}': a ranker has only counts to go by where items are not "
                    "described, and brings nothing: leave `ranker` out, or describe them in "
                    "catalogue.file",
                    learner.id));
  }
  return warnings;
}

}  // namespace tacit::daemon
