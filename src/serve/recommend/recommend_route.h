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

// A user as the store's histories know him.
using UserHash = std::function<Hash128(std::string_view user)>;

// POST /v1/recommend. Owns its working memory; not thread-safe, one per thread.
class RecommendRoute {
 public:
  // `latest` and `hash` as Services has them; `hash` null: nobody is recommended to by id.
  RecommendRoute(std::shared_ptr<const Recommender> recommender, Recommender::Latest latest,
                 UserHash hash, metrics::Registry& metrics);

  // By id for operators alone: users have no credential here.
  void Answer(Role role, std::string_view body, Reply* reply);

 private:
  Status Recommend(Role role, std::string_view body, std::string* answer);
  // Whether somebody may be named at all.
  Status CheckUser(Role role, const RecommendModel& model) const;
  // The items of the catalogue that the user is known to have met with, oldest first.
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

// The same out of one snapshot, for whoever has no server; nobody is recommended to by id.
Reply RecommendOnce(std::vector<RecommendModel> models,
                    std::shared_ptr<const store::Snapshot> snapshot, std::string_view body);

}  // namespace tacit::serve
