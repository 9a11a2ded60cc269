// An answer must take as much work for a user who is unknown: timings would tell.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "http/caller.h"
#include "recommend_fakes.h"
#include "serve/answers/recommend_route.h"
#include "serve/items/item_ranker.h"

namespace tacit::serve {
namespace {

// All that an answer's time follows from, counted.
struct Work {
  size_t lookups = 0, scorings = 0, items_scored = 0, items_answered = 0;
  friend bool operator==(const Work&, const Work&) = default;
};

// Scores as FakeItems does, and counts.
class CountedItems final : public ItemModel {
 public:
  explicit CountedItems(uint32_t items, Work* work) : fake_(items), work_(work) {}
  uint32_t items() const override { return fake_.items(); }
  Result<std::shared_ptr<const ItemState>> Build(
      const store::Snapshot& snapshot,
      const std::shared_ptr<const ItemState>& last) const override {
    return fake_.Build(snapshot, last);
  }
  std::unique_ptr<ItemScorer> MakeScorer() const override {
    struct Counted final : ItemScorer {
      Counted(std::unique_ptr<ItemScorer> s, Work* w) : scorer(std::move(s)), work(w) {}
      Status Score(const ItemState& state, std::span<const uint32_t> history,
                   std::span<float> scores) override {
        ++work->scorings;
        work->items_scored += scores.size();
        return scorer->Score(state, history, scores);
      }
      const std::unique_ptr<ItemScorer> scorer;
      Work* const work;
    };
    return std::make_unique<Counted>(fake_.MakeScorer(), work_);
  }

 private:
  const FakeItems fake_;
  Work* const work_;
};

class CountedSnapshot final : public RecommendSnapshot {
 public:
  CountedSnapshot(const privacy::Promise& promise, Work* work)
      : RecommendSnapshot(6, promise), work_(work) {}
  Result<std::vector<store::HistoryItem>> History(LearnerIndex learner,
                                                  const Hash128& user) const override {
    ++work_->lookups;
    return RecommendSnapshot::History(learner, user);
  }

 private:
  Work* const work_;
};

class KnownUserTest : public testing::Test {
 protected:
  KnownUserTest() {
    model_.model = std::make_shared<const CountedItems>(40, &work_);
    auto snapshot = std::make_shared<CountedSnapshot>(model_.promise, &work_);
    snapshot->released = std::make_shared<const std::string>("first");
    snapshot->histories[SipHash()("one")] = {{3, 10}};
    snapshot->histories[SipHash()("some")] = {{3, 10}, {7, 11}, {9, 12}};
    std::vector<store::HistoryItem>& all = snapshot->histories[SipHash()("saw-all")];
    for (uint32_t item = 0; item < 40; ++item) all.push_back({item, item});
    snapshot_ = snapshot;
    const Recommender::Latest latest = [this] { return snapshot_; };
    recommender_ = std::make_shared<Recommender>(std::vector<RecommendModel>{model_}, latest);
    recommender_->Refresh();
    route_ = std::make_unique<RecommendRoute>(
        recommender_->models(), std::make_shared<LiveVersion>(latest, recommender_),
        [](std::string_view user) { return SipHash()(user); }, nullptr, registry_);
  }

  // The work of the product's answer, asked by an operator or by the user himself.
  Work Answered(const std::string& user, bool by_token) {
    work_ = {};
    http::Caller caller{
        .role = http::CallerRole::kUser, .name = "phone", .user = user, .pace = nullptr};
    const std::string body = R"({"user":")" + user + R"(","k":5})";
    http::Request request;
    request.role = by_token ? http::Role::kPublic : http::Role::kOperator;
    request.asks_token = by_token;
    request.caller = by_token ? &caller : nullptr;
    request.body = body;
    http::Reply reply;
    route_->Answer(request, &reply);
    EXPECT_EQ(reply.status, 200u) << reply.body;
    for (size_t at = reply.body.find("\"id\""); at != reply.body.npos;
         at = reply.body.find("\"id\"", at + 1))
      ++work_.items_answered;
    return work_;
  }

  // The same of an answer with a fault planted: who is unknown gets the cold start at once.
  Work AnsweredEarly(const std::string& user) {
    work_ = {};
    ItemRanker ranker(model_.model);
    const auto served = recommender_->Get(0);
    const auto history = snapshot_->History(LearnerIndex(0), SipHash()(user));
    std::vector<uint32_t> items;
    for (const store::HistoryItem& item : *history) items.push_back(item.item);
    const auto best = ranker.OfHistory(*(*served)->state, items, 5, true);
    EXPECT_TRUE(best.has_value());
    work_.items_answered = best->size();
    return work_;
  }

  Work work_;
  RecommendModel model_ = SomeRecommender(40, /*serve_users=*/true);
  std::shared_ptr<const store::Snapshot> snapshot_;
  std::shared_ptr<Recommender> recommender_;
  metrics::Registry registry_;
  std::unique_ptr<RecommendRoute> route_;
};

TEST_F(KnownUserTest, TheWorkOfAnAnswerDoesNotTellWhetherTheUserIsKnown) {
  for (const bool by_token : {false, true}) {
    const Work unknown = Answered("nobody", by_token);
    EXPECT_EQ(unknown,
              (Work{.lookups = 1, .scorings = 1, .items_scored = 40, .items_answered = 5}));
    for (const char* user : {"one", "some", "saw-all"})
      EXPECT_TRUE(Answered(user, by_token) == unknown) << user;
  }
}

TEST_F(KnownUserTest, APlantedEarlyReturnIsSeen) {
  EXPECT_FALSE(AnsweredEarly("nobody") == AnsweredEarly("one"));
  EXPECT_TRUE(AnsweredEarly("some") == AnsweredEarly("one"));
}

}  // namespace
}  // namespace tacit::serve
