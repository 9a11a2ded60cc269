#include "serve/api.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/text.h"
#include "serve/ledger_route.h"
#include "serve/router.h"
#include "serve/score_request.h"

namespace tacit::serve {
namespace {

using SnapshotPtr = std::shared_ptr<const store::Snapshot>;

constexpr std::string_view kIndex = R"(tacit: learns from a stream with differential privacy

POST /v1/score     click probabilities of rows
GET  /v1/privacy   what has been spent, per learner and in total
GET  /healthz      200 while the process lives
GET  /readyz       200 once a committed model is served and training works
GET  /metrics      for Prometheus
)";

constexpr std::string_view kOperatorIndex = R"(
GET  /v1/ledger    every entry of the ledger, to be verified elsewhere
)";

template <class... Args>
void Append(std::string* out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(*out), format, std::forward<Args>(args)...);
}

// JSON has no infinity: an unbounded epsilon is null.
void AppendNumber(double number, std::string* out) {
  if (std::isfinite(number)) {
    Append(out, "{}", number);
  } else {
    *out += "null";
  }
}

std::string HashName(const Digest& digest) { return "sha256:" + ToHex(digest); }

// What the snapshot's ledger says of the learner; zero before its first charge.
privacy::LedgerTotal TotalOf(const store::Snapshot& snapshot, const privacy::Promise& promise) {
  for (const privacy::LedgerTotal& total : snapshot.learners())
    if (total.learner == promise.learner) return total;
  return {.learner = promise.learner, .unit = promise.unit, .delta = promise.delta};
}

bool IsPrivate(const privacy::LedgerTotal& total, const privacy::Promise& promise) {
  return std::isfinite(total.epsilon) && std::isfinite(promise.epsilon);
}

void AppendLoss(const privacy::LedgerTotal& total, std::string* out) {
  *out += R"("epsilon":)";
  AppendNumber(total.epsilon, out);
  *out += R"(,"delta":)";
  AppendNumber(total.delta, out);
}

// "model":{...}, which is in every answer.
void AppendModel(const store::Snapshot& snapshot, const privacy::Promise& promise,
                 std::string* out) {
  privacy::LedgerTotal total = TotalOf(snapshot, promise);
  const bool is_private = IsPrivate(total, promise);
  if (!is_private) total.epsilon = INFINITY;
  *out += R"("model":{"learner":)";
  AppendJsonString(promise.learner, out);
  Append(out, R"(,"version":{},"snapshot":"{}",)", snapshot.version().value,
         HashName(snapshot.head()));
  AppendLoss(total, out);
  Append(out, R"(,"private":{}}})", is_private);
}

void AppendLearner(const store::Snapshot& snapshot, const ScoringModel& model, bool exhausted,
                   std::string* out) {
  const privacy::Promise& promise = model.promise;
  privacy::LedgerTotal total = TotalOf(snapshot, promise);
  const bool is_private = IsPrivate(total, promise);
  if (!is_private) total.epsilon = INFINITY;
  *out += R"({"learner":)";
  AppendJsonString(promise.learner, out);
  Append(out, R"(,"unit":"{}",)", privacy::Name(total.unit));
  AppendLoss(total, out);
  Append(out, R"(,"steps":{},"private":{},"budget":{{"epsilon":)", total.steps, is_private);
  AppendNumber(promise.epsilon, out);
  Append(out, R"(,"exhausted":{}}},"participation":"{}","adjacency":"{}")", exhausted,
         privacy::Name(promise.participation), privacy::Name(promise.adjacency));
  AppendBounds(promise.bounds, out);
  *out += '}';
}

