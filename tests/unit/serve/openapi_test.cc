// schemas/openapi.yaml, held against a running server: the same routes, for the same listeners, and
// answers of the schemas that it states.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <map>
#include <regex>
#include <set>

#include "fake_snapshot.h"
#include "http/gzip.h"
#include "http/token.h"
#include "json_schema.h"
#include "model/linear/update.h"
#include "recommend_fakes.h"
#include "serve/api.h"
#include "serve/route_table.h"
#include "serve/scoring/linear_scorer.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/http/echo_server.h"

namespace tacit::serve {
namespace {

namespace json = boost::json;
namespace linear = model::linear;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr LearnerIndex kItemsAt(0), kNetworkAt(1), kLinearAt(2);

json::value ScalarOf(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return json::value(text);  // in quotes
  if (text == "null" || text == "~") return nullptr;
  if (text == "true" || text == "false") return text == "true";
  int64_t integer = 0;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, integer).ptr == end && !text.empty()) return integer;
  double number = 0;
  if (std::from_chars(text.data(), end, number).ptr == end && !text.empty()) return number;
  return json::value(text);
}

json::value JsonFrom(const YAML::Node& node) {
  if (node.IsMap()) {
    json::object object;
    for (const auto& entry : node)
      if (!object.emplace(entry.first.Scalar(), JsonFrom(entry.second)).second)
        ADD_FAILURE() << entry.first.Scalar() << " is there twice";
    return object;
  }
  if (node.IsSequence()) {
    json::array array;
    for (const auto& entry : node) array.push_back(JsonFrom(entry));
    return array;
  }
  return node.IsNull() ? json::value(nullptr) : ScalarOf(node);
}

json::value Document() {
  return JsonFrom(YAML::LoadFile(std::string(TACIT_SOURCE_DIR) + "/schemas/openapi.yaml"));
}

std::shared_ptr<const linear::Columns> LinearColumns() {
  return std::make_shared<const linear::Columns>(
      std::vector<linear::CategoryColumn>{
          {"C1", 100, false}, {"C2", 50, false}, {"tags", 30, true}},
      std::vector<linear::NumberColumn>{{"I1", false}, {"I2", true}}, linear::Bins(),
      std::vector<linear::CrossColumn>{});
}

// A commit of a network, a linear model and a model of the next item.
class WholeSnapshot final : public FakeSnapshot {
 public:
  WholeSnapshot() : FakeSnapshot(6, SmallModel(), DenseSizeOf(SmallNetwork())) {
    linear::State state;
    state.periods = 2;
    state.bias = -1;
    state.priors.resize(LinearColumns()->size());
    linear_ = std::make_shared<const std::string>(state.Encode(*LinearColumns()));
  }
  std::shared_ptr<const std::string> Released(LearnerIndex learner) const override {
    if (learner == kItemsAt) return items_;
    return learner == kLinearAt ? linear_ : nullptr;
  }
  Status ForWritten(LearnerIndex, uint32_t, const EachRow& each) const override {
    std::vector<float> floats(8, 0.25f);
    for (uint64_t row = 0; row < 5; ++row) each(row, floats);
    return {};
  }

 private:
  std::shared_ptr<const std::string> linear_;
  std::shared_ptr<const std::string> items_ = std::make_shared<const std::string>("first");
};

