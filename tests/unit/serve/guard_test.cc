// Tokens and roles at a running server: who is answered what.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <sstream>

#include "base/files/log.h"
#include "fake_snapshot.h"
#include "http/token.h"
#include "metrics/families.h"
#include "recommend_fakes.h"
#include "serve/api.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/http/echo_server.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

constexpr char kQuery[] = "planted-query", kAnna[] = "planted-anna", kBert[] = "planted-bert",
               kOperator[] = "planted-operator";

// A server of one model that recommends, whose callers are those of a file.
class GuardTest : public testing::Test {
 protected:
  GuardTest() {
    spdlog::default_logger()->sinks().push_back(sink_);
    Write(CallersText());
  }
  ~GuardTest() override {
    if (server_ != nullptr) server_->Stop(test::kPatience);
    spdlog::default_logger()->sinks().pop_back();
  }

  static std::string CallersText() {
    const auto line = [](std::string_view role, std::string_view name, std::string_view token,
                         std::string_view user = "") {
      return http::CallerLine(role, name, http::DigestOfToken(token), user) + "\n";
    };
    return line("query", "web", kQuery) + line("user", "a-phone", kAnna, "anna") +
           line("user", "b-phone", kBert, "bert") + line("operator", "night", kOperator);
  }
  void Write(const std::string& text) {
    test::WriteFile(path_, text);
    ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  }

  void Start(const http::CallerRates& rates = {0, 0, 0}, bool tokens = true) {
    if (tokens) {
      auto callers = http::Callers::Open(path_, rates);
      ASSERT_TRUE(callers.has_value()) << callers.error().message;
      callers_ = std::move(*callers);
    }
    http::ServerOptions options;
    options.listeners = {{"127.0.0.1:0", http::Role::kPublic},
                         {"127.0.0.1:0", http::Role::kOperator}};
    options.callers = callers_;
    options.access_log = true;
    auto server = http::Server::Start(options, MakeApi(MakeServices()), registry_);
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
    ASSERT_TRUE(test::Eventually("the model answers",
                                 [&] { return Ask("GET", "/v2/health/ready", "").status == 200; }));
  }

  Services MakeServices() {
    Services services;
    const RecommendModel model = SomeRecommender(40, /*serve_users=*/true);
    auto snapshot = std::make_shared<RecommendSnapshot>(6, model.promise);
    snapshot->released = std::make_shared<const std::string>("first");
    snapshot->histories[HashOf("anna")] = {{3, 1}, {7, 2}};
    snapshot->histories[HashOf("bert")] = {{5, 1}};
    services.latest = [snapshot] { return snapshot; };
    services.recommenders = {model};
    services.user_hash = HashOf;
    const auto user = [](std::string_view id) -> Result<UserReport> {
      UserReport report{.allowances = {{"next", 0, 4}}};
      if (id == "anna")
        report = {.histories = {{"next", {{"a3", 1}}}}, .allowances = {{"next", 1, 4}}};
      return report;
    };
    services.users = UserCommands{.show = user, .forget = user};
    services.metrics = &registry_;
    return services;
  }
  static Hash128 HashOf(std::string_view user) { return SipHash()(user); }

  http::Response AskWith(const http::FieldList& fields, const std::string& method,
                         const std::string& path, const std::string& body = "",
                         http::Role role = http::Role::kPublic) {
    const auto response =
        http::Fetch("http://" + server_->addresses()[role == http::Role::kOperator ? 1 : 0] + path,
                    method, body, test::kPatience, fields);
    EXPECT_TRUE(response.has_value()) << path << (response ? "" : response.error().message);
    return response ? *response : http::Response{};
  }
  // Asks with a token; "": without.
  http::Response Ask(const std::string& method, const std::string& path, const std::string& token,
                     const std::string& body = "", http::Role role = http::Role::kPublic) {
    http::FieldList fields;
    if (!token.empty()) fields.emplace_back("Authorization", "Bearer " + token);
    return AskWith(fields, method, path, body, role);
  }

  test::TempDir dir_;
  const std::string path_ = dir_ / "callers";
  std::ostringstream log_;
  const std::shared_ptr<spdlog::sinks::ostream_sink_mt> sink_ =
      std::make_shared<spdlog::sinks::ostream_sink_mt>(log_);
  metrics::Registry registry_;
  std::shared_ptr<http::Callers> callers_;
  std::unique_ptr<http::Server> server_;
};

