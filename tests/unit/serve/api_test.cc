#include "serve/api.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <map>
#include <thread>

#include "fake_snapshot.h"
#include "metrics/families.h"
#include "serve/routes/ledger_route.h"
#include "serve/routes/privacy_route.h"
#include "serve/scoring/score_request.h"
#include "unit/http/echo_server.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

constexpr char kTwoRows[] =
    R"({"learner":"ctr","rows":[{"dense":[3,-1.5],"categorical":["68fd1e64","x",["a","b"]]},
                                 {"features":{"I1":7,"tags":["b"]}}]})";

// The whole of serve over real sockets; only the store is in memory.
class ApiTest : public testing::Test {
 protected:
  void Start(double epsilon = 4, uint32_t threads = 1) {
    ScoringModel model = SmallModel("ctr", epsilon);
    model.lines = lines_;
    store_ = std::make_unique<FakeStore>(model);
    Services services;
    services.latest = [this] { return store_->Latest(); };
    services.models = {model};
    services.total_budget = total_budget_;
    services.users = users_;
    services.readiness = [this] { return readiness_; };
    services.spent = [this](LearnerIndex) { return spent_.load(); };
    services.metrics = &registry_;
    services.serves = serves_;
    http::ServerOptions options;
    options.listeners = {{"127.0.0.1:0", http::Role::kPublic},
                         {"127.0.0.1:0", http::Role::kOperator}};
    options.threads = threads;
    options.clock = &clock_;
    auto server = http::Server::Start(options, MakeApi(services), registry_);
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
  }
  http::Response Ask(const std::string& method, const std::string& path, std::string_view body = "",
                     size_t listener = 0) {
    const auto response = http::Fetch("http://" + server_->addresses()[listener] + path, method,
                                      body, test::kPatience);
    EXPECT_TRUE(response.has_value()) << response.error().message;
    return response ? *response : http::Response{};
  }
  // The answer that a version must give to kTwoRows, computed without the server.
  std::vector<float> Expected(uint64_t version) const {
    const ScoringModel model = SmallModel();
    ScoreRequestParser parser({{"ctr", model.transform}}, {});
    event::Batch batch;
    EXPECT_TRUE(parser.Parse(kTwoRows, &batch).has_value());
    std::vector<float> scores(batch.size());
    EXPECT_TRUE(
        model.model->MakeScorer()->Score(*store_->Make(version), batch, scores).has_value());
    return scores;
  }

  metrics::Registry registry_;
  bool serves_ = true;
  std::unique_ptr<FakeStore> store_;
  std::shared_ptr<const event::Codec> lines_;  // of the model
  Readiness readiness_{true, ""};
  std::atomic<privacy::Spent> spent_ = privacy::Spent::kNone;
  std::optional<privacy::TotalBudget> total_budget_;
  std::optional<UserCommands> users_;
  test::HeldClock clock_;
  std::unique_ptr<http::Server> server_;
};

std::vector<float> ScoresOf(const json::value& answer) {
  std::vector<float> scores;
  for (const json::value& score : answer.at("scores").as_array())
    scores.push_back(static_cast<float>(score.to_number<double>()));
  return scores;
}

TEST_F(ApiTest, ScoresComeWithTheirModel) {
  Start();
  store_->Commit(6);
  const http::Response response = Ask("POST", "/v1/score", kTwoRows);
  ASSERT_EQ(response.status, 200u) << response.body;
  const json::value answer = json::parse(response.body);
  EXPECT_EQ(ScoresOf(answer), Expected(6));
  std::string hash = "sha256:";
  for (int i = 0; i < 32; ++i) hash += "06";
  EXPECT_EQ(answer.at("model"), json::parse(R"({"learner":"ctr","version":6,"snapshot":")" + hash +
                                            R"(","epsilon":1.5,"delta":1e-6,"private":true})"));
}

