// tacit query recommend, asking a server whose commits are in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "http/server.h"
#include "support/small_run.h"
#include "unit/serve/recommend_fakes.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using testing::HasSubstr;

class QueryRecommendTest : public testing::Test {
 protected:
  QueryRecommendTest() {
    serve::Services services;
    serve::RecommendModel model = serve::SomeRecommender(30, true);
    auto snapshot = std::make_shared<serve::RecommendSnapshot>(6, model.promise);
    snapshot->released = std::make_shared<const std::string>("state");
    snapshot->histories[SipHash()("u1")] = {{3, 10}, {7, 11}};
    services.latest = [snapshot] { return snapshot; };
    services.recommenders = {model};
    services.user_hash = [](std::string_view user) { return SipHash()(user); };
    services.metrics = &registry_;
    auto server = http::Server::Start({.listeners = {{url_, http::Role::kOperator}}},
                                      serve::MakeApi(services), registry_);
    EXPECT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
  }
  // Asked again until the first state is made.
  Ended Query(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{TACIT, "query", "recommend", "--url", url_};
    command.insert(command.end(), arguments.begin(), arguments.end());
    Ended ended;
    EXPECT_TRUE(test::Eventually("the first state is made", [&] {
      ended = test::Run(command);
      return ended.err.find("answered 503") == std::string::npos;
    }));
    return ended;
  }

  test::TempDir dir_;
  const std::string url_ = "unix:" + (dir_ / "socket");
  metrics::Registry registry_;
  std::unique_ptr<http::Server> server_;
};

TEST_F(QueryRecommendTest, AnswersAreTheServers) {
  const Ended of_sequence = Query({"--sequence", "a3,a7", "--k", "4", "--json"});
  ASSERT_EQ(of_sequence.exit_code, 0) << of_sequence.err;
  const json::value answer = json::parse(of_sequence.out);
  EXPECT_EQ(answer.at("items").as_array().size(), 4u);
  EXPECT_EQ(answer.at("model").at("version"), 6);
  const json::value of_user =
      json::parse(Query({"--learner", "next", "--user", "u1", "--k", "4", "--json"}).out);
  EXPECT_EQ(of_user.at("items"), answer.at("items"));
  EXPECT_EQ(of_user.at("covered_by_epsilon"), false);
  const json::value all =
      json::parse(Query({"--sequence", "a3,a7", "--include-seen", "--k", "30", "--json"}).out);
  EXPECT_EQ(all.at("items").as_array().size(), 30u);
  const json::value cold = json::parse(Query({"--sequence", "", "--json"}).out);
  EXPECT_EQ(cold.at("items").as_array().size(), 10u);

  const Ended shown = Query({"--sequence", "a3,other", "--k", "2"});
  EXPECT_THAT(shown.out, HasSubstr("not of the catalogue: [\"other\"]"));
  EXPECT_THAT(shown.out, HasSubstr("from learner \"next\" at version 6, epsilon 1.5"));
}

TEST_F(QueryRecommendTest, WhatMayBeRecommendedIsAsked) {
  const json::value some = json::parse(
      Query({"--sequence", "a3,a7", "--among", "a2,a4,a9", "--exclude", "a9", "--json"}).out);
  EXPECT_EQ(some.at("items").as_array().size(), 2u);
  const json::value none = json::parse(Query({"--sequence", "a3", "--among", "", "--json"}).out);
  EXPECT_TRUE(none.at("items").as_array().empty());
  const Ended reasons = Query({"--sequence", "a3,a7", "--among", "a2", "--reasons"});
  EXPECT_THAT(reasons.out, HasSubstr("  after a7 (25 %)"));
  EXPECT_THAT(Query({"--sequence", "a3", "--genres", "War"}).err, HasSubstr("no item has any"));
  EXPECT_THAT(Query({"--sequence", "a3", "--year-from", "1990"}).err, HasSubstr("no item has any"));
}

TEST_F(QueryRecommendTest, WhatIsWrongIsSaid) {
  const Ended unknown = Query({"--learner", "nexd", "--sequence", "a1"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("unknown learner 'nexd' (did you mean 'next'?)"));
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {}, {"--user", "u", "--sequence", "a1"}, {"--sequence", "a1", "--k", "0"}}) {
    EXPECT_EQ(Query(arguments).exit_code, 2);
  }
}

}  // namespace
}  // namespace tacit
