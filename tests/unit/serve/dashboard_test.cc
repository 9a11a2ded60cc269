// The dashboard's page and its route: who gets them, and what is in them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "fake_snapshot.h"
#include "serve/api.h"
#include "serve/dashboard/dashboard_route.h"
#include "unit/http/echo_server.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

class DashboardTest : public testing::Test {
 protected:
  void SetUp() override {
    store_.Commit(6);
    Services services;
    services.latest = [this] { return store_.Latest(); };
    services.models = {SmallModel()};
    services.readiness = [] {
      return Readiness{true, "", "the source is away", "the source is away: 17 records wait"};
    };
    services.dashboard.figures = [this](LookBack back) {
      ++asked_for_figures_;
      OperatorFigures figures;
      figures.every_ms = 1 + static_cast<int64_t>(back);
      figures.dead_letters = {{"<script>\"'", 4}};
      return figures;
    };
    services.metrics = &registry_;
    http::ServerOptions options;
    options.listeners = {{"127.0.0.1:0", http::Role::kPublic},
                         {"127.0.0.1:0", http::Role::kOperator}};
    auto server = http::Server::Start(options, MakeApi(services), registry_);
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
  }
  http::Response Ask(const std::string& path, http::Role role = http::Role::kOperator) {
    const auto response =
        http::Fetch("http://" + server_->addresses()[role == http::Role::kOperator ? 1 : 0] + path,
                    "GET", "", test::kPatience);
    EXPECT_TRUE(response.has_value());
    return response ? *response : http::Response{};
  }

  FakeStore store_{SmallModel()};
  metrics::Registry registry_;
  std::unique_ptr<http::Server> server_;
  std::atomic<int> asked_for_figures_ = 0;
};

TEST_F(DashboardTest, ThePageIsSmallAndLoadsNothing) {
  http::Reply reply;
  AnswerDashboardPage(&reply);
  EXPECT_LT(reply.body.size(), 100'000u);
  EXPECT_GT(reply.body.size(), 10'000u);
  EXPECT_THAT(reply.body, Not(HasSubstr("/*SCRIPT*/")));
  EXPECT_THAT(reply.body, Not(HasSubstr("/*STYLE*/")));
  for (const char* loads : {"<link rel=\"stylesheet", "src=", "@import", "url(", "https://"})
    EXPECT_THAT(reply.body, Not(HasSubstr(loads)));
  EXPECT_THAT(DashboardPolicy(),
              testing::MatchesRegex("default-src 'none'; script-src 'sha256-[A-Za-z0-9+/]{43}='; "
                                    "style-src 'sha256-[A-Za-z0-9+/]{43}='; connect-src 'self'; "
                                    "img-src data:; base-uri 'none'; form-action 'none'; "
                                    "frame-ancestors 'none'"));
}

TEST_F(DashboardTest, FiguresWithoutNoiseAreNeitherSentNorMadeUnlessAskedFor) {
  for (const char* path : {"/v1/dashboard", "/v1/dashboard?figures=public"}) {
    const json::value answer = json::parse(Ask(path).body);
    EXPECT_TRUE(answer.at("figures").is_null());
    EXPECT_TRUE(answer.at("learns").as_bool());
    EXPECT_EQ(answer.at("state").at("why"), "the source is away");
  }
  EXPECT_EQ(asked_for_figures_, 0);
  const json::value answer = json::parse(Ask("/v1/dashboard?figures=all&back=day").body);
  EXPECT_EQ(asked_for_figures_, 1);
  EXPECT_EQ(answer.at("figures").at("samples").at("every_ms"), 3);
  EXPECT_EQ(answer.at("figures").at("dead_letters").at(0).at("part"), "<script>\"'");
  EXPECT_EQ(answer.at("state").at("why"), "the source is away: 17 records wait");
  const json::value& learner = answer.at("learners").at(0);
  EXPECT_EQ(learner.at("learner"), "ctr");
  EXPECT_EQ(learner.at("epsilon"), 1.5);
  EXPECT_EQ(learner.at("budget"), 4);
  EXPECT_EQ(answer.at("versions").at("version"), 6);
}

TEST_F(DashboardTest, OthersAreRefused) {
  const http::Response refused = Ask("/v1/dashboard?figures=all", http::Role::kPublic);
  EXPECT_EQ(refused.status, 403u);
  EXPECT_EQ(asked_for_figures_, 0);
  EXPECT_EQ(Ask("/v1/dashboard?figures=some").status, 400u);
  EXPECT_EQ(Ask("/v1/dashboard?back=year").status, 400u);
  EXPECT_THAT(Ask("/").Header("Content-Type"), HasSubstr("text/plain"));
  EXPECT_THAT(Ask("/").body, HasSubstr("/v1/dashboard"));
  EXPECT_THAT(Ask("/", http::Role::kPublic).body, Not(HasSubstr("/v1/dashboard")));
}

}  // namespace
}  // namespace tacit::serve
