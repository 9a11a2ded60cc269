#include "serve/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/text.h"
#include "serve/ledger_route.h"
#include "serve/model_json.h"
#include "serve/query_fields.h"
#include "serve/request_json.h"
#include "serve/router.h"
#include "serve/score_answer.h"
#include "serve/score_lines.h"
#include "serve/score_request.h"
#include "serve/weights_route.h"

namespace tacit::serve {
namespace {

using SnapshotPtr = std::shared_ptr<const store::Snapshot>;

constexpr std::string_view kIndex = R"(tacit: learns from a stream with differential privacy

POST /v1/score     click probabilities of rows
POST /v1/score/lines  the same of records as the stream has them, one a line: ?learner=ID
POST /v1/recommend what comes next after a sequence of items
GET  /v1/privacy   what has been spent, per learner and in total
GET  /healthz      200 while the process lives
GET  /readyz       200 once a committed model is served and training works
GET  /metrics      for Prometheus
)";

constexpr std::string_view kOperatorIndex = R"(
GET  /v1/ledger    every entry of the ledger, to be verified elsewhere
GET  /v1/weights   the largest weights of a linear model, with their deviations
GET  /v1/checkpoints  the checkpoints there are, and how the last one went
POST /v1/checkpoints  makes one: {"kind":"full"} or {"kind":"release"}
GET  /v1/users/{id}  all that is held of a user
DELETE /v1/users/{id}  forgets a user's history
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
  Append(out, R"(,"exhausted":{}}},"participation":"{}","adjacency":"{}")", exhausted,
         privacy::Name(promise.participation), privacy::Name(promise.adjacency));
  AppendBounds(promise.bounds, out);
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
    Append(out, R"(,"steps":{}}})", total.steps);
  }
  if (out->size() != begin) *out += ']';
}

void SetText(std::string_view text, Reply* reply) {
  reply->content_type = "text/plain; charset=utf-8";
  reply->body = text;
}

// The routes of one server thread, with its own scorers and scratch memory.
class Api final : public Handler {
 public:
  Api(std::shared_ptr<const Services> services, std::shared_ptr<const Recommender> recommender);
  void Handle(const Request& request, Reply* reply) override { router_.Handle(request, reply); }

 private:
  void Score(const Request& request, Reply* reply);
  void ScoreLines(const Request& request, Reply* reply);
  // Scores what was read for a model.
  void Answer(size_t model, Reply* reply);
  void Privacy(Reply* reply) const;
  void Ledger(const Request& request, Reply* reply) const;
  void Weights(const Request& request, Reply* reply) const;
  void Ready(const Request& request, Reply* reply) const;
  void Metrics(const Request& request, Reply* reply) const;

  const std::shared_ptr<const Services> services_;
  const std::vector<ServedLearner> learners_;
  Router router_;
  ScoreRequestParser parser_;
  LineReader lines_;
  std::vector<std::unique_ptr<RowScorer>> scorers_;  // one per model
  std::vector<metrics::Counter> scored_;             // one per model
  event::Batch batch_;
  std::vector<float> scores_;
  RecommendRoute recommend_;
};

std::vector<ScoreRequestParser::Target> Targets(const std::vector<ScoringModel>& models) {
  std::vector<ScoreRequestParser::Target> targets;
  for (const ScoringModel& model : models)
    targets.push_back({model.promise.learner, model.transform});
  return targets;
}