class OpenApiTest : public testing::Test {
 protected:
  void SetUp() override {
    http::ServerOptions options;
    options.listeners = {{"127.0.0.1:0", http::Role::kPublic},
                         {"127.0.0.1:0", http::Role::kOperator}};
    auto server = http::Server::Start(options, MakeApi(MakeServices()), registry_);
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
    ASSERT_TRUE(test::Eventually("all models answer",
                                 [&] { return Ask("GET", "/v2/health/ready", "").status == 200; }));
  }
  Services MakeServices();
  http::Response Ask(const std::string& method, const std::string& path, std::string_view body,
                     http::Role role = http::Role::kPublic) {
    const auto response =
        http::Fetch("http://" + server_->addresses()[role == http::Role::kOperator ? 1 : 0] + path,
                    method, body, test::kPatience);
    EXPECT_TRUE(response.has_value()) << path << response.error().message;
    return response ? *response : http::Response{};
  }
  // "METHOD path" of every route of the server, as its own counters name them.
  std::set<std::string> Routes() {
    std::set<std::string> routes;
    const std::string text = Ask("GET", "/metrics", "", http::Role::kOperator).body;
    const std::regex line(
        "tacit_http_(?:operator_)?requests_total\\{method=\"([A-Z]+)\",path=\"([^\"]*)\"");
    for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at)
      routes.insert((*at)[1].str() + " " + (*at)[2].str());
    return routes;
  }
  // All that is wrong between a document and the server.
  std::vector<std::string> Compare(const json::value& document);
  void CompareOperation(const JsonSchema& schema, const std::string& method,
                        const std::string& path, const json::object& operation,
                        const json::value* shared, std::vector<std::string>* wrong);

  // The same of roles, between `security` and a server whose callers have tokens.
  std::vector<std::string> CompareRoles(const json::value& document);

  metrics::Registry registry_;
  std::unique_ptr<http::Server> server_;
  size_t sent_ = 0;  // examples
};

Services OpenApiTest::MakeServices() {
  Services services;
  const auto snapshot = std::make_shared<const WholeSnapshot>();
  services.latest = [snapshot] { return snapshot; };
  ScoringModel network = SmallModel();
  network.index = kNetworkAt;
  network.model = MakeClickModel(kNetworkAt, "ctr", network.transform, SmallNetwork());
  network.lines = event::MakeJsonCodec(*network.transform, {.label = event::LabelUse::kPassedOver});
  ScoringModel straight = SmallModel("linear", INFINITY);
  straight.index = kLinearAt;
  straight.model = MakeLinearModel(kLinearAt, "linear", straight.transform, LinearColumns());
  services.models = {network, straight};
  services.recommenders = {SomeRecommender(12)};
  services.total_budget = privacy::TotalBudget{.epsilon = 8, .delta = 1e-5};
  store::CheckpointPlace place;
  place.folder = "/checkpoints/full-6";
  const CheckpointJob done{.id = 1,
                           .kind = store::CheckpointKind::kFull,
                           .state = CheckpointJob::State::kDone,
                           .made = store::CheckpointMade{.place = place}};
  services.checkpoints = CheckpointCommands{
      .start = [](store::CheckpointKind kind) -> Result<CheckpointJob> {
        return CheckpointJob{.id = 2, .kind = kind};
      },
      .report = [=]() -> Result<CheckpointReport> {
        return CheckpointReport{
            .path = "/checkpoints", .last = done, .places = {place}, .unreadable = {"x: torn"}};
      }};
  const auto user = [](std::string_view) -> Result<UserReport> {
    return UserReport{.histories = {{"next", {{"a2", 17}}}}, .allowances = {{"next", 1, 4}}};
  };
  services.users = UserCommands{.show = user, .forget = user};
  services.repository = RepositoryCommands{.move_on = []() -> Result<bool> { return false; }};
  const VersionReport versions{.serving = 6,
                               .held = true,
                               .canary = Canary{7, 0.1},
                               .open_most = 2,
                               .places = {{6, "/checkpoints/full-6", true}}};
  services.version_commands =
      VersionCommands{.set = [=](const VersionOrder&) -> Result<VersionReport> { return versions; },
                      .report = [=]() -> Result<VersionReport> { return versions; }};
  services.dashboard.figures = [](LookBack) {
    LearnerFigures learner;
    learner.learner = "ctr";
    learner.auc = NAN;
    learner.quality.push_back({.events = 4, .clicks = 1, .loss_sum = 2.5});
    learner.users = privacy::AllowancesLeft{.users = 3, .none = 1, .quarters = {2, 0, 0, 0}};
    OperatorFigures figures;
    figures.samples = {{.time_ms = 1, .read = 2}, {.time_ms = 3, .read = 4}};
    figures.dead_letters = {{"label", 2}};
    figures.learners = {learner};
    return figures;
  };
  services.code_version = "1.2.3";
  services.metrics = &registry_;
  return services;
}

