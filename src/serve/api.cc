#include "serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/text.h"
#include "http/query_fields.h"
#include "http/request_json.h"
#include "http/router.h"
#include "metrics/families.h"
#include "serve/answers/learner_kinds.h"
#include "serve/answers/recommend_route.h"
#include "serve/answers/score_answer.h"
#include "serve/dashboard/dashboard_route.h"
#include "serve/inference/infer_route.h"
#include "serve/routes/ledger_route.h"
#include "serve/routes/lookup_route.h"
#include "serve/routes/weights_route.h"
#include "serve/scoring/model_json.h"
#include "serve/scoring/row_scoring.h"
#include "serve/scoring/score_lines.h"
#include "serve/scoring/score_request.h"

namespace tacit::serve {
namespace {

using SnapshotPtr = std::shared_ptr<const store::Snapshot>;

constexpr std::string_view kIndex = R"(tacit: learns from a stream with differential privacy

POST /v1/score     click probabilities of rows
POST /v1/score/lines  the same of records as the stream has them, one a line: ?learner=ID
POST /v1/recommend what comes next after a sequence of items
POST /v1/lookup    what was learnt for values of features
GET  /v2           the Open Inference Protocol: /v2/models/{name}/infer and the rest
GET  /v1/quality   how well learners predict, by noised counts that are charged
GET  /v1/privacy   what has been spent, per learner and in total
GET  /healthz      200 while the process lives
GET  /readyz       200 once a committed model is served and training works
GET  /metrics      for Prometheus
)";

constexpr std::string_view kOperatorIndex = R"(
GET  /             in a browser: the dashboard, which asks /v1/dashboard
GET  /v1/ledger    every entry of the ledger, to be verified elsewhere
GET  /v1/weights   the largest weights of a linear model, with their deviations
GET  /v1/checkpoints  the checkpoints there are, and how the last one went
POST /v1/checkpoints  makes one: {"kind":"full"} or {"kind":"release"}
GET  /v1/versions  the versions of a server of checkpoints; POST chooses: {"serve":12|"newest",
                   "canary":{"version":14,"share":0.1}|null}
GET  /v1/users/{id}  all that is held of a user
GET  /v1/users/{id}/privacy  what anybody can tell of a user from what was learnt
DELETE /v1/users/{id}  forgets a user's history
POST /v2/repository/models/{name}/load  takes up a newer checkpoint; .../unload takes a model away
)";

template <class... Args>
void Append(std::string* out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(*out), format, std::forward<Args>(args)...);
}

void AppendLearner(const store::Snapshot& snapshot, const ServedLearner& learner, bool exhausted,
                   std::string* out) {
  const privacy::Promise& promise = learner.promise;
  const privacy::LedgerTotal total = TotalOf(snapshot, promise);
  *out += R"({"learner":)";
  AppendJsonString(promise.learner, out);
  Append(out, R"(,"unit":"{}",)", privacy::Name(total.unit));
  AppendLoss(total, out);
  Append(out, R"(,"steps":{},"private":{},"budget":{{"epsilon":)", total.steps, IsPrivate(total));
  AppendNumber(promise.epsilon, out);
  Append(out, R"(,"exhausted":{}}},"participation":"{}","adjacency":"{}","neighbours":"{}")",
         exhausted, privacy::Name(promise.participation), privacy::Name(promise.adjacency),
         privacy::InWords(promise.adjacency, promise.unit));
  AppendBounds(promise.bounds, out);
  *out += ',';
  AppendAtMost(total, out);
  *out += '}';
}

// Appends learners that were charged but are no longer configured, or configured under another
// name. Their releases remain public, so the total includes them.
void AppendRetired(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                   std::string* out) {
  const size_t begin = out->size();
  for (const privacy::LedgerTotal& total : snapshot.learners()) {
    const bool configured = std::ranges::any_of(
        learners, [&](const ServedLearner& l) { return l.promise.learner == total.learner; });
    if (configured || total.steps == 0) continue;
    *out += out->size() == begin ? R"(,"retired":[{"learner":)" : R"(,{"learner":)";
    AppendJsonString(total.learner, out);
    Append(out, R"(,"unit":"{}",)", privacy::Name(total.unit));
    AppendLoss(total, out);
    Append(out, R"(,"steps":{},)", total.steps);
    AppendAtMost(total, out);
    *out += '}';
  }
  if (out->size() != begin) *out += ']';
}

