#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/registry.h"
#include "privacy/ledger.h"
#include "serve/http.h"
#include "serve/ledger_route.h"
#include "serve/recommend/recommend_route.h"
#include "serve/recommend/recommender.h"
#include "serve/scorer.h"
#include "store/snapshot.h"

namespace tacit::serve {

struct Readiness {
  bool ready = false;
  std::string reason;  // why not
  // Ready, but nothing is learnt at present, or not all: why, for everybody, and for operators, who
  // may know what depends on records (that a dead letter waits tells of one). Empty: nothing is
  // wrong that these may know.
  std::string degraded = {}, degraded_for_operators = {};
};

// What the routes are made of; app fills it in. The functions are called by all server threads.
struct Services {
  // The last published snapshot, or null before there is a store.
  std::function<std::shared_ptr<const store::Snapshot>()> latest;
  std::vector<ScoringModel> models;
  std::vector<RecommendModel> recommenders = {};
  // How histories know users; needed where a recommender serves them by id.
  UserHash user_hash = {};
  // Whether training and source work. A committed snapshot is asked for on top of it.
  std::function<Readiness()> readiness;
  // Whether the learner has stopped because its next step would exceed its budget.
  std::function<bool(LearnerIndex)> budget_exhausted;
  // What all learners together are to stay within, where there is such a limit.
  std::optional<privacy::TotalBudget> total_budget = {};
  metrics::Registry* metrics = nullptr;  // never null; outlives the server
};

// All learners in the order of their places.
std::vector<ServedLearner> LearnersOf(const Services& services);

// The routes of README.md, for Server::Start. What builds recommendations' states lives as long as
// the factory and the last handler it made.
HandlerFactory MakeApi(Services services);

// GET /v1/privacy's body, for whoever has a snapshot and no server.
std::string PrivacyJson(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                        const std::function<bool(LearnerIndex)>& budget_exhausted,
                        const std::optional<privacy::TotalBudget>& total_budget);

}  // namespace tacit::serve