std::string Encoded(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == ' ' ? "%20" : std::string(1, c);
  return out;
}

void OpenApiTest::CompareOperation(const JsonSchema& schema, const std::string& method,
                                   const std::string& path, const json::object& operation,
                                   const json::value* shared, std::vector<std::string>* wrong) {
  const std::string name = method + " " + path;
  std::string target = path, query;
  const auto place = [&](const json::value& listed) {
    const json::object& parameter = schema.Resolve(listed).as_object();
    const json::value* example = parameter.if_contains("example");
    if (example == nullptr) return;
    const std::string key(parameter.at("name").as_string());
    const std::string text =
        example->is_string() ? std::string(example->as_string()) : json::serialize(*example);
    if (parameter.at("in") == "query") {
      query += (query.empty() ? "?" : "&") + key + "=" + Encoded(text);
    } else if (const size_t at = target.find("{" + key + "}"); at != std::string::npos) {
      target.replace(at, key.size() + 2, text);
    } else {
      wrong->push_back(name + ": no {" + key + "} in the path");
    }
  };
  if (shared != nullptr)
    for (const json::value& one : shared->as_array()) place(one);
  if (const json::value* own = operation.if_contains("parameters"))
    for (const json::value& one : own->as_array()) place(one);
  target += query;

  const json::value* const listener = operation.if_contains("x-tacit-listener");
  const http::Role role = listener != nullptr ? http::Role::kOperator : http::Role::kPublic;
  std::vector<std::pair<std::string, std::string>> examples;  // name, body
  if (const json::value* body = operation.if_contains("requestBody")) {
    for (const auto& [type, content] : schema.Resolve(*body).at("content").as_object()) {
      const json::value* const given = content.as_object().if_contains("examples");
      if (given == nullptr) continue;
      for (const auto& [example, holder] : given->as_object()) {
        const json::value& value = holder.at("value");
        const std::string bad = schema.Check(content.at("schema"), value);
        if (!bad.empty())
          wrong->push_back(fmt::format("{} example {}: {}", name, std::string_view(example), bad));
        examples.emplace_back(example, type == "application/json" ? json::serialize(value)
                                                                  : std::string(value.as_string()));
      }
    }
    if (examples.empty()) wrong->push_back(name + " has no example");
  } else {
    examples.emplace_back("", "");
  }
  const json::object& responses = operation.at("responses").as_object();
  const auto check = [&](const http::Response& response, const std::string& example) {
    const json::value* is = responses.if_contains(std::to_string(response.status));
    if (is == nullptr && response.status >= 400) is = responses.if_contains("default");
    if (is == nullptr) {
      wrong->push_back(fmt::format("{} {}: status {} is not stated: {}", name, example,
                                   response.status, response.body));
      return;
    }
    const std::string_view full = response.Header("Content-Type");
    const std::string type(full.substr(0, full.find(';')));
    const json::object& contents = schema.Resolve(*is).at("content").as_object();
    if (!contents.contains(type)) {
      wrong->push_back(fmt::format("{} {}: content type {} is not stated", name, example, type));
      return;
    }
    if (type != "application/json") return;
    const std::string bad =
        schema.Check(contents.at(type).at("schema"), json::parse(response.body));
    if (!bad.empty()) wrong->push_back(fmt::format("{} {}: {}", name, example, bad));
  };
  for (const auto& [example, body] : examples) {
    const http::Response response = Ask(method, target, body, role);
    ++sent_;
    if (response.status >= 400)
      wrong->push_back(fmt::format("{} {}: {}", name, example, response.body));
    check(response, example);
    const bool may_be_packed = response.Header("Vary") == "Accept-Encoding";
    if (may_be_packed != operation.contains("x-tacit-gzip"))
      wrong->push_back(
          fmt::format("{} {}", name, may_be_packed ? "may come packed" : "never comes packed"));
    if (role == http::Role::kPublic) continue;
    const http::Response refused = Ask(method, target, body);
    check(refused, example);
    if (refused.status != 403) wrong->push_back(name + " is answered to the public");
  }
  if (operation.contains("requestBody")) {
    const http::Response bad = Ask(method, target, "{\"nothing\":", role);
    if (bad.status < 400) wrong->push_back(name + " answers what is no request");
    check(bad, "of no request");
  }
  // An unloaded model answers nothing further on.
  if (path.ends_with("/unload"))
    Ask("POST", "/v2/repository/models/ctr/load", "", http::Role::kOperator);
}

