#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "config/config.h"
#include "event/codec.h"
#include "event/feature_transform.h"
#include "event/item_catalogue.h"
#include "ops/backend.h"
#include "serve/recommend/recommender.h"
#include "serve/scorer.h"
#include "store/store.h"
#include "stream/source.h"
#include "train/click_learner.h"
#include "train/feed.h"
#include "train/sequence/sequence_learner.h"
#include "train/trainer.h"
#include "train/transitions_learner.h"

// From the configuration to what each room wants to know. The only place that reads config structs.
namespace tacit::app {

// A learner as every room sees it.
struct LearnerPlan {
  train::ClickOptions options;  // of another model: its id and index alone
  std::optional<train::SequenceLearnerOptions> sequence;        // of the next item
  std::optional<train::TransitionsLearnerOptions> transitions;  // of the next item
  privacy::Promise promise;
  privacy::Charge charge;                         // of one step
  std::optional<privacy::Charge> opening_charge;  // of a period's release before its steps
  double expected_extra_rows = 0;                 // per step, c * p0
  uint64_t batch = 0;
  bool exit_when_exhausted = false;

  bool recommends() const { return sequence || transitions; }
};

// Everything that follows from the configuration alone, before any file is touched.
struct Assembly {
  config::Config config;
  config::MemoryPlan memory;
  std::shared_ptr<const event::FeatureTransform> transform;
  std::shared_ptr<const event::ItemCatalogue> items;  // null: there is none
  std::vector<LearnerPlan> learners;
  std::optional<privacy::TotalBudget> total_budget;
};

// A learner that cannot be as it is configured.
struct RefusedLearner {
  size_t position = 0;  // in the configuration
  std::string id;
  Error error;
};

// Checks what only several rooms together can check: budgets against noise, memory against model.
// With `refused`, learners that fail are left out and told there; otherwise the first one is the
// failure.
Result<Assembly> Assemble(config::Config config, std::vector<RefusedLearner>* refused = nullptr);

// Log files and the generator; a topic is opened with more than a Source (app/kafka.h).
Result<std::unique_ptr<stream::Source>> OpenSource(const config::Source& source);

store::StoreOptions MakeStoreOptions(const Assembly& assembly);
std::vector<store::LearnerLayout> MakeLayouts(const Assembly& assembly);
std::vector<serve::ScoringModel> MakeScoringModels(const Assembly& assembly);
std::vector<serve::RecommendModel> MakeRecommendModels(const Assembly& assembly);
train::TrainerOptions MakeTrainerOptions(const Assembly& assembly, const std::string& topic);

// The witness that a reader of this directory goes by, where there is one: its name + ".witness".
std::string WitnessBeside(const std::string& directory);
// Says on stderr what a directory without one cannot tell.
void TellOfNoWitness(const std::string& directory);

// What built this binary; in every ledger entry.
std::string CodeVersion();

}  // namespace tacit::app
