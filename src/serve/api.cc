#include "serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "http/query_fields.h"
#include "metrics/families.h"
#include "serve/answers/score_answer.h"
#include "serve/api_impl.h"
#include "serve/routes/ledger_route.h"
#include "serve/routes/lookup_route.h"
#include "serve/routes/privacy_route.h"
#include "serve/routes/weights_route.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
namespace {

void SetText(std::string_view text, http::Reply* reply) {
  reply->content_type = "text/plain; charset=utf-8";
  reply->body = text;
}

std::vector<ScoreRequestParser::Target> Targets(const std::vector<ScoringModel>& models) {
  std::vector<ScoreRequestParser::Target> targets;
  for (const ScoringModel& model : models)
    targets.push_back({model.promise.learner, model.transform});
  return targets;
}

}  // namespace

Api::Api(std::shared_ptr<const Services> services, std::shared_ptr<const Versions> versions,
         std::shared_ptr<LoadedModels> loaded, std::shared_ptr<BudgetBoard> board)
    : services_(std::move(services)),
      versions_(std::move(versions)),
      learners_(LearnersOf(*services_)),
      recommend_elsewhere_(AskedForItems(services_->recommenders)),
      loaded_(std::move(loaded)),
      router_(*services_->metrics),
      parser_(Targets(services_->models), {}, recommend_elsewhere_),
      scoring_(services_->models, loaded_.get(), *services_->metrics),
      recommend_(services_->recommenders, versions_, services_->user_hash, loaded_.get(),
                 *services_->metrics, AskedForScores(services_->models)),
      infer_(
          *services_, *versions_,
          [this] {
            std::string degraded;
            return IsReady(http::Role::kPublic, &degraded);
          },
          &scoring_, &recommend_, loaded_.get()),
      dashboard_(*services_, learners_, std::move(board)) {
  for (const Route& route : Routes()) {
    if (!Has(*services_, route)) continue;
    const auto answer = [this, &route](const http::Request& request, http::Reply* reply) {
      route.answer(*this, request, reply);
      reply->same_for_all =
          reply->status == 200 &&
          (route.form.gzip == GzipFor::kAll ||
           (route.form.gzip == GzipFor::kPublic && request.role == http::Role::kPublic));
    };
    router_.Add(route.method, route.path, answer, route.access);
  }
}

void Api::Alive(const http::Request&, http::Reply* reply) { SetText("ok\n", reply); }

// The page holds no figures: where tokens are asked for, its script asks for the operator's.
void Api::Index(const http::Request& request, http::Reply* reply) {
  if (services_->serves && request.at_operators_door && WantsPage(request))
    return AnswerDashboardPage(reply);
  SetText("tacit: learns from a stream with differential privacy\n\n", reply);
  for (const Route& route : Routes())
    if (Has(*services_, route) &&
        (request.role == http::Role::kOperator || !http::IsOperators(route.access)))
      fmt::format_to(std::back_inserter(reply->body), "{:<4} {:<20}  {}\n", route.method,
                     route.path, route.says);
}

void Api::Score(const http::Request& request, http::Reply* reply) {
  const auto version = VersionOfQuery(request.query);
  if (!version) return http::SetFailure(version.error(), reply);
  const Result<size_t> model = parser_.Parse(request.body, scoring_.batch());
  if (!model) return http::SetFailure(model.error(), reply);
  Answer(*model, *version, request, reply);
}

namespace {

// A query that names a model and a version.
struct LinesAsked {
  std::optional<std::string> learner;
  std::optional<uint64_t> version;
};

Result<LinesAsked> ReadLinesAsked(std::string_view query) {
  LinesAsked asked;
  TACIT_RETURN_IF_ERROR(
      http::ForFields(query, [&](std::string_view name, const std::string& value) -> Status {
        if (name == "version") {
          TACIT_ASSIGN(asked.version, http::WholeNumber(name, value));
        } else if (name == "learner") {
          asked.learner = value;
        } else {
          return http::BadRequest(
              fmt::format("unknown parameter '{}' (there are learner and version)", name));
        }
        return {};
      }));
  return asked;
}

}  // namespace