constexpr char kSequence[] = R"({"sequence":["a3","a7"]})";
constexpr char kOfAnna[] = R"({"user":"anna"})";

// The whole table of who is answered, as rows of statuses: without a token, query, user, operator,
// at the public's listener and at the operator's.
TEST_F(GuardTest, EveryRouteHasItsRoles) {
  Start();
  struct Row {
    const char *method, *path, *body;
    std::array<uint32_t, 8> statuses;
  };
  const Row rows[] = {
      {"GET", "/healthz", "", {200, 200, 200, 200, 200, 200, 200, 200}},
      {"GET", "/readyz", "", {200, 200, 200, 200, 200, 200, 200, 200}},
      {"GET", "/v2/health/live", "", {200, 200, 200, 200, 200, 200, 200, 200}},
      {"GET", "/", "", {200, 200, 200, 200, 200, 200, 200, 200}},
      {"GET", "/metrics", "", {401, 200, 403, 200, 401, 200, 403, 200}},
      {"GET", "/v1/privacy", "", {401, 200, 200, 200, 401, 200, 200, 200}},
      {"POST", "/v1/recommend", kSequence, {401, 200, 403, 200, 401, 200, 403, 200}},
      {"POST", "/v1/recommend", kOfAnna, {401, 403, 200, 403, 401, 403, 200, 200}},
      {"POST", "/v1/recommend", R"({"user":"bert"})", {401, 403, 403, 403, 401, 403, 403, 200}},
      {"POST", "/v1/recommend", R"({"user":"nobody"})", {401, 403, 403, 403, 401, 403, 403, 200}},
      {"GET", "/v1/users/anna", "", {401, 403, 200, 403, 401, 403, 200, 200}},
      {"GET", "/v1/users/bert", "", {401, 403, 403, 403, 401, 403, 403, 200}},
      {"GET", "/v1/users/nobody", "", {401, 403, 403, 403, 401, 403, 403, 200}},
      {"GET", "/v1/users/anna/privacy", "", {401, 403, 200, 403, 401, 403, 200, 200}},
      {"GET", "/v1/users/bert/privacy", "", {401, 403, 403, 403, 401, 403, 403, 200}},
      {"DELETE", "/v1/users/anna", "", {401, 403, 403, 403, 401, 403, 403, 200}},
      {"GET", "/v1/ledger", "", {401, 403, 403, 403, 401, 403, 403, 200}},
      {"GET", "/v2/models/next", "", {401, 200, 403, 200, 401, 200, 403, 200}},
      {"GET", "/nothing", "", {401, 404, 404, 404, 401, 404, 404, 404}},
      {"PUT", "/v1/ledger", "", {401, 405, 405, 405, 401, 405, 405, 405}}};
  for (const Row& row : rows) {
    std::array<uint32_t, 8> is{};
    size_t at = 0;
    for (const http::Role role : {http::Role::kPublic, http::Role::kOperator})
      for (const char* token : {"", kQuery, kAnna, kOperator})
        is[at++] = Ask(row.method, row.path, token, row.body, role).status;
    EXPECT_EQ(is, row.statuses) << row.method << " " << row.path << " " << row.body;
  }
}

TEST_F(GuardTest, WithoutAFileEverythingIsAsItWas) {
  Start({}, /*tokens=*/false);
  EXPECT_EQ(Ask("GET", "/metrics", "").status, 200u);
  EXPECT_EQ(Ask("POST", "/v1/recommend", "", kSequence).status, 200u);
  EXPECT_EQ(Ask("POST", "/v1/recommend", "", kOfAnna).status, 403u);
  EXPECT_EQ(Ask("POST", "/v1/recommend", "", kOfAnna, http::Role::kOperator).status, 200u);
  EXPECT_EQ(Ask("GET", "/v1/users/anna", "").status, 403u);
  EXPECT_EQ(Ask("GET", "/v1/users/anna", "", "", http::Role::kOperator).status, 200u);
  // A token is a field like any other.
  EXPECT_EQ(Ask("GET", "/metrics", "whatever").status, 200u);
  EXPECT_EQ(AskWith({{"Authorization", "Basic x"}}, "GET", "/metrics").status, 200u);
}

