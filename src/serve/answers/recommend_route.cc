#include "serve/answers/recommend_route.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "http/caller.h"
#include "metrics/families.h"
#include "serve/answers/learner_kinds.h"
#include "serve/scoring/model_json.h"

namespace tacit::serve {
RecommendRoute::RecommendRoute(const std::vector<RecommendModel>& models,
                               std::shared_ptr<const Versions> versions, UserHash hash,
                               const LoadedModels* loaded, metrics::Registry& metrics,
                               std::vector<http::LearnerElsewhere> elsewhere)
    : models_(models),
      versions_(std::move(versions)),
      hash_(std::move(hash)),
      loaded_(loaded),
      parser_(models_, {}, std::move(elsewhere)) {
  for (const RecommendModel& model : models_) {
    rankers_.push_back(std::make_unique<ItemRanker>(model.model));
    recommended_.push_back(
        metrics.AddCounter("tacit_recommendations_total", {{"learner", model.promise.learner}}));
  }
}

void RecommendRoute::Answer(const http::Request& request, http::Reply* reply) {
  const auto asked = VersionOfQuery(request.query);
  if (!asked) return http::SetFailure(asked.error(), reply);
  if (const Status read = Read(request); !read) return http::SetFailure(read.error(), reply);
  const auto answering = versions_->Choose(*asked, request);
  if (!answering) return http::SetFailure(answering.error(), reply);
  CountedAnswer counted(*answering);
  const auto fail = [&](const Error& error) {
    counted.Failed();
    http::SetServerFailure(error, reply);
  };
  const auto served = StateOf(request_.model, *answering);
  if (!served) return fail(served.error());
  if (*asked && **asked != (*served)->version)
    return http::SetFailure(
        NoSuchVersion(models_[request_.model].promise.learner, **asked, (*served)->version), reply);
  if (const Status barred = Bar(request_, *answering); !barred)
    return http::SetFailure(barred.error(), reply);
  const Status answered = request_.sequences ? AnswerSequences(**served, &reply->body)
                                             : AnswerOne(*answering, **served, &reply->body);
  if (!answered) return fail(answered.error());
  fmt::format_to(std::back_inserter(reply->body), R"("covered_by_epsilon":{},)",
                 (*served)->is_private && !request_.user);
  if (!request_.sequences) AppendUnknown(request_.unknown_items, &reply->body);
  reply->body += (*served)->model;
  reply->body += "}\n";
}

Status RecommendRoute::AnswerOne(const Answering& answering, const ServedItems& served,
                                 std::string* answer) {
  TACIT_ASSIGN(const auto items, Rank(request_, answering, served, barred_));
  answer->reserve(items.size() * 40 + 512);
  *answer = "{";
  AppendItems(served, items, request_.user ? history_ : request_.sequence, answer);
  return {};
}

Status RecommendRoute::AnswerSequences(const ServedItems& served, std::string* answer) {
  *answer = R"({"answers":[)";
  const auto& sequences = *request_.sequences;
  for (const AskedSequence& sequence : sequences) {
    TACIT_ASSIGN(const auto items,
                 rankers_[request_.model]->OfHistory(*served.state, sequence.items, request_.count,
                                                     request_.exclude_seen, barred_));
    *answer += &sequence == &sequences.front() ? "{" : ",{";
    AppendItems(served, items, sequence.items, answer);
    AppendUnknown(sequence.unknown_items, answer);
    answer->back() = '}';  // the last comma
    recommended_[request_.model].Add();
  }
  *answer += "],";
  return {};
}

Status RecommendRoute::Bar(const RecommendRequest& request, const Answering& answering) {
  barred_.clear();
  if (!request.bars()) return {};
  const event::ItemCatalogue& items = *models_[request.model].items;
  barred_.assign(items.items(), request.among ? 1 : 0);
  if (request.among)
    for (const uint32_t item : *request.among) barred_[item] = 0;
  for (const uint32_t item : request.exclude) barred_[item] = 1;
  return request.filter.any()
             ? answering.recommender->IndexOf(request.model).LeaveOut(request.filter, barred_)
             : Status{};
}

Status RecommendRoute::Read(const http::Request& request) {
  TACIT_RETURN_IF_ERROR(parser_.Parse(request.body, &request_));
  return CheckUser(request);
}

Status RecommendRoute::CheckUser(const http::Request& request) const {
  const RecommendModel& model = models_[request_.model];
  const http::Caller* const caller = request.caller;
  const bool by_user = caller != nullptr && caller->role == http::CallerRole::kUser;
  if (by_user && request_.user != caller->user)
    return Fail(ErrorCode::kRefused,
                "a user's token is answered about that user alone: ask with \"user\"");
  if (!request_.user) return {};
  constexpr const char* kRaw =
      "recommending by user reads that user's raw history, which no epsilon covers, and";
  if (!model.serve_users)
    return Fail(ErrorCode::kRefused, fmt::format("{} learner '{}' is not configured to "
                                                 "(history.serve_users): ask with \"sequence\"",
                                                 kRaw, model.promise.learner));
  if (!hash_)
    return Fail(
        ErrorCode::kRefused,
        fmt::format("{} a checkpoint or replica knows no user by id: ask with \"sequence\"", kRaw));
  if (by_user || request.role == http::Role::kOperator) return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("{} is answered at the operator's listener (serve.operator_listen), "
                          "or with that user's own token: ask with \"sequence\"",
                          kRaw));
}