Api::Api(std::shared_ptr<const Services> services, std::shared_ptr<const Recommender> recommender)
    : services_(std::move(services)),
      learners_(LearnersOf(*services_)),
      router_(*services_->metrics),
      parser_(Targets(services_->models), {}),
      recommend_(std::move(recommender), services_->latest, services_->user_hash,
                 *services_->metrics) {
  for (const ScoringModel& model : services_->models) {
    scorers_.push_back(model.model->MakeScorer());
    scored_.push_back(services_->metrics->AddCounter(metrics::Audience::kPublic,
                                                     "tacit_scored_rows_total", "Rows scored.",
                                                     {{"learner", model.promise.learner}}));
  }
  router_.Add("GET", "/", [](const Request& request, Reply* reply) {
    SetText(kIndex, reply);
    if (request.role == Role::kOperator) reply->body += kOperatorIndex;
  });
  router_.Add("GET", "/healthz", [](const Request&, Reply* reply) { SetText("ok\n", reply); });
  router_.Add("GET", "/readyz",
              [this](const Request& request, Reply* reply) { Ready(request, reply); });
  router_.Add("GET", "/metrics", [this](const Request& r, Reply* reply) { Metrics(r, reply); });
  router_.Add("GET", "/v1/privacy", [this](const Request&, Reply* reply) { Privacy(reply); });
  router_.Add(
      "GET", "/v1/ledger", [this](const Request& r, Reply* reply) { Ledger(r, reply); },
      Role::kOperator);
  router_.Add(
      "GET", "/v1/weights", [this](const Request& r, Reply* reply) { Weights(r, reply); },
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
  if (const auto& users = services_->users) {
    const std::string path = std::string(kUsersPath) + "{id}";
    router_.Add(
        "GET", path,
        [&users](const Request& request, Reply* reply) {
          AnswerUser(users->show, request.path, reply);
        },
        Role::kOperator);
    router_.Add(
        "DELETE", path,
        [&users](const Request& request, Reply* reply) {
          AnswerUser(users->forget, request.path, reply);
        },
        Role::kOperator);
  }
  router_.Add("POST", "/v1/score", [this](const Request& r, Reply* reply) { Score(r, reply); });
  router_.Add("POST", "/v1/score/lines",
              [this](const Request& r, Reply* reply) { ScoreLines(r, reply); });
  router_.Add("POST", "/v1/recommend",
              [this](const Request& r, Reply* reply) { recommend_.Answer(r.role, r.body, reply); });
}

void Api::Score(const Request& request, Reply* reply) {
  const Result<size_t> model = parser_.Parse(request.body, &batch_);
  if (!model) return SetFailure(model.error(), reply);
  Answer(*model, reply);
}

// Returns the model that the query names, by its place.
Result<size_t> ModelOf(std::string_view query, const std::vector<ScoringModel>& models) {
  std::optional<std::string> learner;
  TACIT_RETURN_IF_ERROR(
      ForFields(query, [&](std::string_view name, const std::string& value) -> Status {
        if (name != "learner")
          return BadRequest(fmt::format("unknown parameter '{}' (there is learner)", name));
        learner = value;
        return {};
      }));
  std::vector<std::string_view> learners;
  for (const ScoringModel& model : models) learners.push_back(model.promise.learner);
  return FindLearner(learner, learners);
}

void Api::ScoreLines(const Request& request, Reply* reply) {
  const Result<size_t> model = ModelOf(request.query, services_->models);
  if (!model) return SetFailure(model.error(), reply);
  const ScoringModel& scoring = services_->models[*model];
  if (scoring.lines == nullptr)
    return SetFailure(
        {ErrorCode::kInvalidArgument, "the stream's records are no lines of text: ask /v1/score"},
        reply);
  const Status read = lines_.Read(request.body, scoring, &batch_);
  if (!read) return SetFailure(read.error(), reply);
  Answer(*model, reply);
}

void Api::Answer(size_t model, Reply* reply) {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr)
    return SetFailure({ErrorCode::kUnavailable, "no committed model yet"}, reply);
  const Status scored = AnswerScores(*snapshot, services_->models[model], batch_,
                                     scorers_[model].get(), &scores_, &reply->body);
  if (!scored) return SetServerFailure(scored.error(), reply);
  scored_[model].Add(static_cast<double>(scores_.size()));
}

void Api::Privacy(Reply* reply) const {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
  reply->body =
      PrivacyJson(*snapshot, learners_, services_->budget_exhausted, services_->total_budget);
}

void Api::Ledger(const Request& request, Reply* reply) const {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
  AnswerLedger(*snapshot, learners_, services_->total_budget, request.query, reply);
}

void Api::Weights(const Request& request, Reply* reply) const {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
  AnswerWeights(services_->models, *snapshot, request.query, reply);
}

void Api::Ready(const Request& request, Reply* reply) const {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr || snapshot->version() == CommitSeq(0))
    return SetFailure({ErrorCode::kUnavailable, "no committed model yet"}, reply);
  const Readiness readiness = services_->readiness();
  if (!readiness.ready) return SetFailure({ErrorCode::kUnavailable, readiness.reason}, reply);
  const std::string& why =
      request.role == Role::kOperator ? readiness.degraded_for_operators : readiness.degraded;
  SetText(why.empty() ? "ready\n" : "ready, degraded: " + why + "\n", reply);
}

void Api::Metrics(const Request& request, Reply* reply) const {
  const bool is_operator = request.role == Role::kOperator;
  reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply->body = services_->metrics->Scrape(is_operator ? metrics::Audience::kOperator
                                                       : metrics::Audience::kPublic);
}

}  // namespace

std::vector<ServedLearner> LearnersOf(const Services& services) {
  std::vector<ServedLearner> learners;
  for (const ScoringModel& model : services.models)
    learners.push_back({model.index, model.promise});
  for (const RecommendModel& model : services.recommenders)
    learners.push_back({model.index, model.promise});
  std::ranges::sort(learners, {}, [](const ServedLearner& l) { return l.index.value; });
  return learners;
}

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
  auto recommender =
      std::make_shared<Recommender>(shared->recommenders, shared->latest, shared->commits);
  recommender->Start();
  return [shared, recommender] { return std::make_unique<Api>(shared, recommender); };
}

}  // namespace tacit::serve
