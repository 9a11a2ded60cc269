#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/threads/worker_pool.h"
#include "config/config.h"
#include "event/codec.h"
#include "event/feature_transform.h"
#include "event/item_catalogue.h"
#include "privacy/pld.h"
#include "serve/items/recommender.h"
#include "serve/routes/ledger_route.h"
#include "serve/routes/quality_route.h"
#include "serve/scoring/row_scorer.h"
#include "store/store.h"
#include "train/trainer.h"
#include "wiring/memory_plan.h"
#include "wiring/plans/breaker_plan.h"
#include "wiring/plans/model_plan.h"
#include "wiring/plans/quality_plan.h"

// Turns the configuration into options for each room.
namespace tacit::wiring {

// A learner, with the options that each room needs.
struct LearnerPlan {
  std::string id;
  LearnerIndex index;
  std::shared_ptr<const ModelPlan> model;
  privacy::Promise promise;
  privacy::Charge charge;                         // of one step
  std::optional<privacy::Charge> opening_charge;  // of a period's release before its steps
  uint64_t batch = 0;
  bool exit_when_exhausted = false;

  // Its configuration says so: it recommends a user's next item, and scores no rows.
  bool recommends = false;
};

// Everything that follows from the configuration, before store or source is opened.
struct Assembly {
  config::Config config;
  MemoryPlan memory;
  std::shared_ptr<const event::FeatureTransform> transform;
  std::shared_ptr<const event::ItemCatalogue> items;  // null if there is none
  std::vector<LearnerPlan> learners;
  std::vector<QualityPlan> qualities;  // behind the learners
  std::optional<BreakerPlan> breaker;  // behind all of these
  std::optional<privacy::TotalBudget> total_budget;
};

// A learner whose configuration is refused.
struct RefusedLearner {
  size_t position = 0;  // in the configuration
  std::string id;
  Error error;
};

// Checks what only several rooms together can check: budgets against noise, memory against model.
// With `refused`, failing learners are left out and reported there; otherwise the first failure is
// returned. Pass the same `laws` again to use their distributions again.
Result<Assembly> Assemble(config::Config config, std::vector<RefusedLearner>* refused = nullptr,
                          std::span<const LearnerKind> kinds = AllLearnerKinds(),
                          privacy::Laws laws = nullptr);

store::StoreOptions MakeStoreOptions(const Assembly& assembly);
// The layouts of the learners and their qualities, which is what readers need.
std::vector<store::LearnerLayout> MakeLayouts(const Assembly& assembly);
std::vector<serve::ScoringModel> MakeScoringModels(const Assembly& assembly);
std::vector<serve::RecommendModel> MakeRecommendModels(const Assembly& assembly);
std::optional<serve::ServedLearner> ServedBreaker(const Assembly& assembly);
std::vector<serve::ServedQuality> ServedQualities(const Assembly& assembly);
train::TrainerOptions MakeTrainerOptions(const Assembly& assembly, const std::string& topic);

}  // namespace tacit::wiring
