#include "http/router.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tacit::http {
namespace {

using testing::HasSubstr;

class RouterTest : public testing::Test {
 protected:
  RouterTest() : router_(registry_) {
    router_.Add("GET", "/v1/thing", [](const Request&, Reply* reply) { reply->body = "got"; });
    router_.Add("POST", "/v1/thing", [](const Request& request, Reply* reply) {
      reply->body = "posted " + std::string(request.body);
    });
    router_.Add("POST", "/v1/score", [](const Request&, Reply* reply) { reply->status = 503; });
  }

  Reply Ask(std::string_view method, std::string_view path) {
    Request request;
    request.method = method;
    request.path = path;
    request.body = "b";
    Reply reply;
    router_.Handle(request, &reply);
    return reply;
  }

  metrics::Registry registry_;
  Router router_;
};

TEST_F(RouterTest, PicksByMethodAndPath) {
  EXPECT_EQ(Ask("GET", "/v1/thing").body, "got");
  EXPECT_EQ(Ask("POST", "/v1/thing").body, "posted b");
}

TEST_F(RouterTest, ANameMayStandForThePathsLastPart) {
  router_.Add("DELETE", "/v1/users/{id}", [](const Request& request, Reply* reply) {
    reply->body = std::string(request.path);
  });
  EXPECT_EQ(Ask("DELETE", "/v1/users/anna%2fb").body, "/v1/users/anna%2fb");
  EXPECT_EQ(Ask("GET", "/v1/users/anna").status, 405u);
  for (const char* path : {"/v1/users/", "/v1/users", "/v1/users/a/b", "/v1/people/anna", "/", ""})
    EXPECT_EQ(Ask("DELETE", path).status, 404u) << path;
  // A metric must not hold the names of users.
  const std::string metrics = registry_.Scrape(metrics::Audience::kOperator);
  EXPECT_THAT(metrics, HasSubstr("/v1/users/{id}"));
  EXPECT_THAT(metrics, testing::Not(HasSubstr("anna")));
}

TEST_F(RouterTest, NamesMayStandForSeveralPartsOfAPath) {
  const auto tell = [](const Request& request, Reply* reply) {
    reply->body = std::string(request.parts[0]) + "|" + std::string(request.parts[1]);
  };
  router_.Add("GET", "/v2/models/{name}", tell);
  router_.Add("GET", "/v2/models/{name}/ready", tell);
  router_.Add("POST", "/v2/models/{name}/versions/{version}/infer", tell);
  EXPECT_EQ(Ask("GET", "/v2/models/a%2fb").body, "a%2fb|");
  EXPECT_EQ(Ask("GET", "/v2/models/ctr/ready").body, "ctr|");
  EXPECT_EQ(Ask("POST", "/v2/models/ctr/versions/12/infer").body, "ctr|12");
  for (const char* path : {"/v2/models/", "/v2/models//ready", "/v2/models/ctr/versions//infer",
                           "/v2/models/ctr/versions/12/infer/", "/v2/models/ctr/versions/12",
                           "/v2/models/ctr/live", "v2/models/ctr"})
    EXPECT_EQ(Ask("POST", path).status, 404u) << path;
}

// The Open Inference Protocol has a form of its own.
TEST_F(RouterTest, ErrorsUnderV2AreTextsAlone) {
  router_.Add("GET", "/v2/broken", [](const Request&, Reply* reply) {
    SetServerFailure({ErrorCode::kIo, "disk"}, reply);
  });
  EXPECT_EQ(Ask("GET", "/v2/nothing").body,
            "{\"error\":\"no route /v2/nothing (did you mean '/v1/thing'?)\"}\n");
  EXPECT_EQ(Ask("POST", "/v2/broken").body, "{\"error\":\"/v2/broken takes GET, HEAD\"}\n");
  EXPECT_EQ(Ask("GET", "/v2/broken").body,
            "{\"error\":\"what is asked for cannot be read; the daemon's log says why\"}\n");
  EXPECT_EQ(Ask("GET", "/v22").body, "{\"error\":{\"code\":404,\"message\":\"no route /v22\"}}\n");
}

// For every code of a failure, and on every route.
TEST_F(RouterTest, WhatWentWrongIsToldToOperatorsAlone) {
  const std::string words = "reading rows of store leak/store: /leak/000036.sst";
  for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kCorruption, ErrorCode::kNotFound,
                               ErrorCode::kInvalidArgument, ErrorCode::kRefused}) {
    const std::string path = "/v1/fails" + std::to_string(static_cast<int>(code));
    router_.Add("GET", path, [&](const Request&, Reply* reply) {
      reply->headers.emplace_back("X-Where", words);
      SetServerFailure({code, words}, reply);
    });
    Request request;
    request.method = "GET";
    request.path = path;
    Reply reply;
    router_.Handle(request, &reply);
    EXPECT_EQ(reply.status, 500u);
    EXPECT_THAT(reply.body, testing::Not(HasSubstr("leak")));
    EXPECT_TRUE(reply.headers.empty());
    EXPECT_THAT(reply.body, HasSubstr("the daemon's log says why"));
    request.role = Role::kOperator;
    reply = Reply();
    router_.Handle(request, &reply);
    EXPECT_EQ(reply.status, 500u);
    EXPECT_THAT(reply.body, HasSubstr(words));
  }
}