// Writes what anybody can tell at most of one user from what was learnt: the learners' promises,
// and how much of each allowance the user has used.
void WriteUserPrivacy(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                      std::string_view id, const UserReport& report, std::string* out) {
  *out = R"({"user":)";
  AppendJsonString(id, out);
  *out += R"(,"learners":[)";
  for (const ServedLearner& learner : learners) {
    const privacy::LedgerTotal total = TotalOf(snapshot, learner.promise);
    *out += &learner == &learners.front() ? R"({"learner":)" : R"(,{"learner":)";
    AppendJsonString(learner.promise.learner, out);
    Append(out, R"(,"unit":"{}","adjacency":"{}","neighbours":"{}",)", privacy::Name(total.unit),
           privacy::Name(learner.promise.adjacency),
           privacy::InWords(learner.promise.adjacency, learner.promise.unit));
    AppendLoss(total, out);
    Append(out, R"(,"private":{},)", IsPrivate(total));
    AppendAtMost(total, out);
    const auto used = std::ranges::find(report.allowances, learner.promise.learner,
                                        &UserReport::Allowance::learner);
    if (used != report.allowances.end())
      Append(out, R"(,"allowance":{{"used":{},"of":{}}})", used->used, used->most);
    *out += '}';
  }
  Append(out, R"(],"opted_out":{},"version":{},"head":"sha256:{}"}})", report.opted_out,
         snapshot.version().value, ToHex(snapshot.head()));
  *out += '\n';
}

void SetText(std::string_view text, Reply* reply) {
  reply->content_type = "text/plain; charset=utf-8";
  reply->body = text;
}

// The routes of one server thread, with its own scorers and scratch memory.
class Api final : public Handler {
 public:
  Api(std::shared_ptr<const Services> services, std::shared_ptr<const Versions> versions,
      std::shared_ptr<LoadedModels> loaded, std::shared_ptr<BudgetBoard> board);
  void Handle(const Request& request, Reply* reply) override { router_.Handle(request, reply); }

 private:
  void Score(const Request& request, Reply* reply);
  void ScoreLines(const Request& request, Reply* reply);
  // Scores what was read for a model, by the version that was asked for, if one was.
  void Answer(size_t model, std::optional<uint64_t> version, const Request& request, Reply* reply);
  void Quality(Reply* reply) const;
  void Privacy(Reply* reply) const;
  void UserPrivacy(const Request& request, Reply* reply) const;
  void Ledger(const Request& request, Reply* reply) const;
  void Weights(const Request& request, Reply* reply) const;
  void Lookup(const Request& request, Reply* reply) const;
  void Dashboard(const Request& request, Reply* reply) const;
  // Fails, saying why, unless the service is ready; `degraded` is what is wrong all the same.
  Status IsReady(Role role, std::string* degraded) const;
  void Ready(const Request& request, Reply* reply) const;
  void Metrics(const Request& request, Reply* reply) const;

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

std::vector<ScoreRequestParser::Target> Targets(const std::vector<ScoringModel>& models) {
  std::vector<ScoreRequestParser::Target> targets;
  for (const ScoringModel& model : models)
    targets.push_back({model.promise.learner, model.transform});
  return targets;
}

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
            return IsReady(Role::kPublic, &degraded);
          },
          &scoring_, &recommend_, loaded_.get()),
      dashboard_(*services_, learners_, std::move(board)) {
  // The page holds no figures: where tokens are asked for, its script asks for the operator's.
  router_.Add(
      "GET", "/",
      [](const Request& request, Reply* reply) {
        reply->same_for_all = true;
        if (request.at_operators_door && WantsPage(request)) return AnswerDashboardPage(reply);
        SetText(kIndex, reply);
        if (request.role == Role::kOperator) reply->body += kOperatorIndex;
      },
      Access::kAll);
  router_.Add(
      "GET", "/healthz", [](const Request&, Reply* reply) { SetText("ok\n", reply); },
      Access::kAll);
  router_.Add(
      "GET", "/readyz", [this](const Request& request, Reply* reply) { Ready(request, reply); },
      Access::kAll);
  router_.Add("GET", "/metrics", [this](const Request& r, Reply* reply) { Metrics(r, reply); });
  router_.Add("GET", "/v1/quality", [this](const Request&, Reply* reply) { Quality(reply); });
  router_.Add(
      "GET", "/v1/privacy", [this](const Request&, Reply* reply) { Privacy(reply); },
      Access::kCallers);
  router_.Add(
      "GET", "/v1/ledger", [this](const Request& r, Reply* reply) { Ledger(r, reply); },
      Role::kOperator);
  router_.Add(
      "GET", "/v1/weights", [this](const Request& r, Reply* reply) { Weights(r, reply); },
      Role::kOperator);
  router_.Add(
      "GET", "/v1/dashboard", [this](const Request& r, Reply* reply) { Dashboard(r, reply); },
      Role::kOperator);
  if (const auto& checkpoints = services_->checkpoints) {
    router_.Add(
        "GET", "/v1/checkpoints",
        [&checkpoints](const Request&, Reply* reply) { AnswerCheckpoints(*checkpoints, reply); },
        Role::kOperator);
    router_.Add(
        "POST", "/v1/checkpoints",
        [&checkpoints](const Request& request, Reply* reply) {
          AnswerMakeCheckpoint(*checkpoints, request.body, reply);
        },
        Role::kOperator);
  }
  if (const auto& versions_here = services_->version_commands) {
    router_.Add(
        "GET", "/v1/versions",
        [&versions_here](const Request&, Reply* reply) { AnswerVersions(*versions_here, reply); },
        Role::kOperator);
    router_.Add(
        "POST", "/v1/versions",
        [&versions_here](const Request& request, Reply* reply) {
          AnswerSetVersions(*versions_here, request.body, reply);
        },
        Role::kOperator);
  }
  if (const auto& users = services_->users) {
    const std::string path = std::string(kUsersPath) + "{id}";
    router_.Add(
        "GET", path,
        [&users](const Request& request, Reply* reply) { AnswerUser(users->show, request, reply); },
        Access::kOwner);
    router_.Add(
        "GET", path + "/privacy",
        [this](const Request& request, Reply* reply) { UserPrivacy(request, reply); },
        Access::kOwner);
    router_.Add(
        "DELETE", path,
        [&users](const Request& request, Reply* reply) {
          AnswerUser(users->forget, request, reply);
        },
        Role::kOperator);
  }
  router_.Add("POST", "/v1/score", [this](const Request& r, Reply* reply) { Score(r, reply); });
  router_.Add("POST", "/v1/score/lines",
              [this](const Request& r, Reply* reply) { ScoreLines(r, reply); });
  router_.Add("POST", "/v1/lookup", [this](const Request& r, Reply* reply) { Lookup(r, reply); });
  router_.Add(
      "POST", "/v1/recommend",
      [this](const Request& r, Reply* reply) { recommend_.Answer(r, reply); }, Access::kCallers);
  infer_.AddTo(&router_);
}

