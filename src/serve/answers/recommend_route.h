#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "http/http.h"
#include "http/request_json.h"
#include "metrics/registry.h"
#include "serve/answers/recommend_request.h"
#include "serve/items/item_ranker.h"
#include "serve/items/recommender.h"
#include "serve/scoring/repository.h"
#include "serve/scoring/row_scorer.h"
#include "serve/versions/versions.h"

namespace tacit::serve {

// POST /v1/recommend. Owns its working memory; not thread-safe, one per thread.
class RecommendRoute {
 public:
  // `elsewhere` are learners that do not recommend.
  // `hash` is as in Services; if null, requests by user id are refused. `models` are those of every
  // version, and outlive it. A model that is not loaded answers nothing; if `loaded` is null,
  // all are.
  RecommendRoute(const std::vector<RecommendModel>& models,
                 std::shared_ptr<const Versions> versions, UserHash hash,
                 const LoadedModels* loaded, metrics::Registry& metrics,
                 std::vector<http::LearnerElsewhere> elsewhere = {});

  // Only operators may ask by user id, and a user by his token, about himself and nothing else.
  void Answer(const http::Request& request, http::Reply* reply);

  // The state that a model recommends from; fails where there is none, or it is unloaded.
  Result<std::shared_ptr<const ServedItems>> StateOf(size_t model,
                                                     const Answering& answering) const;
  // The answer to a request of one sequence or a user, from a state of its model, valid until the
  // next call. REQUIRES that a request by user is allowed.
  // Items marked in `barred` are left out: a mark for each item, or empty.
  Result<std::span<const RankedItem>> Rank(const RecommendRequest& request,
                                           const Answering& answering, const ServedItems& served,
                                           std::span<const uint8_t> barred = {});

 private:
  // Reads the request into request_.
  Status Read(const http::Request& request);
  // Refuses what was read unless this caller may ask it.
  Status CheckUser(const http::Request& request) const;
  // Reads the user's history as of a snapshot: items of the catalogue, oldest first.
  Status ReadHistory(const RecommendModel& model, const store::Snapshot* snapshot,
                     std::string_view user);
  // Marks in barred_ what the request does not want; empty where it wants everything.
  Status Bar(const RecommendRequest& request, const Answering& answering);
  // Appends `"items":[..],` of one answer, with reasons out of this history if they are asked for,
  // and its unknown items.
  void AppendItems(const ServedItems& served, std::span<const RankedItem> items,
                   std::span<const uint32_t> history, std::string* answer);
  void AppendUnknown(std::span<const std::string> unknown, std::string* answer) const;
  Status AnswerSequences(const ServedItems& served, std::string* answer);
  Status AnswerOne(const Answering& answering, const ServedItems& served, std::string* answer);

  const std::vector<RecommendModel>& models_;
  const std::shared_ptr<const Versions> versions_;
  const UserHash hash_;
  const LoadedModels* const loaded_;
  const RecommendRequestParser parser_;
  std::vector<std::unique_ptr<ItemRanker>> rankers_;  // one per model
  std::vector<metrics::Counter> recommended_;         // one per model
  RecommendRequest request_;
  std::vector<uint32_t> history_;
  std::vector<uint8_t> barred_;  // per item
};

// Answers from one snapshot, for callers without a server; refuses requests by user id. `rows` are
// learners that do not recommend.
http::Reply RecommendOnce(const std::vector<RecommendModel>& models,
                          std::shared_ptr<const store::Snapshot> snapshot, std::string_view body,
                          std::span<const ScoringModel> rows = {});

}  // namespace tacit::serve