TEST_F(GuardTest, ARefusalSaysWhyAndNamesTheScheme) {
  Start();
  for (const http::Role role : {http::Role::kPublic, http::Role::kOperator}) {
    for (const http::Response& refused :
         {Ask("GET", "/metrics", "", "", role), Ask("GET", "/metrics", "of-nobody", "", role),
          Ask("GET", "/healthz", "of-nobody", "", role),
          Ask("POST", "/v1/recommend", "", kSequence, role),
          AskWith({{"Authorization", "Basic eDp5"}}, "GET", "/metrics", "", role)}) {
      EXPECT_EQ(refused.status, 401u);
      EXPECT_EQ(refused.Header("WWW-Authenticate"), "Bearer realm=\"tacit\"");
      EXPECT_THAT(refused.body, HasSubstr("\"code\":401"));
    }
  }
  const http::Response other = Ask("GET", "/metrics", kAnna);
  EXPECT_THAT(other.body,
              HasSubstr("/metrics is for callers of role query: the token of 'a-phone' has "
                        "the role user"));
  EXPECT_THAT(other.Header("WWW-Authenticate"), HasSubstr("insufficient_scope"));
  EXPECT_THAT(Ask("GET", "/v1/ledger", kQuery, "", http::Role::kOperator).body,
              HasSubstr("is for operators"));
  EXPECT_THAT(Ask("GET", "/v1/ledger", kOperator).body, HasSubstr("serve.operator_listen"));
  http::RawConnection twice(server_->addresses()[0]);
  ASSERT_TRUE(twice.Send(
      fmt::format("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n"
                  "Authorization: Bearer {}\r\n\r\n",
                  kQuery, kOperator)));
  EXPECT_EQ(twice.Receive()->status, 400);
}

// A caller who is not known must not make the server hold a body.
TEST_F(GuardTest, AnUnknownCallersBodyIsNotWaitedFor) {
  Start();
  http::RawConnection connection(server_->addresses()[0]);
  ASSERT_TRUE(connection.Send(
      "POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n"));
  const auto refused = connection.Receive();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 401);
  EXPECT_TRUE(connection.Closes());
}

// Gauges of operators are for the operator's token at the operator's listener, not for either.
TEST_F(GuardTest, OperatorsMetricsAreForOperators) {
  Start();
  registry_.AddGauge("tacit_gpu_used").Set(1);
  EXPECT_THAT(Ask("GET", "/metrics", kOperator, "", http::Role::kOperator).body,
              HasSubstr("tacit_gpu_used"));
  EXPECT_THAT(Ask("GET", "/metrics", kQuery, "", http::Role::kOperator).body,
              Not(HasSubstr("tacit_gpu_used")));
  EXPECT_THAT(Ask("GET", "/metrics", kOperator).body, Not(HasSubstr("tacit_gpu_used")));
}

TEST_F(GuardTest, AUserGetsHisOwnAndNobodyElses) {
  Start();
  const json::object mine =
      json::parse(Ask("POST", "/v1/recommend", kAnna, kOfAnna).body).as_object();
  EXPECT_EQ(
      mine,
      json::parse(Ask("POST", "/v1/recommend", kOperator, kOfAnna, http::Role::kOperator).body));
  EXPECT_EQ(mine.at("covered_by_epsilon"), false);
  EXPECT_THAT(Ask("GET", "/v1/users/anna", kAnna).body, HasSubstr("\"a3\""));
  const json::object statement =
      json::parse(Ask("GET", "/v1/users/anna/privacy", kAnna).body).as_object();
  EXPECT_EQ(statement.at("user"), "anna");
  const json::object& learner = statement.at("learners").at(0).as_object();
  EXPECT_EQ(learner.at("epsilon"), 1.5);
  EXPECT_EQ(json::serialize(learner.at("allowance")), R"({"used":1,"of":4})");
  // The same refusal, to the byte, for a user who is known here and one who is not.
  for (const char* path : {"/v1/users/{}", "/v1/users/{}/privacy"}) {
    const auto of = [&](std::string_view user) {
      return Ask("GET", fmt::format(fmt::runtime(path), user), kAnna);
    };
    EXPECT_EQ(of("bert").body, of("nobody").body);
    EXPECT_EQ(of("bert").status, 403u);
    EXPECT_EQ(of("ann%61").status, 200u) << "the id is compared, not its encoding";
  }
  EXPECT_EQ(Ask("POST", "/v1/recommend", kAnna, R"({"user":"bert"})").body,
            Ask("POST", "/v1/recommend", kAnna, R"({"user":"nobody"})").body);
}