// Records as the stream has them get the scores of the same rows, by the codec of training.
TEST_F(ApiTest, LinesAreScoredAsTheStreamHasThem) {
  const ScoringModel small = SmallModel();
  lines_ = event::MakeJsonCodec(*small.transform, {.label = event::LabelUse::kPassedOver});
  Start();
  store_->Commit(6);
  constexpr char kLines[] =
      "{\"label\":7,\"features\":{\"I1\":3,\"I2\":-1.5,\"C1\":\"68fd1e64\",\"C2\":\"x\",\"tags\":["
      "\"a\",\"b\"]}}\n"
      "{\"features\":{\"I1\":7,\"tags\":[\"b\"]}}\n";
  const http::Response response = Ask("POST", "/v1/score/lines?learner=ctr", kLines);
  ASSERT_EQ(response.status, 200u) << response.body;
  EXPECT_EQ(ScoresOf(json::parse(response.body)), Expected(6));
  EXPECT_EQ(json::parse(response.body).at("model"),
            json::parse(Ask("POST", "/v1/score", kTwoRows).body).at("model"));
  // More than one piece.
  std::string many;
  for (int i = 0; i < 4096; ++i)
    many += R"({"features":{"I1":7,"tags":["b"]}})"
            "\n";
  const auto scores = ScoresOf(json::parse(Ask("POST", "/v1/score/lines", many).body));
  ASSERT_EQ(scores.size(), 4096u);
  for (const float score : scores) EXPECT_EQ(score, Expected(6)[1]);

  const auto refusal = [this](const std::string& path, const std::string& body) {
    const http::Response bad = Ask("POST", path, body);
    EXPECT_EQ(bad.status, 400u) << bad.body;
    return std::string(json::parse(bad.body).at("error").at("message").as_string());
  };
  EXPECT_THAT(refusal("/v1/score/lines", many + "{}\n"), HasSubstr("more than 4096 lines"));
  EXPECT_THAT(refusal("/v1/score/lines", "{}\n{\"features\":{\"I1\":\"x\"}}"),
              HasSubstr("line 2: I1: is no number"));
  EXPECT_THAT(refusal("/v1/score/lines", ""), HasSubstr("no line"));
  EXPECT_THAT(refusal("/v1/score/lines", "{\"a\":\"" + std::string(70'000, 'x') + "\"}"),
              HasSubstr("line 1: longer than 65536 bytes"));
  EXPECT_THAT(refusal("/v1/score/lines?model=ctr", "{}"), HasSubstr("unknown parameter 'model'"));
  EXPECT_EQ(Ask("POST", "/v1/score/lines?learner=cts", "{}").status, 404u);
}

TEST_F(ApiTest, WhereRecordsAreNoLinesNoneAreScored) {
  Start();
  store_->Commit(1);
  const http::Response refused = Ask("POST", "/v1/score/lines", "{}");
  EXPECT_EQ(refused.status, 400u);
  EXPECT_THAT(refused.body, HasSubstr("no lines of text"));
}

TEST_F(ApiTest, WithoutPrivacyEpsilonIsNull) {
  Start(INFINITY);
  store_->Commit(1);
  const json::value model =
      json::parse(Ask("POST", "/v1/score", R"({"rows":[{}]})").body).at("model");
  EXPECT_TRUE(model.at("epsilon").is_null());
  EXPECT_EQ(model.at("private"), false);
  const json::value privacy = json::parse(Ask("GET", "/v1/privacy").body);
  EXPECT_TRUE(privacy.at("learners").at(0).at("epsilon").is_null());
  EXPECT_TRUE(privacy.at("learners").at(0).at("budget").at("epsilon").is_null());
  EXPECT_TRUE(privacy.at("total").at("epsilon").is_null());
}

TEST_F(ApiTest, BeforeTheFirstCommitThereIsNothingToScoreWith) {
  Start();
  const http::Response score = Ask("POST", "/v1/score", kTwoRows);
  EXPECT_EQ(score.status, 503u);
  EXPECT_EQ(score.Header("Retry-After"), "1");
  EXPECT_THAT(score.body, HasSubstr("no committed model yet"));
  const http::Response ready = Ask("GET", "/readyz");
  EXPECT_EQ(ready.status, 503u);
  EXPECT_THAT(ready.body, HasSubstr("no committed model yet"));
  EXPECT_EQ(Ask("GET", "/healthz").body, "ok\n");
}

TEST_F(ApiTest, ReadinessIsTheDaemonsAndTheStores) {
  Start();
  store_->Commit(1);
  EXPECT_EQ(Ask("GET", "/readyz").status, 200u);
  readiness_ = {false, "the source failed: day_3.tsv is gone"};
  const http::Response response = Ask("GET", "/readyz");
  EXPECT_EQ(response.status, 503u);
  EXPECT_THAT(response.body, HasSubstr("day_3.tsv is gone"));
}

// Answers go on after a failure of training.
TEST_F(ApiTest, AVersionIsServedWhetherOrNotTheDaemonIsReady) {
  Start();
  EXPECT_EQ(Ask("GET", "/servez").status, 503u);
  store_->Commit(1);
  EXPECT_EQ(Ask("GET", "/servez").status, 200u);
  readiness_ = {false, "training has failed"};
  EXPECT_EQ(Ask("GET", "/readyz").status, 503u);
  const http::Response served = Ask("GET", "/servez");
  EXPECT_EQ(served.status, 200u);
  EXPECT_EQ(served.body, "serving\n");
}

// A worker: it is ready as it says itself, without a commit, and has no other routes.
TEST_F(ApiTest, ADaemonWithoutAModelAnswersProbesAndMetricsAlone) {
  serves_ = false;
  Start();
  EXPECT_EQ(Ask("GET", "/readyz").body, "ready\n");
  readiness_ = {.ready = false, .reason = "no plan was read yet"};
  EXPECT_EQ(Ask("GET", "/readyz").status, 503u);
  EXPECT_THAT(Ask("GET", "/readyz").body, HasSubstr("no plan was read yet"));
  for (const size_t listener : {0, 1}) {
    for (const char* path : {"/", "/healthz", "/metrics"})
      EXPECT_EQ(Ask("GET", path, "", listener).status, 200u) << path;
    for (const char* path : {"/servez", "/v1/privacy", "/v1/ledger", "/v1/quality", "/v1/dashboard",
                             "/v1/weights", "/v2", "/v2/health/ready"})
      EXPECT_EQ(Ask("GET", path, "", listener).status, 404u) << path;
    EXPECT_EQ(Ask("POST", "/v1/score", kTwoRows, listener).status, 404u);
    EXPECT_THAT(Ask("GET", "/", "", listener).body, Not(HasSubstr("/v1/")));
  }
}

// It serves, so it is ready; the public sees nothing that depends on records, and not that
// there is something.
TEST_F(ApiTest, DegradedIsReadyAndSaysWhy) {
  Start();
  store_->Commit(1);
  EXPECT_EQ(Ask("GET", "/readyz").body, "ready\n");
  readiness_ = {true, "", "the source is out of reach",
                "the source is out of reach: timed out; dead letters cannot be written"};
  const http::Response told = Ask("GET", "/readyz"), to_operator = Ask("GET", "/readyz", "", 1);
  EXPECT_EQ(told.status, 200u);
  EXPECT_EQ(told.body, "ready, degraded: the source is out of reach\n");
  EXPECT_EQ(to_operator.status, 200u);
  EXPECT_EQ(to_operator.body,
            "ready, degraded: the source is out of reach: timed out; dead letters cannot be "
            "written\n");
  readiness_ = {true, "", "", "partition 3 waits at offset 17"};
  EXPECT_EQ(Ask("GET", "/readyz").body, "ready\n");
  EXPECT_EQ(Ask("GET", "/readyz", "", 1).body, "ready, degraded: partition 3 waits at offset 17\n");
}

// The room that epsilon 0.5 and delta 1e-6 leave, where nothing more is known of a ledger:
// (e^epsilon + delta) / (1 + e^epsilon).
const double kAccuracy = (std::exp(0.5) + 1e-6) / (1 + std::exp(0.5));
constexpr const char* kWords =
    "with all else known, somebody guesses right at most 62.3 times of 100; a coin does 50";

TEST_F(ApiTest, PrivacyHasItsStableForm) {
  total_budget_ = {.epsilon = 6, .delta = 1e-7};
  Start();
  store_->Commit(2);
  spent_ = privacy::Spent::kOwn;
  json::value answer = json::parse(Ask("GET", "/v1/privacy").body);
  for (json::value* told : {&answer.at("learners").at(0), &answer.at("total")}) {
    EXPECT_NEAR(told->at("at_most").at("accuracy").to_number<double>(), kAccuracy, 1e-12);
    EXPECT_EQ(told->at("at_most").at("words"), kWords);
    told->as_object().erase("at_most");
  }
  std::string hash = "sha256:";
  for (int i = 0; i < 32; ++i) hash += "02";
  EXPECT_EQ(answer, json::parse(R"({"learners":[{"learner":"ctr","unit":"event","epsilon":0.5,
      "delta":1e-6,"steps":6,"private":true,"budget":{"epsilon":4,"exhausted":true},
      "stopped_by":"own","participation":"once","adjacency":"zero-out",
      "neighbours":"streams that differ in the content of one event, nulled in one of them; )"
                                R"(how many events there are, and where, counts as known"}],
      "total":{"unit":"event","epsilon":0.5,"delta":1e-6,
      "budget":{"epsilon":6,"delta":1e-7}},"entries":2,"head":")" +
                                hash + R"(","version":2,"lineage":"line-1"})"))
      << json::serialize(answer);
}