std::vector<std::string> OpenApiTest::Compare(const json::value& document) {
  std::vector<std::string> wrong;
  const JsonSchema schema(document);
  std::set<std::string> missing = Routes();
  for (const auto& [path, item] : document.at("paths").as_object()) {
    for (const auto& [key, operation] : item.as_object()) {
      if (key == "parameters") continue;
      std::string method(key);
      std::ranges::transform(method, method.begin(), [](char c) { return std::toupper(c); });
      if (missing.erase(method + " " + std::string(path)) == 0) {
        wrong.push_back(fmt::format("the server has no {} {}", method, std::string_view(path)));
        continue;
      }
      CompareOperation(schema, method, std::string(path), operation.as_object(),
                       item.as_object().if_contains("parameters"), &wrong);
    }
  }
  for (const std::string& route : missing) wrong.push_back("not in the document: " + route);
  return wrong;
}

TEST(RoutePagesTest, AValidatorOfOpenApiHasNothingToSay) {
  std::string missing;
  const std::string folder = test::PypiFolder("openapi", &missing);
  if (folder.empty()) GTEST_SKIP() << missing;
  test::TempDir dir;
  const auto validate = [&](const std::string& text) {
    test::WriteFile(dir / "openapi.yaml", text);
    return test::Run({"/usr/bin/env", "PYTHONPATH=" + folder, "/usr/bin/python3", "-m",
                      "openapi_spec_validator", "--errors", "all", dir / "openapi.yaml"});
  };
  const std::string document = RoutesAsYaml();
  const test::Ended checked = validate(document);
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  for (const auto& [right, wrong] : std::vector<std::pair<std::string, std::string>>{
           {"description: A text.", "descriptoin: A text."},
           {"operationId: getV2Index", "operationId: getV2"},
           {"components/responses/Scores", "components/responses/Score"}})
    EXPECT_NE(validate(std::regex_replace(document, std::regex(right), wrong)).exit_code, 0)
        << wrong << " is planted";
}

TEST_F(OpenApiTest, TheListForProgramsHasEveryRoute) {
  std::set<std::string> listed;
  const json::value printed = json::parse(RoutesAsJson());
  for (const json::value& route : printed.as_array())
    listed.insert(std::string(route.at("method").as_string()) + " " +
                  std::string(route.at("path").as_string()));
  EXPECT_EQ(listed, Routes());
}

// Each caller is shown the routes that this caller may ask.
TEST_F(OpenApiTest, TheIndexListsTheRoutes) {
  const std::string of_all = Ask("GET", "/", "").body;
  const std::string of_operators = Ask("GET", "/", "", http::Role::kOperator).body;
  const std::string counted_for_all = Ask("GET", "/metrics", "").body;
  EXPECT_THAT(of_all,
              HasSubstr("\nPOST /v1/score             Probabilities of the label, for rows\n"));
  EXPECT_THAT(of_all, testing::Not(HasSubstr("/v1/users/")));
  for (const std::string& route : Routes()) {
    const size_t space = route.find(' ');
    const std::string path = route.substr(space + 1);
    const std::string line = fmt::format("\n{:<4} {} ", route.substr(0, space), path);
    EXPECT_THAT(of_operators, HasSubstr(line));
    EXPECT_EQ(of_all.find(line) != of_all.npos,
              counted_for_all.find(fmt::format("path=\"{}\"", path)) != of_all.npos)
        << route;
  }
}