void Api::ScoreLines(const http::Request& request, http::Reply* reply) {
  const auto asked = ReadLinesAsked(request.query);
  if (!asked) return http::SetFailure(asked.error(), reply);
  std::vector<std::string_view> learners;
  for (const ScoringModel& model : services_->models) learners.push_back(model.promise.learner);
  const Result<size_t> model = http::FindLearner(asked->learner, learners, recommend_elsewhere_);
  if (!model) return http::SetFailure(model.error(), reply);
  const ScoringModel& scoring = services_->models[*model];
  if (scoring.lines == nullptr)
    return http::SetFailure(
        {ErrorCode::kInvalidArgument, "the stream's records are no lines of text: ask /v1/score"},
        reply);
  const Status read = lines_.Read(request.body, scoring, scoring_.batch());
  if (!read) return http::SetFailure(read.error(), reply);
  Answer(*model, asked->version, request, reply);
}

void Api::Answer(size_t model, std::optional<uint64_t> version, const http::Request& request,
                 http::Reply* reply) {
  const auto answering = versions_->Choose(version, request);
  if (!answering) return http::SetFailure(answering.error(), reply);
  CountedAnswer counted(*answering);
  const store::Snapshot* const snapshot = answering->snapshot.get();
  if (snapshot == nullptr)
    return http::SetFailure({ErrorCode::kUnavailable, "no committed model yet"}, reply);
  const ScoringModel& is = services_->models[model];
  if (version && *version != snapshot->version().value)
    return http::SetFailure(NoSuchVersion(is.promise.learner, *version, snapshot->version().value),
                            reply);
  const auto scores = scoring_.Score(model, *snapshot);
  if (!scores) {
    counted.Failed();
    return http::SetServerFailure(scores.error(), reply);
  }
  WriteScores(*snapshot, is, *scores, &reply->body);
}

void Api::Quality(const SnapshotPtr& latest, const http::Request&, http::Reply* reply) {
  AnswerQuality(*latest, services_->qualities, reply);
}

void Api::Privacy(const SnapshotPtr& latest, const http::Request&, http::Reply* reply) {
  reply->body = PrivacyJson(*latest, learners_, services_->spent, services_->total_budget);
}

void Api::UserPrivacy(const SnapshotPtr& latest, const http::Request& request, http::Reply* reply) {
  const auto id = UserAskedFor(request, request.parts[0], reply);
  if (!id) return;
  const auto report = services_->users->show(*id);
  if (!report) return http::SetServerFailure(report.error(), reply);
  WriteUserPrivacy(*latest, learners_, *id, *report, &reply->body);
}

void Api::Ledger(const SnapshotPtr& latest, const http::Request& request, http::Reply* reply) {
  AnswerLedger(*latest, learners_, services_->total_budget, request.query, reply);
}

void Api::Weights(const SnapshotPtr&, const http::Request& request, http::Reply* reply) {
  AnswerWeights(services_->models, recommend_elsewhere_, *versions_->Serving().snapshot,
                request.query, reply);
}

void Api::Lookup(const SnapshotPtr&, const http::Request& request, http::Reply* reply) {
  const auto version = VersionOfQuery(request.query);
  if (!version) return http::SetFailure(version.error(), reply);
  const auto answering = versions_->Choose(*version, request);
  if (!answering) return http::SetFailure(answering.error(), reply);
  CountedAnswer counted(*answering);
  AnswerLookup(services_->models, recommend_elsewhere_, *answering->snapshot, *version, request,
               reply);
  if (reply->status >= 500) counted.Failed();
}

void Api::Dashboard(const SnapshotPtr& latest, const http::Request& request, http::Reply* reply) {
  DashboardRoute::Health health;
  health.ready = IsReady(http::Role::kOperator, &health.degraded);
  health.ready_for_all = IsReady(http::Role::kPublic, &health.degraded_for_all);
  dashboard_.Answer(latest, request.query, health, reply);
}

namespace {

// True if nothing was learnt, and only inspections or windows were charged: their accounts have a
// dot in their names, and no learner's id has.
bool IsChargedAlone(const store::Snapshot& snapshot) {
  bool charged = false;
  for (const privacy::LedgerTotal& total : snapshot.learners()) {
    if (total.steps == 0) continue;
    if (total.learner.find('.') == std::string::npos) return false;
    charged = true;
  }
  return charged;
}

}  // namespace