// Taken out of the configuration, or renamed: what it spent is out, and is still reported.
TEST_F(ApiTest, ALearnerThatIsConfiguredNoMoreIsToldAsRetired) {
  Start();
  const auto snapshot = store_->Make(2);
  json::value answer = json::parse(PrivacyJson(*snapshot, {}, nullptr, std::nullopt));
  EXPECT_EQ(answer.at("learners"), json::array());
  EXPECT_EQ(answer.at("retired").at(0).at("at_most").at("words"), kWords);
  answer.at("retired").at(0).as_object().erase("at_most");
  EXPECT_EQ(answer.at("retired"), json::parse(R"([{"learner":"ctr","unit":"event","epsilon":0.5,
      "delta":1e-6,"steps":6}])"));
  EXPECT_EQ(answer.at("total").at("epsilon"), 0.5);
}

TEST_F(ApiTest, AUserIsShownAndForgottenForTheOperatorAlone) {
  std::vector<std::string> forgotten;
  const auto show = [&](std::string_view id) -> Result<UserReport> {
    UserReport report;
    if (id == "bad") return Fail(ErrorCode::kIo, "the disk");
    report.histories = {{"next", {{"a \"b\"", 5}, {"c", 6}}}, {"counts", {{"d", 7}}}};
    report.allowances = {{"next", 3, 9}, {"ctr", 0, 40}};
    if (std::ranges::find(forgotten, id) != forgotten.end()) {
      report = {.forgotten_before_ms = 77, .erased = false, .opted_out = true};
    }
    return report;
  };
  users_ = UserCommands{.show = show, .forget = [&](std::string_view id) {
                          forgotten.emplace_back(id);
                          return show(id);
                        }};
  Start();
  store_->Commit(2);
  for (const char* method : {"GET", "DELETE"})
    EXPECT_EQ(Ask(method, "/v1/users/anna").status, 403u) << method;
  EXPECT_TRUE(forgotten.empty());
  EXPECT_THAT(Ask("GET", "/").body, Not(HasSubstr("/v1/users")));
  const http::Response told = Ask("GET", "/v1/users/a%2fb%20+%c3%a4", "", 1);
  EXPECT_EQ(told.status, 200u);
  EXPECT_EQ(json::parse(told.body), json::parse(R"({"user":"a/b +ä","histories":[
      {"learner":"next","items":[{"id":"a \"b\"","timestamp_ms":5},{"id":"c","timestamp_ms":6}]},
      {"learner":"counts","items":[{"id":"d","timestamp_ms":7}]}],
      "allowances":[{"learner":"next","used":3,"of":9},{"learner":"ctr","used":0,"of":40}],
      "forgotten_before_ms":null,"erased":true,"opted_out":false})"));
  const http::Response gone = Ask("DELETE", "/v1/users/a%2fb", "", 1);
  EXPECT_EQ(gone.status, 200u);
  EXPECT_EQ(json::parse(gone.body), json::parse(R"({"user":"a/b","histories":[],"allowances":[],
                            "forgotten_before_ms":77,"erased":false,"opted_out":true})"));
  EXPECT_EQ(forgotten, std::vector<std::string>{"a/b"});
  EXPECT_EQ(Ask("GET", "/v1/users/a%2", "", 1).status, 400u);
  EXPECT_EQ(Ask("GET", "/v1/users/bad", "", 1).status, 500u);
  EXPECT_EQ(Ask("POST", "/v1/users/anna", "", 1).status, 405u);
}