void Api::Score(const Request& request, Reply* reply) {
  const auto version = VersionOfQuery(request.query);
  if (!version) return SetFailure(version.error(), reply);
  const Result<size_t> model = parser_.Parse(request.body, scoring_.batch());
  if (!model) return SetFailure(model.error(), reply);
  Answer(*model, *version, request, reply);
}

// A query that names a model and a version.
struct LinesAsked {
  std::optional<std::string> learner;
  std::optional<uint64_t> version;
};

Result<LinesAsked> ReadLinesAsked(std::string_view query) {
  LinesAsked asked;
  TACIT_RETURN_IF_ERROR(
      ForFields(query, [&](std::string_view name, const std::string& value) -> Status {
        if (name == "version") {
          TACIT_ASSIGN(asked.version, WholeNumber(name, value));
        } else if (name == "learner") {
          asked.learner = value;
        } else {
          return BadRequest(
              fmt::format("unknown parameter '{}' (there are learner and version)", name));
        }
        return {};
      }));
  return asked;
}

void Api::ScoreLines(const Request& request, Reply* reply) {
  const auto asked = ReadLinesAsked(request.query);
  if (!asked) return SetFailure(asked.error(), reply);
  std::vector<std::string_view> learners;
  for (const ScoringModel& model : services_->models) learners.push_back(model.promise.learner);
  const Result<size_t> model = FindLearner(asked->learner, learners, recommend_elsewhere_);
  if (!model) return SetFailure(model.error(), reply);
  const ScoringModel& scoring = services_->models[*model];
  if (scoring.lines == nullptr)
    return SetFailure(
        {ErrorCode::kInvalidArgument, "the stream's records are no lines of text: ask /v1/score"},
        reply);
  const Status read = lines_.Read(request.body, scoring, scoring_.batch());
  if (!read) return SetFailure(read.error(), reply);
  Answer(*model, asked->version, request, reply);
}

void Api::Answer(size_t model, std::optional<uint64_t> version, const Request& request,
                 Reply* reply) {
  const auto answering = versions_->Choose(version, request);
  if (!answering) return SetFailure(answering.error(), reply);
  CountedAnswer counted(*answering);
  const store::Snapshot* const snapshot = answering->snapshot.get();
  if (snapshot == nullptr)
    return SetFailure({ErrorCode::kUnavailable, "no committed model yet"}, reply);
  const ScoringModel& is = services_->models[model];
  if (version && *version != snapshot->version().value)
    return SetFailure(NoSuchVersion(is.promise.learner, *version, snapshot->version().value),
                      reply);
  const auto scores = scoring_.Score(model, *snapshot);
  if (!scores) {
    counted.Failed();
    return SetServerFailure(scores.error(), reply);
  }
  WriteScores(*snapshot, is, *scores, &reply->body);
}

void Api::Quality(Reply* reply) const {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
  AnswerQuality(*snapshot, services_->qualities, reply);
  reply->same_for_all = true;
}