uint32_t HttpStatus(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

void SetFailure(const Error& error, Reply* reply) {
  SetError(HttpStatus(error), error.message, reply);
  if (reply->status == 503) reply->headers.emplace_back("Retry-After", "1");
}

void SetText(std::string_view text, Reply* reply) {
  reply->content_type = "text/plain; charset=utf-8";
  reply->body = text;
}

// The routes of one server thread, with its own scorers and scratch memory.
class Api final : public Handler {
 public:
  explicit Api(std::shared_ptr<const Services> services);
  void Handle(const Request& request, Reply* reply) override { router_.Handle(request, reply); }

 private:
  void Score(const Request& request, Reply* reply);
  void Privacy(Reply* reply) const;
  void Ledger(const Request& request, Reply* reply) const;
  void Ready(const Request& request, Reply* reply) const;
  void Metrics(const Request& request, Reply* reply) const;

  const std::shared_ptr<const Services> services_;
  Router router_;
  ScoreRequestParser parser_;
  std::vector<std::unique_ptr<Scorer>> scorers_;  // one per model
  std::vector<metrics::Counter> scored_;          // one per model
  event::Batch batch_;
  std::vector<float> scores_;
};

std::vector<ScoreRequestParser::Target> Targets(const std::vector<ScoringModel>& models) {
  std::vector<ScoreRequestParser::Target> targets;
  for (const ScoringModel& model : models)
    targets.push_back({model.promise.learner, model.transform});
  return targets;
}

Api::Api(std::shared_ptr<const Services> services)
    : services_(std::move(services)),
      router_(*services_->metrics),
      parser_(Targets(services_->models), {}) {
  for (const ScoringModel& model : services_->models) {
    scorers_.push_back(std::make_unique<Scorer>(model));
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
  router_.Add("POST", "/v1/score", [this](const Request& r, Reply* reply) { Score(r, reply); });
}

void Api::Score(const Request& request, Reply* reply) {
  const Result<size_t> model = parser_.Parse(request.body, &batch_);
  if (!model) return SetFailure(model.error(), reply);
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr)
    return SetFailure({ErrorCode::kUnavailable, "no committed model yet"}, reply);
  scores_.resize(batch_.size());
  const Status scored = scorers_[*model]->Score(*snapshot, batch_, scores_);
  if (!scored) return SetFailure(scored.error(), reply);
  scored_[*model].Add(static_cast<double>(scores_.size()));
  reply->body.reserve(scores_.size() * 12 + 256);
  reply->body = R"({"scores":[)";
  for (size_t i = 0; i < scores_.size(); ++i)
    Append(&reply->body, "{}{}", i == 0 ? "" : ",", scores_[i]);
  reply->body += "],";
  AppendModel(*snapshot, services_->models[*model].promise, &reply->body);
  reply->body += "}\n";
}

void Api::Privacy(Reply* reply) const {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
  reply->body = PrivacyJson(*snapshot, services_->models, services_->budget_exhausted,
                            services_->total_budget);
}

void Api::Ledger(const Request& request, Reply* reply) const {
  const SnapshotPtr snapshot = services_->latest();
  if (snapshot == nullptr) return SetFailure({ErrorCode::kUnavailable, "no store yet"}, reply);
  AnswerLedger(*snapshot, services_->models, services_->total_budget, request.query, reply);
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

std::string PrivacyJson(const store::Snapshot& snapshot, const std::vector<ScoringModel>& models,
                        const std::function<bool(LearnerIndex)>& budget_exhausted,
                        const std::optional<privacy::TotalBudget>& total_budget) {
  std::string out = R"({"learners":[)";
  bool all_private = true;
  for (const ScoringModel& model : models) {
    if (&model != &models.front()) out += ",";
    AppendLearner(snapshot, model, budget_exhausted && budget_exhausted(model.index), &out);
    all_private = all_private && IsPrivate(TotalOf(snapshot, model.promise), model.promise);
  }
  privacy::LedgerTotal total = snapshot.total();
  if (!all_private) total.epsilon = INFINITY;
  Append(&out, R"(],"total":{{"unit":"{}",)", privacy::Name(total.unit));
  AppendLoss(total, &out);
  if (total_budget)
    Append(&out, R"(,"budget":{{"epsilon":{},"delta":{}}})", total_budget->epsilon,
           total_budget->delta);
  Append(&out, R"(}},"entries":{},"head":"{}","version":{},"lineage":)", snapshot.ledger_entries(),
         HashName(snapshot.head()), snapshot.version().value);
  AppendJsonString(snapshot.lineage(), &out);
  out += "}\n";
  return out;
}

HandlerFactory MakeApi(Services services) {
  TACIT_CHECK(services.latest && services.readiness && services.metrics != nullptr);
  auto shared = std::make_shared<const Services>(std::move(services));
  return [shared] { return std::make_unique<Api>(shared); };
}

}  // namespace tacit::serve