TEST_F(ApiTest, TheLedgerIsForTheOperatorAlone) {
  Start();
  store_->Commit(2);
  const http::Response refused = Ask("GET", "/v1/ledger");
  EXPECT_EQ(refused.status, 403u);
  EXPECT_THAT(refused.body, HasSubstr("serve.operator_listen"));
  EXPECT_THAT(refused.body, Not(HasSubstr("entries")));
  EXPECT_THAT(Ask("GET", "/").body, Not(HasSubstr("/v1/ledger")));
  EXPECT_THAT(Ask("GET", "/", "", 1).body, HasSubstr("/v1/ledger"));
  EXPECT_EQ(Ask("POST", "/v1/ledger", "", 1).status, 405u);
}

TEST_F(ApiTest, TheLedgerHasItsStableForm) {
  Start();
  store_->Commit(2);
  std::string hash = "sha256:", one;
  for (int i = 0; i < 32; ++i) hash += "02";
  for (size_t i = 0; i < FakeSnapshot::kEntryBytes; ++i) one += "01";
  EXPECT_EQ(json::parse(Ask("GET", "/v1/ledger?from=1", "", 1).body),
            json::parse(R"({"head":")" + hash + R"(","version":2,"lineage":"line-1",
      "promises":[{"learner":"ctr","unit":"event","adjacency":"zero-out","participation":"once",
                   "epsilon":4,"delta":1e-6}],
      "total_budget":null,"length":2,"from":1,"entries":[")" +
                        one + R"("]})"));
}

