#include "serve/answers/recommend_route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/json.hpp>
#include <set>
#include <thread>

#include "recommend_fakes.h"
#include "support/eventually.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

constexpr uint32_t kItems = 30;
constexpr char kSequence[] = R"({"sequence":["a3","a7"]})";

// The routes as the server's threads have them, over commits in memory.
class RecommendRouteTest : public testing::Test {
 protected:
  void Start(bool serve_users = false, double epsilon = 4, bool described = false) {
    model_ = SomeRecommender(kItems, serve_users);
    model_.items = SomeItems(kItems, described);
    model_.promise.epsilon = epsilon;
    services_.latest = [this] {
      const std::lock_guard lock(mutex_);
      return latest_;
    };
    services_.commits = &commits_;
    services_.recommenders = {model_};
    services_.user_hash = [](std::string_view user) { return SipHash()(user); };
    services_.metrics = &registry_;
    factory_ = MakeApi(services_);
    handler_ = factory_();
  }
  void Commit(uint64_t version, const std::string& released) {
    auto snapshot = std::make_shared<RecommendSnapshot>(version, model_.promise);
    if (!released.empty()) snapshot->released = std::make_shared<const std::string>(released);
    snapshot->histories[SipHash()("u1")] = {{3, 10}, {7, 11}};
    std::vector<store::HistoryItem>& all = snapshot->histories[SipHash()("saw-all")];
    for (uint32_t item = 0; item < kItems; ++item) all.push_back({item, item});
    {
      const std::lock_guard lock(mutex_);
      latest_ = std::move(snapshot);
    }
    commits_.Tell();
  }
  // Waits until this many builds have begun: all before the last are done then.
  void WaitForBuilds(size_t builds) {
    const auto& items = static_cast<const FakeItems&>(*model_.model);
    EXPECT_TRUE(test::Eventually("the builds begin", [&] { return items.builds() >= builds; }));
    ASSERT_EQ(items.builds(), builds);
  }
  static http::Reply Ask(http::Handler& handler, std::string_view body,
                         http::Role role = http::Role::kOperator) {
    http::Reply reply;
    handler.Handle(
        {.role = role, .method = "POST", .path = "/v1/recommend", .query = "", .body = body},
        &reply);
    return reply;
  }
  http::Reply Ask(std::string_view body) { return Ask(*handler_, body); }
  // Asks until the answer is of this version.
  json::object AskVersion(uint64_t version, std::string_view body = kSequence) {
    json::object answer;
    const auto answered = test::Eventually(fmt::format("version {} answers", version), [&] {
      const http::Reply reply = Ask(body);
      if (reply.status != 200) return false;
      answer = json::parse(reply.body).as_object();
      return answer.at("model").at("version").to_number<uint64_t>() == version;
    });
    EXPECT_TRUE(answered);
    return answered ? answer : json::object{};
  }
  // The items of an answer, by their place, and that the scores are what the state gives.
  static std::vector<uint32_t> ItemsOf(const json::object& answer, const std::string& state,
                                       std::span<const uint32_t> history) {
    std::vector<uint32_t> items;
    for (const json::value& entry : answer.at("items").as_array()) {
      const std::string id(entry.at("id").as_string());
      items.push_back(static_cast<uint32_t>(std::stoul(id.substr(1))));
      EXPECT_EQ(static_cast<float>(entry.at("score").to_number<double>()),
                FakeItems::Fake(state, history, items.back()));
    }
    return items;
  }

  metrics::Registry registry_;
  RecommendModel model_;
  Services services_;
  std::mutex mutex_;
  std::shared_ptr<const store::Snapshot> latest_;
  CommitSignal commits_;
  http::HandlerFactory factory_;
  std::unique_ptr<http::Handler> handler_;
};

TEST_F(RecommendRouteTest, BeforeTheFirstReleaseItIsNotReady) {
  Start(true);
  for (const char* body : {kSequence, R"({"user":"u1"})"}) {
    const http::Reply reply = Ask(body);
    EXPECT_EQ(reply.status, 503u);
    EXPECT_THAT(reply.body, HasSubstr("learner 'next' has released nothing to recommend from yet"));
    EXPECT_THAT(reply.headers, testing::Contains(testing::Pair("Retry-After", "1")));
  }
  Commit(1, "");
  WaitForBuilds(1);
  Commit(2, "");
  WaitForBuilds(2);
  EXPECT_EQ(Ask(kSequence).status, 503u);
}