Result<std::shared_ptr<const ServedItems>> RecommendRoute::StateOf(
    size_t model, const Answering& answering) const {
  const RecommendModel& is = models_[model];
  if (loaded_ != nullptr) TACIT_RETURN_IF_ERROR(loaded_->Check(is.index, is.promise.learner));
  return answering.recommender->Get(model);
}

Result<std::span<const RankedItem>> RecommendRoute::Rank(const RecommendRequest& request,
                                                         const Answering& answering,
                                                         const ServedItems& served,
                                                         std::span<const uint8_t> barred) {
  const RecommendModel& model = models_[request.model];
  ItemRanker& ranker = *rankers_[request.model];
  if (request.user)
    TACIT_RETURN_IF_ERROR(ReadHistory(model, answering.snapshot.get(), *request.user));
  TACIT_ASSIGN(const auto items,
               request.user ? ranker.OfUser(*served.state, history_, request.count,
                                            request.exclude_seen, barred)
                            : ranker.OfHistory(*served.state, request.sequence, request.count,
                                               request.exclude_seen, barred));
  recommended_[request.model].Add();
  return items;
}

// Reads the history as of the last commit, which may be newer than the model's.
Status RecommendRoute::ReadHistory(const RecommendModel& model, const store::Snapshot* snapshot,
                                   std::string_view user) {
  history_.clear();
  if (snapshot == nullptr) return Fail(NotYetCommitted(model.promise.learner));
  TACIT_ASSIGN(const auto items, snapshot->History(model.index, hash_(user)));
  for (const store::HistoryItem& item : items)
    if (item.item < model.items->items()) history_.push_back(item.item);
  return {};
}

void RecommendRoute::AppendItems(const ServedItems& served, std::span<const RankedItem> items,
                                 std::span<const uint32_t> history, std::string* answer) {
  const event::ItemCatalogue& names = *models_[request_.model].items;
  ItemRanker& ranker = *rankers_[request_.model];
  *answer += R"("items":[)";
  for (const RankedItem& ranked : items) {
    *answer += &ranked == &items.front() ? R"({"id":)" : R"(,{"id":)";
    http::AppendJsonString(names.Name(ranked.item), answer);
    fmt::format_to(std::back_inserter(*answer), R"(,"score":{})", ranked.score);
    const auto reason = request_.reasons && !history.empty()
                            ? ranker.ReasonOf(*served.state, history, ranked.item)
                            : std::nullopt;
    if (reason) {
      *answer += R"(,"because":{"id":)";
      http::AppendJsonString(names.Name(reason->item), answer);
      fmt::format_to(std::back_inserter(*answer), R"(,"share":{:.3g}}})", reason->share);
    }
    *answer += '}';
  }
  *answer += "],";
}

void RecommendRoute::AppendUnknown(std::span<const std::string> unknown,
                                   std::string* answer) const {
  if (unknown.empty()) return;
  *answer += R"("unknown_items":[)";
  for (const std::string& id : unknown) {
    if (&id != &unknown.front()) *answer += ',';
    http::AppendJsonString(id, answer);
  }
  *answer += "],";
}

http::Reply RecommendOnce(const std::vector<RecommendModel>& models,
                          std::shared_ptr<const store::Snapshot> snapshot, std::string_view body,
                          std::span<const ScoringModel> rows) {
  const Recommender::Latest latest = [snapshot = std::move(snapshot)] { return snapshot; };
  auto recommender = std::make_shared<Recommender>(models, latest);
  recommender->Refresh();
  metrics::Registry metrics;
  http::Reply reply;
  http::Request request;
  request.role = http::Role::kOperator;
  request.body = body;
  RecommendRoute(models, std::make_shared<LiveVersion>(latest, recommender), {}, nullptr, metrics,
                 AskedForScores(rows))
      .Answer(request, &reply);
  return reply;
}

}  // namespace tacit::serve