TEST_F(ApiTest, TheLedgerComesInPages) {
  total_budget_ = {.epsilon = 6, .delta = 1e-7};
  Start(INFINITY);
  constexpr uint64_t kEntries = 9000;
  store_->Commit(kEntries);
  uint64_t next = 0, pages = 0;
  while (next < kEntries) {
    const http::Response response = Ask("GET", "/v1/ledger?from=" + std::to_string(next), "", 1);
    ASSERT_EQ(response.status, 200u) << response.body;
    EXPECT_LE(response.body.size(), kLedgerPageBytes + 1000);
    const json::value page = json::parse(response.body);
    EXPECT_EQ(page.at("total_budget"), json::parse(R"({"epsilon":6,"delta":1e-7})"));
    EXPECT_TRUE(page.at("promises").at(0).at("epsilon").is_null());
    ASSERT_FALSE(page.at("entries").as_array().empty());
    for (const json::value& entry : page.at("entries").as_array()) {
      ASSERT_TRUE(entry.as_string().starts_with(fmt::format("{:02x}", next % 256)));
      ++next;
    }
    ++pages;
  }
  EXPECT_EQ(next, kEntries);
  EXPECT_GE(pages, kEntries * FakeSnapshot::kEntryBytes * 2 / kLedgerPageBytes);
  const auto count = [&](const std::string& query) {
    return json::parse(Ask("GET", "/v1/ledger?" + query, "", 1).body)
        .at("entries")
        .as_array()
        .size();
  };
  EXPECT_EQ(count("count=3&from=8998"), 2u);
  EXPECT_EQ(count("count=3"), 3u);
  EXPECT_EQ(count("count=0"), 0u);
  EXPECT_EQ(count("from=9000"), 0u);
  EXPECT_EQ(count("from=18446744073709551615"), 0u);
  for (const char* query : {"from=-1", "from=", "count=1x", "form=1"}) {
    const http::Response bad = Ask("GET", std::string("/v1/ledger?") + query, "", 1);
    EXPECT_EQ(bad.status, 400u) << query;
  }
}