Status Api::IsServing(http::Role role) const {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr || snapshot->version() == CommitSeq(0) || IsChargedAlone(*snapshot)) {
    std::string why = "no committed model yet";
    if (role == http::Role::kOperator && services_->readiness)
      if (const std::string cause = services_->readiness().degraded_for_operators; !cause.empty())
        why += ": " + cause;
    return Fail(ErrorCode::kUnavailable, std::move(why));
  }
  return {};
}

Status Api::IsReady(http::Role role, std::string* degraded) const {
  if (services_->serves) {
    TACIT_RETURN_IF_ERROR(IsServing(role));
    TACIT_RETURN_IF_ERROR(versions_->Serving().recommender->Loaded());
  }
  Readiness readiness = services_->readiness();
  if (!readiness.ready) {
    const bool in_full = role == http::Role::kOperator && !readiness.degraded_for_operators.empty();
    return Fail(ErrorCode::kUnavailable,
                std::move(in_full ? readiness.degraded_for_operators : readiness.reason));
  }
  *degraded = role == http::Role::kOperator ? readiness.degraded_for_operators : readiness.degraded;
  return {};
}

void Api::Ready(const http::Request& request, http::Reply* reply) {
  std::string why;
  const Status ready = IsReady(request.role, &why);
  if (!ready) return http::SetFailure(ready.error(), reply);
  SetText(why.empty() ? "ready\n" : "ready, degraded: " + why + "\n", reply);
}

void Api::Serving(const http::Request& request, http::Reply* reply) {
  const Status serving = IsServing(request.role);
  if (!serving) return http::SetFailure(serving.error(), reply);
  SetText("serving\n", reply);
}

void Api::Metrics(const http::Request& request, http::Reply* reply) {
  reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply->body = services_->metrics->Scrape(request.role == http::Role::kOperator
                                               ? metrics::Audience::kOperator
                                               : metrics::Audience::kPublic);
}

namespace {

// Registers which commit recommendations are of: they may lag behind the newest.
void ShowServedVersions(metrics::Registry& registry, const std::vector<RecommendModel>& models,
                        const std::shared_ptr<const Versions>& versions) {
  std::vector<metrics::Gauge> commits;
  for (const RecommendModel& model : models)
    commits.push_back(registry.AddGauge("tacit_recommendations_commit_version",
                                        {{"learner", model.promise.learner}}));
  // The registry outlives the server.
  registry.BeforeScrape([commits, held = std::weak_ptr<const Versions>(versions)] {
    const auto served = held.lock();
    if (served == nullptr) return;
    const Answering answering = served->Serving();
    for (size_t i = 0; i < commits.size(); ++i)
      if (const auto items = answering.recommender->Get(i))
        commits[i].Set(static_cast<double>((*items)->version));
  });
}

}  // namespace

http::HandlerFactory MakeApi(Services services) {
  TACIT_CHECK(services.latest && services.readiness && services.metrics != nullptr);
  auto shared = std::make_shared<const Services>(std::move(services));
  std::shared_ptr<const Versions> versions = shared->versions;
  if (versions == nullptr) {
    auto recommender =
        std::make_shared<Recommender>(shared->recommenders, shared->latest, shared->commits);
    recommender->Start();
    versions = std::make_shared<const LiveVersion>(shared->latest, std::move(recommender));
  }
  ShowServedVersions(*shared->metrics, shared->recommenders, versions);
  // The registry outlives the server and these objects, so the callback holds a weak pointer.
  shared->metrics->BeforeScrape([quality = QualityMetrics(*shared->metrics, shared->qualities),
                                 held = std::weak_ptr<const Services>(shared)] {
    const auto services = held.lock();
    const SnapshotPtr snapshot = services != nullptr ? services->latest() : nullptr;
    if (snapshot != nullptr) quality.Show(*snapshot);
  });
  std::vector<LearnerIndex> learners;
  for (const ServedLearner& learner : LearnersOf(*shared)) learners.push_back(learner.index);
  auto loaded = std::make_shared<LoadedModels>(learners);
  auto board = std::make_shared<BudgetBoard>(LearnersOf(*shared), shared->dashboard.limits,
                                             shared->total_budget);
  return [shared, versions, loaded, board] {
    return std::make_unique<Api>(shared, versions, loaded, board);
  };
}

}  // namespace tacit::serve
