#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metrics/registry.h"
#include "privacy/ledger.h"
#include "privacy/spent.h"
#include "serve/items/commit_signal.h"
#include "serve/items/recommender.h"
#include "serve/routes/checkpoint_route.h"
#include "serve/routes/figures.h"
#include "serve/routes/ledger_route.h"
#include "serve/routes/quality_route.h"
#include "serve/routes/user_route.h"
#include "serve/routes/versions_route.h"
#include "serve/scoring/repository.h"
#include "serve/scoring/row_scorer.h"
#include "serve/versions/versions.h"
#include "store/types/snapshot.h"

namespace tacit::serve {

struct Readiness {
  bool ready = false;
  std::string reason;  // why not
  // Set while the service is ready but learns nothing, or not from everything: the reason, for
  // everybody and for operators. Operators may see what depends on records (that a dead letter
  // waits reveals one); while it is not ready they see theirs in place of `reason`. Empty: nothing
  // is wrong that this audience may know.
  std::string degraded = {}, degraded_for_operators = {};
};

// The data and functions that the routes use; a program fills it in. All server threads call the
// functions.
struct Services {
  // It serves a model. If not, it answers probes and metrics alone, and is ready without a commit.
  bool serves = true;
  // The last published snapshot, or null before there is a store. What is charged is told of it,
  // also where an older version answers.
  std::function<std::shared_ptr<const store::Snapshot>()> latest;
  // The versions that lie open side by side; if null, `latest` answers. Then that is the newest.
  std::shared_ptr<const Versions> versions = {};
  // Told after each change of `latest`; outlives all that MakeApi makes. If null, `latest` does not
  // change.
  CommitSignal* commits = nullptr;
  std::vector<ScoringModel> models;
  std::vector<RecommendModel> recommenders = {};
  // Hashes a user id as the store's histories do; needed if a recommender serves users by id.
  UserHash user_hash = {};
  // Reports if training and source work. Readiness also requires a committed snapshot.
  std::function<Readiness()> readiness = [] { return Readiness{.ready = true, .reason = ""}; };
  // The budget that has stopped the learner.
  std::function<privacy::Spent(LearnerIndex)> spent = [](LearnerIndex) {
    return privacy::Spent::kNone;
  };
  // Private quality of learners, with accounts behind the learners.
  std::vector<ServedQuality> qualities = {};
  // The account of the breaker (source.halt_above), behind the learners; nothing without one.
  std::optional<ServedLearner> breaker = {};
  // The budget for all learners together, if there is one.
  std::optional<privacy::TotalBudget> total_budget = {};
  // The operator's commands for checkpoints; nothing where there is no store to make one of.
  std::optional<CheckpointCommands> checkpoints = {};
  // The operator's commands for users; nothing where there is no store to forget them in.
  std::optional<UserCommands> users = {};
  // The operator's commands for models; nothing where what is served follows the training.
  std::optional<RepositoryCommands> repository = {};
  // The operator's commands for versions; nothing where there are none beside the last commit.
  std::optional<VersionCommands> version_commands = {};
  DashboardSource dashboard = {};        // the dashboard's figures beside the ledger's
  std::string code_version = {};         // of this binary
  metrics::Registry* metrics = nullptr;  // never null; outlives the server
};

// All learners, ordered by index, and the breaker's account behind them.
std::vector<ServedLearner> LearnersOf(const Services& services);

}  // namespace tacit::serve