void Api::Privacy(Reply* reply) const {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
  reply->body =
      PrivacyJson(*snapshot, learners_, services_->budget_exhausted, services_->total_budget);
  reply->same_for_all = true;
}

void Api::UserPrivacy(const Request& request, Reply* reply) const {
  const auto id = UserAskedFor(request, request.parts[0], reply);
  if (!id) return;
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
  const auto report = services_->users->show(*id);
  if (!report) return SetServerFailure(report.error(), reply);
  WriteUserPrivacy(*snapshot, learners_, *id, *report, &reply->body);
}

void Api::Ledger(const Request& request, Reply* reply) const {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
  AnswerLedger(*snapshot, learners_, services_->total_budget, request.query, reply);
}

void Api::Weights(const Request& request, Reply* reply) const {
  const SnapshotPtr snapshot = versions_->Serving().snapshot;
  if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
  AnswerWeights(services_->models, recommend_elsewhere_, *snapshot, request.query, reply);
}

void Api::Lookup(const Request& request, Reply* reply) const {
  const auto version = VersionOfQuery(request.query);
  if (!version) return SetFailure(version.error(), reply);
  const auto answering = versions_->Choose(*version, request);
  if (!answering) return SetFailure(answering.error(), reply);
  CountedAnswer counted(*answering);
  const SnapshotPtr& snapshot = answering->snapshot;
  if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
  AnswerLookup(services_->models, recommend_elsewhere_, *snapshot, *version, request, reply);
  if (reply->status >= 500) counted.Failed();
}

void Api::Dashboard(const Request& request, Reply* reply) const {
  DashboardRoute::Health health;
  health.ready = IsReady(Role::kOperator, &health.degraded);
  health.ready_for_all = IsReady(Role::kPublic, &health.degraded_for_all);
  dashboard_.Answer(request.query, health, reply);
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

Status Api::IsReady(Role role, std::string* degraded) const {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr || snapshot->version() == CommitSeq(0) || IsChargedAlone(*snapshot)) {
    std::string why = "no committed model yet";
    if (role == Role::kOperator && services_->readiness)
      if (const std::string cause = services_->readiness().degraded_for_operators; !cause.empty())
        why += ": " + cause;
    return Fail(ErrorCode::kUnavailable, std::move(why));
  }
  Readiness readiness = services_->readiness();
  if (!readiness.ready) return Fail(ErrorCode::kUnavailable, std::move(readiness.reason));
  *degraded = role == Role::kOperator ? readiness.degraded_for_operators : readiness.degraded;
  return {};
}

void Api::Ready(const Request& request, Reply* reply) const {
  std::string why;
  const Status ready = IsReady(request.role, &why);
  if (!ready) return SetFailure(ready.error(), reply);
  SetText(why.empty() ? "ready\n" : "ready, degraded: " + why + "\n", reply);
}

void Api::Metrics(const Request& request, Reply* reply) const {
  const bool is_operator = request.role == Role::kOperator;
  reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
  // The operator's figures carry no noise.
  reply->same_for_all = !is_operator;
  reply->body = services_->metrics->Scrape(is_operator ? metrics::Audience::kOperator
                                                       : metrics::Audience::kPublic);
}

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

std::string PrivacyJson(const store::Snapshot& snapshot, const std::vector<ServedLearner>& learners,
                        const std::function<bool(LearnerIndex)>& budget_exhausted,
                        const std::optional<privacy::TotalBudget>& total_budget) {
  std::string out = R"({"learners":[)";
  bool all_private = true;
  for (const ServedLearner& learner : learners) {
    if (&learner != &learners.front()) out += ",";
    AppendLearner(snapshot, learner, budget_exhausted && budget_exhausted(learner.index), &out);
    all_private = all_private && IsPrivate(TotalOf(snapshot, learner.promise));
  }
  out += ']';
  AppendRetired(snapshot, learners, &out);
  privacy::LedgerTotal total = snapshot.total();
  if (!all_private) total.epsilon = INFINITY;
  Append(&out, R"(,"total":{{"unit":"{}",)", privacy::Name(total.unit));
  AppendLoss(total, &out);
  out += ',';
  AppendAtMost(total, &out);
  if (total_budget)
    Append(&out, R"(,"budget":{{"epsilon":{},"delta":{}}})", total_budget->epsilon,
           total_budget->delta);
  Append(&out, R"(}},"entries":{},"head":"{}","version":{},"lineage":)", snapshot.ledger_entries(),
         "sha256:" + ToHex(snapshot.head()), snapshot.version().value);
  AppendJsonString(snapshot.lineage(), &out);
  out += "}\n";
  return out;
}

HandlerFactory MakeApi(Services services) {
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
  // The registry outlives the server, and what it is asked with.
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