TEST_F(OpenApiTest, TheServerIsAsTheDocumentSays) {
  EXPECT_THAT(Compare(Document()), IsEmpty());
  EXPECT_GE(Routes().size(), 26u);
  EXPECT_GE(sent_, 30u);
}

// The roles that an operation's `security` lists; nothing if no token is asked for.
std::optional<std::set<std::string>> RolesOf(const json::value& document,
                                             const json::object& operation) {
  const json::value* const own = operation.if_contains("security");
  const json::array& listed = (own != nullptr ? *own : document.at("security")).as_array();
  if (listed.empty()) return std::nullopt;
  std::set<std::string> roles;
  for (const json::value& role : listed[0].at("bearer").as_array())
    roles.emplace(std::string_view(role.as_string()));
  return roles;
}

std::vector<std::string> OpenApiTest::CompareRoles(const json::value& document) {
  test::TempDir dir;
  std::string callers;
  const std::array<std::string, 3> roles = {"query", "user", "operator"};
  for (const std::string& role : roles)
    callers += http::CallerLine(role, role, http::DigestOfToken("of-" + role),
                                role == "user" ? "anna@x" : "") +
               "\n";
  test::WriteFile(dir / "callers", callers);
  EXPECT_EQ(::chmod((dir / "callers").c_str(), 0600), 0);
  http::ServerOptions options;
  options.listeners = {{"127.0.0.1:0", http::Role::kPublic},
                       {"127.0.0.1:0", http::Role::kOperator}};
  options.callers = *http::Callers::Open(dir / "callers", {0, 0, 0});
  metrics::Registry registry;
  Services services = MakeServices();
  services.metrics = &registry;
  const auto server = *http::Server::Start(options, MakeApi(std::move(services)), registry);

  std::vector<std::string> wrong;
  for (const auto& [path, item] : document.at("paths").as_object()) {
    for (const auto& [key, operation] : item.as_object()) {
      if (key == "parameters") continue;
      std::string method(key), target(path);
      std::ranges::transform(method, method.begin(), [](char c) { return std::toupper(c); });
      for (const auto& [part, text] : std::map<std::string, std::string>{
               {"{id}", "anna%40x"}, {"{name}", "ctr"}, {"{version}", "6"}})
        if (const size_t at = target.find(part); at != target.npos)
          target.replace(at, part.size(), text);
      const auto wanted = RolesOf(document, operation.as_object());
      const auto is_let_in = [&](const std::string& token) {
        http::FieldList fields;
        if (!token.empty()) fields = {{"Authorization", "Bearer " + token}};
        const http::Response response =
            *http::Fetch("http://" + server->addresses()[1] + target, method,
                         method == "POST" ? "{}" : "", test::kPatience, fields);
        return response.Header("WWW-Authenticate").empty();
      };
      if (is_let_in("") != !wanted)
        wrong.push_back(fmt::format("{} {} without a token", method, target));
      for (const std::string& role : roles)
        if (is_let_in("of-" + role) != (!wanted || wanted->contains(role)))
          wrong.push_back(fmt::format("{} {} of role {}", method, target, role));
    }
  }
  return wrong;
}

TEST_F(OpenApiTest, RolesAreAsTheDocumentSays) {
  EXPECT_THAT(CompareRoles(Document()), IsEmpty());
  json::value document = Document();
  document.at("paths").at("/v1/score").at("post").as_object()["security"] = json::array();
  document.at("paths").at("/v1/users/{id}").at("get").as_object().erase("security");
  EXPECT_THAT(CompareRoles(document),
              testing::UnorderedElementsAre(
                  "POST /v1/score without a token", "POST /v1/score of role user",
                  "GET /v1/users/anna%40x of role query", "GET /v1/users/anna%40x of role user"));
}