// A restart finds a version, and its recommendations are not built yet.
TEST_F(RecommendRouteTest, AVersionIsLoadedOnceItsItemsAreBuilt) {
  model_ = SomeRecommender(kItems, false);
  Commit(3, "first");
  Recommender recommender({model_}, [this] { return latest_; });
  const Status loading = recommender.Loaded();
  ASSERT_FALSE(loading);
  EXPECT_EQ(loading.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(loading.error().message, "learner 'next' is being loaded");
  const auto early = recommender.Get(0);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().message, loading.error().message);
  recommender.Refresh();
  EXPECT_TRUE(recommender.Loaded());
  EXPECT_TRUE(recommender.Get(0));
}

// Loops over all items say which the filters leave.
TEST_F(RecommendRouteTest, OnlyWhatIsWantedIsRecommended) {
  Start(true, 4, true);
  Commit(6, "first");
  const auto year = [](uint32_t i) { return i % 5 == 0 ? 0 : 1990 + static_cast<int>(i); };
  const auto wanted = [&](const std::string& keys, auto is_wanted) {
    for (const std::string whom : {R"("sequence":["a3","a7"])", R"("user":"u1")"}) {
      const json::object answer =
          AskVersion(6, "{" + whom + R"(,"k":30,"exclude_seen":false,)" + keys + "}");
      const auto items = ItemsOf(answer, "first", std::vector<uint32_t>{3, 7});
      std::set<uint32_t> expected;
      for (uint32_t i = 0; i < kItems; ++i)
        if (is_wanted(i)) expected.insert(i);
      const std::set<uint32_t> found(items.begin(), items.end());
      if (whom.starts_with(R"("user)")) {
        EXPECT_EQ(found.size(), (expected.size() + 1) / 2) << keys;
        EXPECT_TRUE(std::ranges::includes(expected, found)) << keys;
      } else {
        EXPECT_EQ(found, expected) << keys;
      }
    }
  };
  wanted(R"("among":["a1","a2","a9","elsewhere"])",
         [](uint32_t i) { return i == 1 || i == 2 || i == 9; });
  wanted(R"("among":[])", [](uint32_t) { return false; });
  wanted(R"("exclude":["a4","a29","a4"])", [](uint32_t i) { return i != 4 && i != 29; });
  wanted(R"("genres":["odd"])", [](uint32_t i) { return i % 2 == 1; });
  wanted(R"("genres":["odd","three"])", [](uint32_t i) { return i % 2 == 1 || i % 3 == 0; });
  wanted(R"("year_from":2001)", [&](uint32_t i) { return year(i) >= 2001; });
  wanted(R"("year_to":2001)", [&](uint32_t i) { return year(i) > 0 && year(i) <= 2001; });
  wanted(R"("year_from":1995,"year_to":2010,"genres":["even"],"exclude":["a8"],)"
         R"("among":["a6","a8","a11","a12","a28"])",
         [](uint32_t i) { return i == 6 || i == 12; });
  // The next request has no filters of the last.
  EXPECT_EQ(AskVersion(6, R"({"sequence":[],"k":30})").at("items").as_array().size(), kItems);
  const http::Reply unknown = Ask(R"({"sequence":[],"genres":["evem"]})");
  EXPECT_EQ(unknown.status, 400u);
  EXPECT_THAT(unknown.body, HasSubstr("unknown genre 'evem' (did you mean 'even'?)"));
}

TEST_F(RecommendRouteTest, FiltersNeedDescriptions) {
  Start();
  Commit(6, "first");
  AskVersion(6);
  for (const char* key : {R"("genres":["odd"])", R"("year_from":2000)"}) {
    const http::Reply reply = Ask(fmt::format(R"({{"sequence":[],{}}})", key));
    EXPECT_EQ(reply.status, 400u);
    EXPECT_THAT(reply.body, HasSubstr("no item has any"));
  }
}

