#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/siphash.h"
#include "metrics/registry.h"
#include "serve/http.h"
#include "serve/recommend/item_ranker.h"
#include "serve/recommend/recommend_request.h"
#include "serve/recommend/recommender.h"

namespace tacit::serve {

// Hashes a user id to its key in the store's histories.
using UserHash = std::function<Hash128(std::string_view user)>;

// POST /v1/recommend. Owns its working memory; not thread-safe, one per thread.
class RecommendRoute {
 public:
  // `latest` and `hash` are as in Services; with `hash` null, requests by user id are refused.
  RecommendRoute(std::shared_ptr<const Recommender> recommender, Recommender::Latest latest,
                 UserHash hash, metrics::Registry& metrics);

  // Only operators may ask by user id: users have no credential here.
  void Answer(Role role, std::string_view body, Reply* reply);

 private:
  // Reads the request into request_.
  Status Read(Role role, std::string_view body);
  Status Recommend(std::string* answer);
  // Refuses a request by user id unless it is allowed here.
  Status CheckUser(Role role, const RecommendModel& model) const;
  // Reads the user's history: items of the catalogue, oldest first.
  Status ReadHistory(const RecommendModel& model, std::string_view user);
  void Append(const RecommendModel& model, const ServedItems& served,
              std::span<const RankedItem> items, std::string* answer) const;

  const std::shared_ptr<const Recommender> recommender_;
  const Recommender::Latest latest_;
  const UserHash hash_;
  const RecommendRequestParser parser_;
  std::vector<std::unique_ptr<ItemRanker>> rankers_;  // one per model
  std::vector<metrics::Counter> recommended_;         // one per model
  RecommendRequest request_;
  std::vector<uint32_t> history_;
};

// Answers from one snapshot, for callers without a server; refuses requests by user id.
Reply RecommendOnce(std::vector<RecommendModel> models,
                    std::shared_ptr<const store::Snapshot> snapshot, std::string_view body);

}  // namespace tacit::serve
