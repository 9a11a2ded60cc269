#include "wiring/assembly.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "wiring/plans/code_version.h"
#include "wiring/plans/codec.h"

namespace tacit::wiring {
namespace {

// Bounds on a unit's participation in a learner's steps, for the ledger.
privacy::Bounds BoundsOf(const PlanParts& parts) {
  const config::Learner& learner = parts.learner();
  const config::Participation& p = learner.participation;
  privacy::Bounds bounds{.dedupe_window = parts.config.source.dedupe_window};
  // Steps in blocks are charged by the period, so that its length is part of the price.
  if (p.mode == config::Participation::Mode::kAllocate) bounds.period_steps = p.PeriodSteps();
  if (!learner.privacy.of_users()) return bounds;
  bounds.allowance = parts.exposure.steps;
  if (p.mode == config::Participation::Mode::kOnce)
    bounds.per_period = p.per_period;
  else
    bounds.period_steps = p.PeriodSteps();
  return bounds;
}

Result<LearnerPlan> PlanLearner(const config::Config& config, size_t index,
                                const Assembly& assembly, std::span<const LearnerKind> kinds,
                                const privacy::Laws& laws) {
  const config::Learner& learner = config.learners[index];
  TACIT_ASSIGN(const auto queries, PlanQueries(learner, kinds));
  const PlanParts parts{.config = config,
                        .index = index,
                        .transform = assembly.transform,
                        .items = assembly.items,
                        .laws = laws};
  LearnerPlan plan;
  TACIT_ASSIGN(plan.model, RowOf(kinds, learner.model.kind).plan(parts));
  plan.id = learner.id;
  plan.index = parts.learner_index();
  plan.promise = {.learner = learner.id,
                  .unit = learner.privacy.unit,
                  .adjacency = privacy::Adjacency::kZeroOut,
                  .participation = learner.participation.mode,
                  .epsilon = learner.privacy.epsilon,
                  .delta = learner.privacy.delta,
                  .model_fingerprint = plan.model->Fingerprint(),
                  .bounds = BoundsOf(parts)};
  plan.charge = plan.model->charge();
  plan.opening_charge = plan.model->opening_charge();
  privacy::CheckCharges(queries, plan.charge, plan.opening_charge);
  plan.batch = learner.participation.batch;
  plan.exit_when_exhausted = learner.privacy.on_exhausted == config::Privacy::OnExhausted::kExit;
  plan.recommends = learner.model.recommends();
  return plan;
}

// Refuses a configuration that periods over all partitions of a topic do not fit.
Status CheckTopicPeriods(const config::Config& config, std::span<const LearnerPlan> plans) {
  if (config.source.periods != config::Source::Periods::kTopic) return {};
  const auto refuse = [](const std::string& why) {
    return Fail(ErrorCode::kInvalidArgument, "source.periods: topic " + why);
  };
  if (config.source.dedupe_window > 0)
    return refuse(
        "cannot go with source.dedupe.window, whose records before a period would be read again");
  for (const LearnerPlan& plan : plans) {
    const config::Learner& learner = config.learners[plan.index.value];
    if (!plan.model->SumsUp())
      return refuse(
          fmt::format("is for models that add up their periods (linear), and learner "
                      "'{}' would have to hold them",
                      plan.id));
    if (learner.privacy.of_users())
      return refuse(
          fmt::format("is for unit event, and learner '{}' promises to users, whose "
                      "records of all partitions would have to come together",
                      plan.id));
    if (plan.batch != plans[0].batch)
      return refuse(
          fmt::format("cuts each period for all learners, and learners '{}' and '{}' have a "
                      "participation.batch of {} and {}",
                      plans[0].id, plan.id, plans[0].batch, plan.batch));
  }
  return {};
}

}  // namespace

Result<Assembly> Assemble(config::Config config, std::vector<RefusedLearner>* refused,
                          std::span<const LearnerKind> kinds, privacy::Laws laws) {
  Assembly assembly;
  TACIT_ASSIGN(event::FeatureSchema schema, PlanReading(&config.source, config.features));
  assembly.transform = std::make_shared<const event::FeatureTransform>(std::move(schema));
  if (!config.catalogue.file.empty()) {
    auto items = event::ItemCatalogue::Read(config.catalogue.file);
    if (!items) return Fail(std::move(items.error()).Context("catalogue.file"));
    assembly.items = std::make_shared<const event::ItemCatalogue>(std::move(*items));
  }
  if (laws == nullptr) laws = privacy::MakeLaws();
  for (size_t i = 0, position = 0; i < config.learners.size(); ++position) {
    auto plan = PlanLearner(config, i, assembly, kinds, laws);
    if (plan) {
      assembly.learners.push_back(std::move(*plan));
      ++i;
      continue;
    }
    if (refused == nullptr) return Fail(std::move(plan.error()));
    refused->push_back({position, config.learners[i].id, std::move(plan.error())});
    config.learners.erase(config.learners.begin() + static_cast<ptrdiff_t>(i));
  }
  TACIT_RETURN_IF_ERROR(CheckTopicPeriods(config, assembly.learners));
  TACIT_ASSIGN(assembly.qualities, PlanQualities(config.learners));
  const bool of_topic = config.source.periods == config::Source::Periods::kTopic;
  const std::optional<uint64_t> period = of_topic && !assembly.learners.empty()
                                             ? std::optional(assembly.learners[0].batch)
                                             : std::nullopt;
  TACIT_ASSIGN(assembly.breaker, PlanBreaker(config.source, period,
                                             assembly.learners.size() + assembly.qualities.size()));
  if (config.budget.given())
    assembly.total_budget = {.epsilon = *config.budget.epsilon, .delta = *config.budget.delta};
  assembly.config = std::move(config);
  TACIT_ASSIGN(assembly.memory, PlanMemory(assembly));
  return assembly;
}

std::vector<store::LearnerLayout> MakeLayouts(const Assembly& assembly) {
  std::vector<store::LearnerLayout> layouts;
  for (const LearnerPlan& plan : assembly.learners) {
    layouts.push_back({.name = plan.id, .rows = plan.model->Rows(), .promise = plan.promise});
    store::LearnerLayout& layout = layouts.back();
    layout.form = plan.model->Form();
    if (layout.form.empty()) continue;
    layout.grow = [model = plan.model](const store::StoredModel& stored) {
      return model->Grow(stored);
    };
  }
  for (const QualityPlan& plan : assembly.qualities) layouts.push_back(QualityLayout(plan));
  return layouts;
}

namespace {

// A disk wants several reads at a time; threads that wait for it cost no processor.
constexpr uint32_t kReaderThreads = 16;

}  // namespace

store::StoreOptions MakeStoreOptions(const Assembly& assembly) {
  const config::Store& store = assembly.config.store;
  store::StoreOptions options;
  options.path = store.path;
  options.witness = store.witness == "none" ? "" : store.witness;
  options.mark = assembly.config.source.mark;
  options.shards = store.shards;
  options.shard_paths = store.paths;
  options.memory_bytes = assembly.memory.store_bytes;
  options.row_cache_bytes = assembly.memory.row_cache_bytes;
  options.overlay_bytes = assembly.memory.overlay_bytes;
  options.reader_threads = kReaderThreads;
  options.code_version = CodeVersion();
  options.learners = MakeLayouts(assembly);
  if (assembly.breaker) options.learners.push_back(BreakerLayout(*assembly.breaker));
  options.total_budget = assembly.total_budget;
  const config::Feed& feed = assembly.config.feed;
  options.outbox_bytes = feed.topic.empty() ? 0 : feed.backlog_bytes;
  return options;
}

namespace {

// The codec of the lines to score; it refers to the transform, and so holds it.
std::shared_ptr<const event::Codec> MakeLineCodec(const Assembly& assembly) {
  const config::Source& source = assembly.config.source;
  if (!source.format_traits().is_line) return nullptr;
  auto codec =
      MakeCodec(source, *assembly.transform, /*items=*/nullptr, event::LabelUse::kPassedOver);
  return {codec.release(),
          [transform = assembly.transform](const event::Codec* made) { delete made; }};
}

}  // namespace

std::vector<serve::ScoringModel> MakeScoringModels(const Assembly& assembly) {
  const auto lines = MakeLineCodec(assembly);
  std::vector<serve::ScoringModel> models;
  for (const LearnerPlan& plan : assembly.learners) {
    if (auto model = plan.model->Scores())
      models.push_back({.index = plan.index,
                        .promise = plan.promise,
                        .transform = assembly.transform,
                        .model = std::move(model),
                        .lines = lines,
                        .predicts = assembly.config.source.LabelName()});
  }
  return models;
}

std::vector<serve::RecommendModel> MakeRecommendModels(const Assembly& assembly) {
  std::vector<serve::RecommendModel> models;
  for (size_t i = 0; i < assembly.learners.size(); ++i) {
    const LearnerPlan& plan = assembly.learners[i];
    if (auto model = plan.model->Recommends())
      models.push_back({.index = plan.index,
                        .promise = plan.promise,
                        .items = assembly.items,
                        .model = std::move(model),
                        .serve_users = assembly.config.learners[i].history.serve_users});
  }
  return models;
}

std::optional<serve::ServedLearner> ServedBreaker(const Assembly& assembly) {
  if (!assembly.breaker) return std::nullopt;
  return serve::ServedLearner{assembly.breaker->index, assembly.breaker->promise};
}

std::vector<serve::ServedQuality> ServedQualities(const Assembly& assembly) {
  std::vector<serve::ServedQuality> served;
  for (const QualityPlan& plan : assembly.qualities)
    served.push_back({plan.learner, plan.index, plan.promise});
  return served;
}

train::TrainerOptions MakeTrainerOptions(const Assembly& assembly, const std::string& topic) {
  train::TrainerOptions options;
  for (const LearnerPlan& plan : assembly.learners)
    options.budgets.push_back({.epsilon = plan.promise.epsilon,
                               .delta = plan.promise.delta,
                               .of_users = plan.promise.unit == privacy::Unit::kUser});
  options.total_budget = assembly.total_budget;
  options.topic = topic;
  options.commit_interval = std::chrono::milliseconds(assembly.config.store.commit_interval_ms);
  options.commit_each_period = !assembly.config.workers.topic.empty();
  options.idle_priority = assembly.config.training.idle_priority;
  options.has_days = assembly.config.source.traits().has_files;
  return options;
}

}  // namespace tacit::wiring