TEST_F(RecommendRouteTest, SeveralSequencesAreAnsweredOneByOne) {
  Start();
  Commit(6, "first");
  const std::string rest = R"(,"k":5,"exclude":["a1"],"reasons":true})";
  const json::object answer = AskVersion(6, R"({"sequences":[["a3","x"],[],["a8","a2"]])" + rest);
  const json::array& answers = answer.at("answers").as_array();
  ASSERT_EQ(answers.size(), 3u);
  const char* const alone[] = {R"(["a3","x"])", "[]", R"(["a8","a2"])"};
  for (size_t i = 0; i < 3; ++i) {
    const json::object one = AskVersion(6, std::string(R"({"sequence":)") + alone[i] + rest);
    EXPECT_EQ(answers[i].at("items"), one.at("items")) << alone[i];
    EXPECT_EQ(answers[i].as_object().contains("unknown_items"), i == 0);
  }
  EXPECT_EQ(answers[0].at("unknown_items"), json::parse(R"(["x"])"));
  EXPECT_EQ(answer.at("covered_by_epsilon"), true);
  EXPECT_FALSE(answer.contains("items") || answer.contains("unknown_items"));
  EXPECT_TRUE(AskVersion(6, R"({"sequences":[]})").at("answers").as_array().empty());
}

TEST_F(RecommendRouteTest, AReasonIsWhereAModelHasOne) {
  Start();
  Commit(6, "first");
  const auto has = [](const json::value& entry) { return entry.as_object().contains("because"); };
  for (const json::value& entry :
       json::array(AskVersion(6, R"({"sequence":["a3","a7"],"k":20,"reasons":true})")
                       .at("items")
                       .as_array())) {
    const bool is_even = std::stoi(std::string(entry.at("id").as_string()).substr(1)) % 2 == 0;
    EXPECT_EQ(has(entry), is_even);
    if (is_even) {
      EXPECT_EQ(entry.at("because"), json::parse(R"({"id":"a7","share":0.25})"));
    }
  }
  for (const char* const body : {kSequence, R"({"sequence":[],"reasons":true})"})
    for (const json::value& entry : json::array(AskVersion(6, body).at("items").as_array()))
      EXPECT_FALSE(has(entry)) << body;
}

TEST_F(RecommendRouteTest, AnswersHaveTheirForm) {
  Start();
  Commit(6, "first");
  const json::object answer =
      AskVersion(6, R"({"learner":"next","sequence":["a3","x","a7"],"k":4})");
  std::string hash = "sha256:";
  for (int i = 0; i < 32; ++i) hash += "06";
  EXPECT_EQ(answer.at("model"), json::parse(R"({"learner":"next","version":6,"snapshot":")" + hash +
                                            R"(","epsilon":1.5,"delta":1e-6,"private":true})"));
  EXPECT_EQ(answer.at("covered_by_epsilon"), true);
  EXPECT_EQ(answer.at("unknown_items"), json::parse(R"(["x"])"));
  const std::vector<uint32_t> history = {3, 7};
  const auto items = ItemsOf(answer, "first", history);
  EXPECT_EQ(items.size(), 4u);
  EXPECT_THAT(items, testing::Not(testing::Contains(testing::AnyOf(3u, 7u))));

  const auto with_seen =
      json::parse(Ask(R"({"sequence":["a3","a7"],"k":30,"exclude_seen":false})").body).as_object();
  EXPECT_EQ(ItemsOf(with_seen, "first", history).size(), 30u);
  EXPECT_FALSE(with_seen.contains("unknown_items"));
  const auto all = json::parse(Ask(R"({"sequence":["a3","a7"],"k":1000})").body).as_object();
  EXPECT_EQ(ItemsOf(all, "first", history).size(), 28u);
  // A cold start.
  for (const char* body : {R"({"sequence":[]})", R"({"sequence":["x"]})"}) {
    const auto cold = json::parse(Ask(body).body).as_object();
    EXPECT_EQ(ItemsOf(cold, "first", {}).size(), 10u);
    EXPECT_EQ(cold.at("covered_by_epsilon"), true);
  }
  EXPECT_EQ(Ask(R"({"sequence":[],"k":0})").status, 400u);
  EXPECT_EQ(Ask(R"({"learner":"ctr","sequence":[]})").status, 404u);
}

