#include "serve/recommend/recommend_route.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace tacit::serve {
RecommendRoute::RecommendRoute(std::shared_ptr<const Recommender> recommender,
                               Recommender::Latest latest, UserHash hash,
                               metrics::Registry& metrics)
    : recommender_(std::move(recommender)),
      latest_(std::move(latest)),
      hash_(std::move(hash)),
      parser_(recommender_->models(), {}) {
  for (const RecommendModel& model : recommender_->models()) {
    rankers_.push_back(std::make_unique<ItemRanker>(model.model));
    recommended_.push_back(metrics.AddCounter(
        metrics::Audience::kPublic, "tacit_recommendations_total",
        "Requests answered with recommendations.", {{"learner", model.promise.learner}}));
  }
}

void RecommendRoute::Answer(Role role, std::string_view body, Reply* reply) {
  if (const Status read = Read(role, body); !read) return SetFailure(read.error(), reply);
  const Status done = Recommend(&reply->body);
  if (!done) return SetServerFailure(done.error(), reply);
  recommended_[request_.model].Add();
}

Status RecommendRoute::Read(Role role, std::string_view body) {
  TACIT_RETURN_IF_ERROR(parser_.Parse(body, &request_));
  if (!request_.user) return {};
  return CheckUser(role, recommender_->models()[request_.model]);
}

Status RecommendRoute::CheckUser(Role role, const RecommendModel& model) const {
  constexpr const char* kRaw =
      "recommending by user reads that user's raw history, which no epsilon covers, and";
  if (!model.serve_users)
    return Fail(ErrorCode::kRefused, fmt::format("{} learner '{}' is not configured to "
                                                 "(history.serve_users): ask with \"sequence\"",
                                                 kRaw, model.promise.learner));
  if (!hash_)
    return Fail(ErrorCode::kRefused,
                fmt::format("{} a checkpoint knows no user by id: ask with \"sequence\"", kRaw));
  if (role == Role::kOperator) return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("{} is answered at the operator's listener (serve.operator_listen) "
                          "alone: ask with \"sequence\"",
                          kRaw));
}

Status RecommendRoute::Recommend(std::string* answer) {
  const RecommendModel& model = recommender_->models()[request_.model];
  TACIT_ASSIGN(const auto served, recommender_->Get(request_.model));
  ItemRanker& ranker = *rankers_[request_.model];
  if (request_.user) TACIT_RETURN_IF_ERROR(ReadHistory(model, *request_.user));
  TACIT_ASSIGN(const auto items,
               request_.user
                   ? ranker.OfUser(*served->state, history_, request_.count, request_.exclude_seen)
                   : ranker.OfHistory(*served->state, request_.sequence, request_.count,
                                      request_.exclude_seen));
  Append(model, *served, items, answer);
  return {};
}

// Reads the history as of the last commit, which may be newer than the model's.
Status RecommendRoute::ReadHistory(const RecommendModel& model, std::string_view user) {
  history_.clear();
  const auto snapshot = latest_();
  if (snapshot == nullptr) return Fail(ErrorCode::kUnavailable, "no store yet");
  TACIT_ASSIGN(const auto items, snapshot->History(model.index, hash_(user)));
  for (const store::HistoryItem& item : items)
    if (item.item < model.items->items()) history_.push_back(item.item);
  return {};
}

void RecommendRoute::Append(const RecommendModel& model, const ServedItems& served,
                            std::span<const RankedItem> items, std::string* answer) const {
  answer->reserve(items.size() * 40 + 512);
  *answer = R"({"items":[)";
  for (const RankedItem& ranked : items) {
    *answer += &ranked == &items.front() ? R"({"id":)" : R"(,{"id":)";
    AppendJsonString(model.items->Name(ranked.item), answer);
    fmt::format_to(std::back_inserter(*answer), R"(,"score":{}}})", ranked.score);
  }
  fmt::format_to(std::back_inserter(*answer), R"(],"covered_by_epsilon":{},)",
                 served.is_private && !request_.user);
  if (!request_.unknown_items.empty()) {
    *answer += R"("unknown_items":[)";
    for (const std::string& id : request_.unknown_items) {
      if (&id != &request_.unknown_items.front()) *answer += ',';
      AppendJsonString(id, answer);
    }
    *answer += "],";
  }
  *answer += served.model;
  *answer += "}\n";
}

Reply RecommendOnce(std::vector<RecommendModel> models,
                    std::shared_ptr<const store::Snapshot> snapshot, std::string_view body) {
  const Recommender::Latest latest = [snapshot = std::move(snapshot)] { return snapshot; };
  auto recommender = std::make_shared<Recommender>(std::move(models), latest);
  recommender->Refresh();
  metrics::Registry metrics;
  Reply reply;
  RecommendRoute(recommender, latest, {}, metrics).Answer(Role::kOperator, body, &reply);
  return reply;
}

}  // namespace tacit::serve
