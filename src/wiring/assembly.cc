#include "wiring/assembly.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "wiring/code_version.h"
#include "wiring/learner_shape.h"
#include "wiring/mechanism_factory.h"
#include "wiring/next_item_plan.h"
#include "wiring/query_plan.h"
#include "wiring/vocabulary_file.h"

namespace tacit::wiring {
namespace {

// The optimiser's state is stored after every row and after the dense parameters, so a change of
// its layout, or of what its numbers mean, would make stored state unreadable.
Digest StoredFingerprint(const train::ClickOptions& options, const model::Pctr& model) {
  const Digest model_fingerprint = model.Fingerprint();
  return Sha256()
      .Update("tacit learner 2")
      .Update(model_fingerprint)
      .Update(fmt::format("{} seed={}", train::FingerprintText(options.optimizer, /*of_rows=*/true),
                          options.seed))
      .Finish();
}

// Plans the model, the mechanism and the charge of a step.
Status PlanClicks(const config::Config& config, size_t index,
                  const event::FeatureTransform& transform, LearnerPlan* plan) {
  const config::Learner& learner = config.learners[index];
  plan->options = {
      .id = learner.id,
      .index = plan->options.index,
      .model = {.space = learner.model.categorical ? transform.row_space() : RowSpace(),
                .dense_width = static_cast<uint32_t>(transform.schema().dense.size()),
                .hidden = learner.model.hidden,
                .precision =
                    learner.model.compute == "bf16" ? ops::Precision::kBf16 : ops::Precision::kF32},
      .seed = learner.model.seed,
      .optimizer = MakeOptimizer(learner.optimizer)};
  TACIT_ASSIGN(const auto mechanism, MakeMechanism(config, index, plan->options.model.space));
  plan->charge = mechanism->charge();
  plan->opening_charge = mechanism->opening_charge();
  plan->expected_extra_rows = mechanism->ExpectedExtraRows();
  plan->promise.model_fingerprint =
      StoredFingerprint(plan->options, ShapeModel(plan->options.model).model);
  return {};
}

Status PlanNextItem(const config::Config& config, size_t index, const event::ItemCatalogue& items,
                    LearnerPlan* plan) {
  if (config.learners[index].model.kind == config::Model::Kind::kSequence) {
    TACIT_ASSIGN(plan->sequence, PlanSequence(config, index, items));
    plan->charge = train::ChargeOf(*plan->sequence);
    plan->promise.model_fingerprint = FingerprintOf(*plan->sequence, items);
  } else {
    TACIT_ASSIGN(plan->transitions, PlanTransitions(config, index, items));
    plan->charge = train::TransitionsPeriodCharge(plan->transitions->noise_multiplier);
    plan->promise.model_fingerprint = FingerprintOf(*plan->transitions, items);
  }
  return {};
}

Result<LearnerPlan> PlanLearner(const config::Config& config, size_t index,
                                const Assembly& assembly) {
  const config::Learner& learner = config.learners[index];
  LearnerPlan plan;
  plan.options.id = learner.id;
  plan.options.index = LearnerIndex(static_cast<uint16_t>(index));
  TACIT_RETURN_IF_ERROR(CheckQueries(learner));
  plan.promise = {.learner = learner.id,
                  .unit = UnitOf(learner),
                  .adjacency = privacy::Adjacency::kZeroOut,
                  .participation = ModeOf(learner),
                  .epsilon = learner.privacy.epsilon,
                  .delta = learner.privacy.delta,
                  .model_fingerprint = {},
                  .bounds = BoundsOf(learner, config.source)};
  TACIT_RETURN_IF_ERROR(learner.model.recommends()
                            ? PlanNextItem(config, index, *assembly.items, &plan)
                            : PlanClicks(config, index, *assembly.transform, &plan));
  CheckCharges(learner, plan.charge, plan.opening_charge);
  plan.batch = learner.participation.batch;
  plan.exit_when_exhausted = learner.privacy.on_exhausted == config::Privacy::OnExhausted::kExit;
  return plan;
}

// The source of the learner's recommendations.
std::shared_ptr<const serve::ItemModel> ItemModelOf(const LearnerPlan& plan) {
  const LearnerIndex index = plan.options.index;
  if (plan.transitions)
    return serve::MakeTransitionsItems(index, plan.transitions->catalogue, plan.transitions->model);
  const train::SequenceTrainingOptions& training = plan.sequence->training;
  serve::SequenceNoise noise;
  if (training.model.re_attention.kappa > 0) {
    // As in training, where every item may be in every history.
    const double stddev = train::UpdateStddev(training.privacy, training.expected_batch);
    noise.weight_variance = static_cast<float>(stddev * stddev);
    noise.item_variance.assign(training.model.catalogue, noise.weight_variance);
  }
  return serve::MakeSequenceItems(index, training.model, std::move(noise));
}

}  // namespace

Result<Assembly> Assemble(config::Config config, std::vector<RefusedLearner>* refused) {
  Assembly assembly;
  event::FeatureSchema schema = MakeSchema(config.features);
  TACIT_RETURN_IF_ERROR(schema.Validate());
  assembly.transform = std::make_shared<const event::FeatureTransform>(std::move(schema));
  if (!config.catalogue.file.empty()) {
    auto items = event::ItemCatalogue::Read(config.catalogue.file);
    if (!items) return Fail(std::move(items.error()).Context("catalogue.file"));
    assembly.items = std::make_shared<const event::ItemCatalogue>(std::move(*items));
  }
  for (size_t i = 0, position = 0; i < config.learners.size(); ++position) {
    auto plan = PlanLearner(config, i, assembly);
    if (plan) {
      assembly.learners.push_back(std::move(*plan));
      ++i;
      continue;
    }
    if (refused == nullptr) return Fail(std::move(plan.error()));
    refused->push_back({position, config.learners[i].id, std::move(plan.error())});
    config.learners.erase(config.learners.begin() + static_cast<ptrdiff_t>(i));
  }
  if (config.budget.given())
    assembly.total_budget = {.epsilon = *config.budget.epsilon, .delta = *config.budget.delta};
  assembly.config = std::move(config);
  TACIT_ASSIGN(assembly.memory, PlanMemory(assembly));
  return assembly;
}

std::vector<store::LearnerLayout> MakeLayouts(const Assembly& assembly) {
  std::vector<store::LearnerLayout> layouts;
  for (const LearnerPlan& plan : assembly.learners)
    layouts.push_back(
        {.name = plan.options.id, .rows = RowLayoutOf(plan), .promise = plan.promise});
  return layouts;
}

store::StoreOptions MakeStoreOptions(const Assembly& assembly) {
  const config::Store& store = assembly.config.store;
  store::StoreOptions options;
  options.path = store.path;
  options.witness = store.witness == "none" ? "" : store.witness;
  options.mark = assembly.config.source.mark;
  options.shards = store.shards;
  options.memory_bytes = assembly.memory.store_bytes;
  options.row_cache_bytes = assembly.memory.row_cache_bytes;
  options.overlay_bytes = assembly.memory.overlay_bytes;
  options.code_version = CodeVersion();
  options.learners = MakeLayouts(assembly);
  options.total_budget = assembly.total_budget;
  return options;
}

std::vector<serve::ScoringModel> MakeScoringModels(const Assembly& assembly) {
  std::vector<serve::ScoringModel> models;
  for (const LearnerPlan& plan : assembly.learners) {
    if (plan.recommends()) continue;
    models.push_back({.index = plan.options.index,
                      .promise = plan.promise,
                      .transform = assembly.transform,
                      .model = plan.options.model});
  }
  return models;
}

std::vector<serve::RecommendModel> MakeRecommendModels(const Assembly& assembly) {
  std::vector<serve::RecommendModel> models;
  for (size_t i = 0; i < assembly.learners.size(); ++i) {
    const LearnerPlan& plan = assembly.learners[i];
    if (!plan.recommends()) continue;
    models.push_back({.index = plan.options.index,
                      .promise = plan.promise,
                      .items = assembly.items,
                      .model = ItemModelOf(plan),
                      .serve_users = assembly.config.learners[i].history.serve_users});
  }
  return models;
}

train::TrainerOptions MakeTrainerOptions(const Assembly& assembly, const std::string& topic) {
  train::TrainerOptions options;
  for (const LearnerPlan& plan : assembly.learners)
    options.budgets.push_back({.epsilon = plan.promise.epsilon, .delta = plan.promise.delta});
  options.total_budget = assembly.total_budget;
  options.topic = topic;
  options.commit_interval = std::chrono::milliseconds(assembly.config.store.commit_interval_ms);
  options.idle_priority = assembly.config.training.idle_priority;
  return options;
}

}  // namespace tacit::wiring
