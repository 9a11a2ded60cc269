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
class Api final : public http::Handler {
 public:
  Api(std::shared_ptr<const Services> services, std::shared_ptr<const Versions> versions,
      std::shared_ptr<LoadedModels> loaded, std::shared_ptr<BudgetBoard> board);
  void Handle(const http::Request& request, http::Reply* reply) override {
    router_.Handle(request, reply);
  }

  // Every route of all daemons.
  static std::span<const Route> Routes();

 private:
  // Answer a route by a method of this class, or of one of its parts.
  template <auto method>
  static void By(Api& api, const http::Request& request, http::Reply* reply) {
    (api.*method)(request, reply);
  }
  template <auto part, auto method>
  static void ByPart(Api& api, const http::Request& request, http::Reply* reply) {
    ((api.*part).*method)(request, reply);
  }
  // Answers by a method that needs the last commit; 503 before there is a store.
  template <auto method>
  static void FromStore(Api& api, const http::Request& request, http::Reply* reply) {
    const SnapshotPtr snapshot = api.services_->latest();
    if (snapshot == nullptr)
      return http::SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
    (api.*method)(snapshot, request, reply);
  }

  void Index(const http::Request& request, http::Reply* reply);
  void Alive(const http::Request& request, http::Reply* reply);
  void Ready(const http::Request& request, http::Reply* reply);
  void Serving(const http::Request& request, http::Reply* reply);
  void Metrics(const http::Request& request, http::Reply* reply);
  void Score(const http::Request& request, http::Reply* reply);
  void ScoreLines(const http::Request& request, http::Reply* reply);
  // Scores the rows that were read for a model, by the version that was asked for, if one was.
  void Answer(size_t model, std::optional<uint64_t> version, const http::Request& request,
              http::Reply* reply);
  void Lookup(const SnapshotPtr& latest, const http::Request& request, http::Reply* reply);
  void Quality(const SnapshotPtr& latest, const http::Request& request, http::Reply* reply);
  void Privacy(const SnapshotPtr& latest, const http::Request& request, http::Reply* reply);
  void UserPrivacy(const SnapshotPtr& latest, const http::Request& request, http::Reply* reply);
  void Ledger(const SnapshotPtr& latest, const http::Request& request, http::Reply* reply);
  void Weights(const SnapshotPtr& latest, const http::Request& request, http::Reply* reply);
  void Dashboard(const SnapshotPtr& latest, const http::Request& request, http::Reply* reply);
  // Fails, saying why, unless a version is served.
  Status IsServing(http::Role role) const;
  // Fails, saying why, unless the service is ready; `degraded` is what is wrong all the same.
  Status IsReady(http::Role role, std::string* degraded) const;

  const std::shared_ptr<const Services> services_;
  const std::shared_ptr<const Versions> versions_;
  const std::vector<ServedLearner> learners_;
  const std::vector<http::LearnerElsewhere> recommend_elsewhere_;  // as routes of rows see them
  const std::shared_ptr<LoadedModels> loaded_;
  http::Router router_;
  ScoreRequestParser parser_;
  LineReader lines_;
  RowScoring scoring_;
  RecommendRoute recommend_;
  InferRoute infer_;
  DashboardRoute dashboard_;
};

}  // namespace tacit::serve