TEST_F(ApiTest, BadRequestsAreNamed) {
  Start();
  store_->Commit(1);
  const http::Response not_json = Ask("POST", "/v1/score", "{\"learner\":");
  EXPECT_EQ(not_json.status, 400u);
  EXPECT_THAT(not_json.body, HasSubstr("not JSON"));
  const http::Response unknown =
      Ask("POST", "/v1/score", R"({"learner":"ctr","rows":[{"features":{"tegs":"a"}}]})");
  EXPECT_EQ(unknown.status, 400u);
  EXPECT_EQ(json::parse(unknown.body).at("error").at("message"),
            "row 0: unknown feature 'tegs' (did you mean 'tags'?)");
  EXPECT_EQ(Ask("POST", "/v1/score", R"({"learner":"cts","rows":[]})").status, 404u);
  EXPECT_EQ(Ask("GET", "/v1/score").status, 405u);
  EXPECT_EQ(Ask("GET", "/v1/scor").status, 404u);
  EXPECT_THAT(Ask("GET", "/").body, HasSubstr("POST /v1/score"));
}

TEST_F(ApiTest, WhatCannotBeReadIsNamedToOperatorsAlone) {
  Start();
  const Error broken{ErrorCode::kNotFound, "reading rows of store leak/store: /leak/000036.sst"};
  store_->CommitBroken(1, broken);
  const http::Response seen = Ask("POST", "/v1/score", kTwoRows);
  EXPECT_EQ(seen.status, 500u);
  EXPECT_THAT(seen.body, Not(HasSubstr("leak")));
  const http::Response all = Ask("POST", "/v1/score", kTwoRows, 1);
  EXPECT_EQ(all.status, 500u);
  EXPECT_THAT(all.body, HasSubstr(broken.message));
}

TEST_F(ApiTest, TheListenersRoleDecidesWhichMetricsAreSeen) {
  Start();
  registry_.AddGauge("tacit_commit_version").Set(1);
  registry_.AddGauge("tacit_training_loss", {{"learner", "ctr"}}).Set(2);
  const http::Response seen = Ask("GET", "/metrics", "", 0);
  EXPECT_THAT(seen.body, HasSubstr("tacit_commit_version 1"));
  EXPECT_THAT(seen.body, Not(HasSubstr("tacit_training_loss")));
  EXPECT_THAT(std::string(seen.Header("Content-Type")), HasSubstr("version=0.0.4"));
  const http::Response all = Ask("GET", "/metrics", "", 1);
  EXPECT_THAT(all.body, HasSubstr("tacit_commit_version 1"));
  EXPECT_THAT(all.body, HasSubstr("tacit_training_loss{learner=\"ctr\"} 2"));
}

// While commits come, every answer's scores are exactly those of the version it names, and no
// client sees versions go back.
TEST_F(ApiTest, EveryAnswerBelongsToOneVersion) {
  constexpr uint64_t kVersions = 40;
  Start(4, 2);
  store_->Commit(1);
  std::map<uint64_t, std::vector<float>> expected;
  for (uint64_t v = 1; v <= kVersions; ++v) expected[v] = Expected(v);
  std::atomic<bool> done{false};
  std::atomic<int> answers{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c)
    clients.emplace_back([&] {
      http::RawConnection connection(server_->addresses()[0]);
      uint64_t last = 0;
      while (!done || last < kVersions) {
        ASSERT_TRUE(connection.Send(http::MakeRequest("POST", "/v1/score", kTwoRows)));
        const auto response = connection.Receive();
        ASSERT_TRUE(response.has_value());
        const json::value answer = json::parse(response->body);
        const auto version = answer.at("model").at("version").to_number<uint64_t>();
        ASSERT_EQ(ScoresOf(answer), expected.at(version)) << "version " << version;
        ASSERT_EQ(answer.at("model").at("epsilon").to_number<double>(), 0.25 * version);
        ASSERT_GE(version, last);
        last = version;
        ++answers;
      }
    });
  // Each version is the newest for some answers.
  bool goes_on = true;
  for (uint64_t v = 2; v <= kVersions; ++v) {
    store_->Commit(v);
    const int before = answers;
    goes_on = goes_on && test::Eventually("answers come", [&] { return answers >= before + 3; });
  }
  EXPECT_TRUE(goes_on);
  done = true;
  for (std::thread& client : clients) client.join();
  EXPECT_GE(answers, 3 * 40 - 3);
}

}  // namespace
}  // namespace tacit::serve