TEST_F(RouterTest, AnUnknownPathIs404WithTheNearest) {
  const Reply reply = Ask("POST", "/v1/scores");
  EXPECT_EQ(reply.status, 404u);
  EXPECT_THAT(reply.body, HasSubstr("no route /v1/scores (did you mean '/v1/score'?)"));
  EXPECT_EQ(Ask("GET", "").status, 404u);
  EXPECT_LT(Ask("GET", "/" + std::string(9000, 'x')).body.size(), 300u);
}

TEST_F(RouterTest, AnUnknownMethodIs405WithAllow) {
  const Reply reply = Ask("DELETE", "/v1/thing");
  EXPECT_EQ(reply.status, 405u);
  ASSERT_EQ(reply.headers.size(), 1u);
  EXPECT_EQ(reply.headers[0], std::make_pair(std::string("Allow"), std::string("GET, HEAD, POST")));
}

TEST_F(RouterTest, CountsByRouteAndStatus) {
  Ask("POST", "/v1/score");
  Ask("GET", "/v1/thing");
  Ask("GET", "/nowhere");
  const std::string text = registry_.Scrape(metrics::Audience::kPublic);
  EXPECT_THAT(text, HasSubstr("tacit_http_requests_total{method=\"POST\",path=\"/v1/score\","
                              "status=\"5xx\"} 1"));
  EXPECT_THAT(text, HasSubstr("{method=\"GET\",path=\"/v1/thing\",status=\"2xx\"} 1"));
  EXPECT_THAT(text, HasSubstr("{method=\"other\",path=\"other\",status=\"4xx\"} 1"));
  EXPECT_THAT(text, HasSubstr("request_seconds_count{method=\"GET\",path=\"/v1/thing\"} 1"));
}

// `tacit_users_forgotten_total` is the operator's; no other metric tells the public that number.
TEST_F(RouterTest, RoutesOfOperatorsAndUsersAreCountedForOperatorsAlone) {
  const auto answer = [](const Request&, Reply* reply) { reply->body = "{}"; };
  router_.Add("GET", "/v1/users/{id}", answer, Access::kOwner);
  router_.Add("DELETE", "/v1/users/{id}", answer, Access::kOperator);
  Request request;
  request.path = "/v1/users/u12";
  request.role = Role::kOperator;
  for (const char* method : {"GET", "DELETE"}) {
    request.method = method;
    Reply reply;
    router_.Handle(request, &reply);
    EXPECT_EQ(reply.status, 200u);
  }
  const std::string all = registry_.Scrape(metrics::Audience::kPublic);
  EXPECT_THAT(all, testing::Not(HasSubstr("users")));
  const std::string operators = registry_.Scrape(metrics::Audience::kOperator);
  for (const char* method : {"GET", "DELETE"}) {
    const std::string labels = fmt::format("method=\"{}\",path=\"/v1/users/{{id}}\"", method);
    EXPECT_THAT(operators,
                HasSubstr("tacit_http_operator_requests_total{" + labels + ",status=\"2xx\"} 1"));
    EXPECT_THAT(operators,
                HasSubstr("tacit_http_operator_request_seconds_count{" + labels + "} 1"));
  }
}

}  // namespace
}  // namespace tacit::http