// docs/internals/serve.md lists the routes that need no token. The document has the same, and the
// server is as the document says.
TEST_F(OpenApiTest, ThePageListsTheRoutesWithoutAToken) {
  const std::string page =
      test::ReadFile(std::string(TACIT_SOURCE_DIR) + "/docs/internals/serve.md");
  const size_t begin = page.find("These need no token:"), end = page.find('.', begin);
  ASSERT_NE(begin, page.npos);
  std::set<std::string> listed, open;
  const std::string sentence = page.substr(begin, end - begin);
  const std::regex quoted("`([^`]*)`");
  for (std::sregex_iterator i(sentence.begin(), sentence.end(), quoted), none; i != none; ++i)
    listed.insert((*i)[1]);
  const json::value document = Document();
  for (const auto& [path, item] : document.at("paths").as_object())
    for (const auto& [key, operation] : item.as_object())
      if (key != "parameters" && !RolesOf(document, operation.as_object())) open.emplace(path);
  EXPECT_EQ(listed, open);
}

// Packed answers have nothing that a caller chose: neither what he sends nor who he is. Otherwise
// the length of an answer would tell whether a guess is in it.
TEST_F(OpenApiTest, PackedAnswersHoldNothingOfTheirCaller) {
  const std::string guess = "kept-by-nobody-else";
  const auto ask = [&](std::string_view path, http::Role role, const char* encoding) {
    const bool is_index = path == "/v2/repository/index";
    const auto response =
        http::Fetch("http://" + server_->addresses()[role == http::Role::kOperator ? 1 : 0] +
                        std::string(path) + "?" + guess + "=" + guess,
                    is_index ? "POST" : "GET", is_index ? "{}" : "", test::kPatience,
                    {{"Accept-Encoding", encoding},
                     {"X-Request-Id", guess},
                     {"User-Agent", guess},
                     {"Authorization", "Bearer " + guess}});
    EXPECT_TRUE(response.has_value());
    return response ? *response : http::Response{};
  };
  size_t packed = 0;
  for (const char* path : {"/", "/metrics", "/v1/quality", "/v1/privacy", "/v2", "/v2/",
                           "/v2/models/ctr", "/v2/models/ctr/versions/6", "/v2/repository/index"}) {
    const http::Response plain = ask(path, http::Role::kPublic, "identity"),
                         other = ask(path, http::Role::kPublic, "gzip");
    EXPECT_EQ(plain.status, 200u) << path << plain.body;
    EXPECT_EQ(plain.body.find(guess), std::string::npos) << path;
    const bool is_packed = other.Header("Content-Encoding") == "gzip";
    EXPECT_EQ(is_packed, plain.body.size() >= 1024) << path;
    packed += is_packed ? 1 : 0;
    if (!is_packed || path == std::string_view("/metrics")) continue;
    http::BodyBuffer unpacked;
    EXPECT_EQ(http::Unpack(
                  other.body, 1 << 20, [](uint64_t) { return true; }, &unpacked),
              http::Unpacked::kWhole);
    EXPECT_EQ(unpacked.view(), plain.body) << path;
  }
  EXPECT_GE(packed, 2u);
  EXPECT_EQ(ask("/metrics", http::Role::kOperator, "gzip").Header("Content-Encoding"), "");
  EXPECT_EQ(ask("/v1/ledger", http::Role::kOperator, "gzip").Header("Content-Encoding"), "");
}

