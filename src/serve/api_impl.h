#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http/router.h"
#include "serve/answers/learner_kinds.h"
#include "serve/answers/recommend_route.h"
#include "serve/dashboard/dashboard_route.h"
#include "serve/inference/infer_route.h"
#include "serve/route_table.h"
#include "serve/scoring/row_scoring.h"
#include "serve/scoring/score_lines.h"
#include "serve/scoring/score_request.h"

// Private to this room.
namespace tacit::serve {

using SnapshotPtr = std::shared_ptr<const store::Snapshot>;

// The routes of one server thread, with its own scorers and scratch memory.
class Api final : public Handler {
 public:
  Api(std::shared_ptr<const Services> services, std::shared_ptr<const Versions> versions,
      std::shared_ptr<LoadedModels> loaded, std::shared_ptr<BudgetBoard> board);
  void Handle(const Request& request, Reply* reply) override { router_.Handle(request, reply); }

  // Every route of all daemons.
  static std::span<const Route> Routes();

 private:
  // Answer a route by a method of this class, or of one of its parts.
  template <auto method>
  static void By(Api& api, const Request& request, Reply* reply) {
    (api.*method)(request, reply);
  }
  template <auto part, auto method>
  static void ByPart(Api& api, const Request& request, Reply* reply) {
    ((api.*part).*method)(request, reply);
  }
  // Answers by a method that needs the last commit; 503 before there is a store.
  template <auto method>
  static void FromStore(Api& api, const Request& request, Reply* reply) {
    const SnapshotPtr snapshot = api.services_->latest();
    if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
    (api.*method)(snapshot, request, reply);
  }

  void Index(const Request& request, Reply* reply);
  void Alive(const Request& request, Reply* reply);
  void Ready(const Request& request, Reply* reply);
  void Metrics(const Request& request, Reply* reply);
  void Score(const Request& request, Reply* reply);
  void ScoreLines(const Request& request, Reply* reply);
  // Scores the rows that were read for a model, by the version that was asked for, if one was.
  void Answer(size_t model, std::optional<uint64_t> version, const Request& request, Reply* reply);
  void Lookup(const SnapshotPtr& latest, const Request& request, Reply* reply);
  void Quality(const SnapshotPtr& latest, const Request& request, Reply* reply);
  void Privacy(const SnapshotPtr& latest, const Request& request, Reply* reply);
  void UserPrivacy(const SnapshotPtr& latest, const Request& request, Reply* reply);
  void Ledger(const SnapshotPtr& latest, const Request& request, Reply* reply);
  void Weights(const SnapshotPtr& latest, const Request& request, Reply* reply);
  void Dashboard(const SnapshotPtr& latest, const Request& request, Reply* reply);
  // Fails, saying why, unless the service is ready; `degraded` is what is wrong all the same.
  Status IsReady(Role role, std::string* degraded) const;

  const std::shared_ptr<const Services> services_;
  const std::shared_ptr<const Versions> versions_;
  const std::vector<ServedLearner> learners_;
  const std::vector<LearnerElsewhere> recommend_elsewhere_;  // as routes of rows see them
  const std::shared_ptr<LoadedModels> loaded_;
  Router router_;
  ScoreRequestParser parser_;
  LineReader lines_;
  RowScoring scoring_;
  RecommendRoute recommend_;
  InferRoute infer_;
  DashboardRoute dashboard_;
};

}  // namespace tacit::serve