TEST_F(RecommendRouteTest, WithoutPrivacyNothingIsCovered) {
  Start(false, INFINITY);
  Commit(6, "first");
  const json::object answer = AskVersion(6);
  EXPECT_EQ(answer.at("covered_by_epsilon"), false);
  EXPECT_EQ(answer.at("model").at("private"), false);
  EXPECT_TRUE(answer.at("model").at("epsilon").is_null());
}

TEST_F(RecommendRouteTest, ByUserOnlyWhereItIsConfigured) {
  Start();
  Commit(6, "first");
  AskVersion(6);
  for (const char* body : {R"({"user":"u1"})", R"({"user":"nobody"})"}) {
    const http::Reply reply = Ask(body);
    EXPECT_EQ(reply.status, 403u);
    EXPECT_THAT(reply.body, HasSubstr("raw history, which no epsilon covers"));
    EXPECT_THAT(reply.body, HasSubstr("serve_users"));
  }
}

// There is no credential of a user's, so that any caller could name any user.
TEST_F(RecommendRouteTest, ByUserForOperatorsAlone) {
  Start(true);
  Commit(6, "first");
  AskVersion(6);
  for (const char* body : {R"({"user":"u1"})", R"({"user":"nobody"})"}) {
    const http::Reply reply = Ask(*handler_, body, http::Role::kPublic);
    EXPECT_EQ(reply.status, 403u);
    EXPECT_THAT(reply.body, HasSubstr("serve.operator_listen"));
    EXPECT_EQ(Ask(*handler_, body, http::Role::kOperator).status, 200u);
  }
  EXPECT_EQ(Ask(*handler_, kSequence, http::Role::kPublic).status, 200u);
}

// The cause of a failure may name a file or a user: operators alone see it.
TEST_F(RecommendRouteTest, WhatIsBrokenIsForOperators) {
  Start();
  Commit(6, "damaged");
  EXPECT_TRUE(test::Eventually("it is seen", [&] { return Ask(kSequence).status == 500; }));
  EXPECT_THAT(Ask(kSequence).body, HasSubstr("the bytes are damaged"));
  const http::Reply told = Ask(*handler_, kSequence, http::Role::kPublic);
  EXPECT_EQ(told.status, 500u);
  EXPECT_THAT(told.body, HasSubstr("the daemon's log says why"));
  EXPECT_THAT(told.body, testing::Not(HasSubstr("damaged")));
}

TEST_F(RecommendRouteTest, AUserIsServedOutOfHisHistory) {
  Start(true);
  Commit(6, "first");
  const json::object known = AskVersion(6, R"({"user":"u1"})");
  EXPECT_EQ(known.at("covered_by_epsilon"), false);
  const std::vector<uint32_t> history = {3, 7};
  const auto items = ItemsOf(known, "first", history);
  EXPECT_THAT(items, testing::Not(testing::Contains(testing::AnyOf(3u, 7u))));
  EXPECT_EQ(known.at("items"), json::parse(Ask(kSequence).body).at("items"));
}

// Except for the items themselves: status, keys, their order, how many items, the model.
TEST_F(RecommendRouteTest, WhetherAUserIsKnownIsNotTold) {
  Start(true);
  Commit(6, "first");
  AskVersion(6);
  for (const char* rest : {"", R"(,"k":30)", R"(,"k":3,"exclude_seen":false)", R"(,"k":0)"}) {
    const auto form = [&](const std::string& user) {
      const http::Reply reply = Ask(fmt::format(R"({{"user":"{}"{}}})", user, rest));
      json::value answer = json::parse(reply.body);
      if (reply.status == 200) {
        for (json::value& item : answer.at("items").as_array()) {
          EXPECT_TRUE(std::isfinite(item.at("score").to_number<double>()));
          item.as_object()["id"] = "";
          item.as_object()["score"] = 0;
        }
      }
      return fmt::format("{} {} {}", reply.status, reply.content_type, json::serialize(answer));
    };
    const std::string unknown = form("nobody");
    EXPECT_EQ(form("u1"), unknown);
    EXPECT_EQ(form("saw-all"), unknown);
  }
}