// A caller at the wrong route is told which kind the learner is, and which route is the right one.
TEST_F(OpenApiTest, ALearnerOfAnotherKindIsNamedWithItsKind) {
  const auto refusal = [&](const std::string& method, const std::string& path,
                           std::string_view body, http::Role role = http::Role::kPublic) {
    const http::Response response = Ask(method, path, body, role);
    EXPECT_EQ(response.status, 404u) << path;
    return std::string(json::parse(response.body).at("error").at("message").as_string());
  };
  const std::string next = "'next' is a next-item model (transitions)";
  EXPECT_EQ(refusal("POST", "/v1/score", R"({"learner":"next","rows":[]})"),
            next + "; ask /v1/recommend");
  EXPECT_EQ(refusal("POST", "/v1/score", R"({"rows":[{}],"learner":"next"})"),
            next + "; ask /v1/recommend");
  EXPECT_EQ(refusal("POST", "/v1/score/lines?learner=next", "{}"), next + "; ask /v1/recommend");
  EXPECT_EQ(refusal("POST", "/v1/lookup", R"({"learner":"next","rows":[]})"),
            next + "; ask /v1/recommend");
  EXPECT_EQ(refusal("GET", "/v1/weights?learner=next", "", http::Role::kOperator),
            next + ", which has no weights of values: ask /v1/recommend");
  EXPECT_EQ(refusal("POST", "/v1/recommend", R"({"learner":"ctr","sequence":[]})"),
            "'ctr' is a click model (pctr); ask /v1/score");
  EXPECT_EQ(refusal("POST", "/v1/recommend", R"({"sequence":[],"learner":"linear"})"),
            "'linear' is a click model (linear); ask /v1/score");
  EXPECT_THAT(refusal("POST", "/v1/score", R"({"learner":"nex","rows":[]})"),
              HasSubstr("unknown learner 'nex'"));
}

// Faults planted in the document are seen, as those of the server would be.
TEST_F(OpenApiTest, DifferencesAreSeen) {
  const auto change = [&](const auto& plant) {
    json::value document = Document();
    plant(document);
    return Compare(document);
  };
  EXPECT_THAT(change([](json::value& d) { d.at("paths").as_object().erase("/v1/privacy"); }),
              testing::ElementsAre("not in the document: GET /v1/privacy"));
  EXPECT_THAT(change([](json::value& d) {
                d.at("paths").as_object()["/v1/nothing"] = d.at("paths").at("/healthz");
              }),
              testing::ElementsAre("the server has no GET /v1/nothing"));
  EXPECT_THAT(change([](json::value& d) {
                d.at("paths").at("/v1/score").at("post").as_object()["x-tacit-gzip"] = true;
                d.at("paths").at("/v1/privacy").at("get").as_object().erase("x-tacit-gzip");
              }),
              testing::UnorderedElementsAre("POST /v1/score never comes packed",
                                            "POST /v1/score never comes packed",
                                            "GET /v1/privacy may come packed"));
  EXPECT_THAT(change([](json::value& d) {
                d.at("paths").at("/v1/weights").at("get").as_object().erase("x-tacit-listener");
              }),
              Contains(HasSubstr("GET /v1/weights")));
  const auto schema_of = [](json::value& d, const char* name) -> json::value& {
    return d.at("components").at("schemas").at(name).at("properties");
  };
  EXPECT_THAT(
      change([&](json::value& d) {
        schema_of(d, "Scores").at("scores").at("items").at("type") = "string";
      }),
      Contains(HasSubstr("POST /v1/score columns: $.scores[0]: is not of type \"string\"")));
  EXPECT_THAT(change([&](json::value& d) { schema_of(d, "Model").as_object().erase("version"); }),
              Contains(HasSubstr("$.model.version is not in the schema")));
  EXPECT_THAT(change([&](json::value& d) {
                schema_of(d, "Model").at("version").as_object()["minimun"] = 1;
              }),
              Contains(HasSubstr("unknown keyword minimun")));
  EXPECT_THAT(change([&](json::value& d) {
                d.at("components")
                    .at("responses")
                    .at("ServerMetadata")
                    .at("content")
                    .as_object()
                    .erase("application/json");
              }),
              Contains(HasSubstr("content type application/json is not stated")));
}

}  // namespace
}  // namespace tacit::serve