TEST_F(GuardTest, ACallerWhoAsksTooFastWaits) {
  Start({2, 0, 0});
  size_t answered = 0;
  http::Response last;
  for (int i = 0; i < 1000 && (last.status == 0 || last.status == 200); ++i) {
    last = Ask("GET", "/v1/privacy", kQuery);
    answered += last.status == 200 ? 1 : 0;
  }
  EXPECT_GE(answered, 2u);
  EXPECT_EQ(last.status, 429u);
  EXPECT_EQ(last.Header("Retry-After"), "1");
  EXPECT_THAT(last.body, HasSubstr("'web' asks faster than serve.rates.query allows"));
  EXPECT_EQ(Ask("GET", "/v1/privacy", kAnna).status, 200u) << "the others go on";
}

// Connections that are open at the change, and requests on them, go on.
TEST_F(GuardTest, CallersChangeWithoutADrop) {
  Start();
  http::RawConnection connection(server_->addresses()[0]);
  const auto ask = [&](const std::string& token) {
    EXPECT_TRUE(connection.Send(fmt::format(
        "GET /v1/privacy HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n", token)));
    const auto response = connection.Receive();
    return response ? response->status : 0;
  };
  EXPECT_EQ(ask(kQuery), 200);
  // A request is half sent while its token is taken away: it was let in, and is answered.
  ASSERT_TRUE(connection.Send(
      fmt::format("POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n"
                  "Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
                  kQuery, std::string_view(kSequence).size())));
  const auto begun = connection.Receive();
  ASSERT_TRUE(begun.has_value());
  EXPECT_EQ(begun->status, 100);
  Write(http::CallerLine("query", "new", http::DigestOfToken("another"), "") + "\n");
  ASSERT_TRUE(callers_->Reload().has_value());
  ASSERT_TRUE(connection.Send(kSequence));
  const auto answered = connection.Receive();
  ASSERT_TRUE(answered.has_value());
  EXPECT_EQ(answered->status, 200);
  EXPECT_EQ(ask("another"), 200);
  EXPECT_EQ(ask(kQuery), 401);
}

// After any question, right or wrong: no token, query, body or user is in the log or in the
// metrics.
TEST_F(GuardTest, NothingSecretIsLoggedOrShown) {
  Start();
  std::string told;
  for (const char* token : {"", kQuery, kAnna, kBert, kOperator, "planted-nobody"})
    for (const http::Role role : {http::Role::kPublic, http::Role::kOperator})
      for (const auto& [method, path, body] : std::vector<std::array<std::string, 3>>{
               {"GET", "/v1/privacy?q=planted-query-string", ""},
               {"GET", "/v1/users/planted-user", ""},
               {"POST", "/v1/recommend", R"({"user":"planted-body"})"},
               {"POST", "/v1/recommend", R"({"sequence":["a1"],"planted-key":1})"},
               {"GET", "/planted-path", ""}}) {
        const http::Response response = Ask(method, path, token, body, role);
        // An answer may repeat what was asked, but never the token that it came with.
        told += *token != '\0' && response.body.find(token) != response.body.npos ? token : "";
      }
  EXPECT_EQ(told, "");
  const std::string metrics = Ask("GET", "/metrics", kOperator, "", http::Role::kOperator).body;
  server_->Stop(test::kPatience);
  EXPECT_THAT(log_.str(), HasSubstr("access: operator GET /v1/privacy 200"));
  EXPECT_THAT(log_.str(), HasSubstr("access: user POST /v1/recommend 403"));
  EXPECT_THAT(log_.str(), Not(HasSubstr("planted")));
  EXPECT_THAT(metrics, Not(HasSubstr("planted")));
}

}  // namespace
}  // namespace tacit::serve