TEST_F(RecommendRouteTest, TheModelIsTheOneItWasMadeFrom) {
  Start();
  Commit(1, "first");
  AskVersion(1);
  // Other learners' commits change nothing of this one.
  Commit(2, "first");
  WaitForBuilds(2);
  Commit(3, "first");
  WaitForBuilds(3);
  const json::object still = json::parse(Ask(kSequence).body).as_object();
  EXPECT_EQ(still.at("model").at("version"), 1);
  EXPECT_EQ(still.at("model").at("epsilon").to_number<double>(), 0.25);
  Commit(4, "second");
  const json::object answer = AskVersion(4);
  ItemsOf(answer, "second", std::vector<uint32_t>{3, 7});
}

TEST_F(RecommendRouteTest, WhatCannotBeReadLeavesTheOlderOne) {
  Start();
  Commit(1, "damaged");
  EXPECT_TRUE(test::Eventually("it is seen", [&] { return Ask(kSequence).status != 503; }));
  const http::Reply reply = Ask(kSequence);
  EXPECT_EQ(reply.status, 500u);
  EXPECT_THAT(reply.body, HasSubstr("the bytes are damaged"));
  Commit(2, "first");
  AskVersion(2);
  Commit(3, "damaged");
  WaitForBuilds(3);
  Commit(4, "damaged");
  WaitForBuilds(4);
  const http::Reply older = Ask(kSequence);
  EXPECT_EQ(older.status, 200u);
  EXPECT_EQ(json::parse(older.body).at("model").at("version"), 2);
}

TEST_F(RecommendRouteTest, EveryAnswerIsOfOneVersionWhileTheyChange) {
  Start();
  Commit(1, "state 1");
  AskVersion(1);
  std::atomic<bool> stop{false};
  std::atomic<size_t> answered{0}, versions{0};
  std::array<std::atomic<uint64_t>, 3> newest{};  // that each thread has had an answer of
  std::vector<std::thread> threads;
  for (std::atomic<uint64_t>& mine : newest)
    threads.emplace_back([&] {
      const std::unique_ptr<http::Handler> handler = factory_();
      uint64_t last = 0;
      while (!stop) {
        const http::Reply reply = Ask(*handler, kSequence);
        ASSERT_EQ(reply.status, 200u) << reply.body;
        const json::object answer = json::parse(reply.body).as_object();
        const auto version = answer.at("model").at("version").to_number<uint64_t>();
        ASSERT_GE(version, last);
        versions += version != last ? 1 : 0;
        last = version;
        mine = version;
        ++answered;
        ASSERT_EQ(answer.at("model").at("epsilon").to_number<double>(),
                  0.25 * static_cast<double>(version));
        ItemsOf(answer, fmt::format("state {}", version), std::vector<uint32_t>{3, 7});
      }
    });
  for (uint64_t version = 2; version <= 12; ++version) {
    Commit(version, fmt::format("state {}", version));
    AskVersion(version);
    // A busy machine may leave a thread out for as long as all versions take.
    EXPECT_TRUE(test::Eventually("each thread has been answered", [&] {
      return HasFailure() ||
             std::ranges::all_of(newest, [&](uint64_t of) { return of == version; });
    }));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(answered, 30u);
  EXPECT_GT(versions, 10u);
}

TEST_F(RecommendRouteTest, WithoutAServerTheAnswerIsTheSame) {
  Start(true);
  Commit(6, "first");
  AskVersion(6);
  const http::Reply reply = RecommendOnce({model_}, latest_, kSequence);
  EXPECT_EQ(reply.status, 200u);
  EXPECT_EQ(reply.body, Ask(kSequence).body);
  EXPECT_EQ(RecommendOnce({model_}, latest_, R"({"user":"u1"})").status, 403u);
  Commit(7, "");
  EXPECT_EQ(RecommendOnce({model_}, latest_, kSequence).status, 503u);
}

TEST_F(RecommendRouteTest, ItsPromiseIsInTheAccount) {
  Start();
  Commit(2, "first");
  http::Reply reply;
  handler_->Handle({.role = http::Role::kPublic,
                    .method = "GET",
                    .path = "/v1/privacy",
                    .query = "",
                    .body = ""},
                   &reply);
  const json::value answer = json::parse(reply.body);
  EXPECT_EQ(answer.at("learners").at(0).at("learner"), "next");
  EXPECT_EQ(answer.at("learners").at(0).at("epsilon").to_number<double>(), 0.5);
}

}  // namespace
}  // namespace tacit::serve
