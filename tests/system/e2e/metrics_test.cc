// The metrics of a running daemon: metrics/families.h has them all, promtool finds nothing
// to say, and a Prometheus that scrapes them has data for every panel and every alert.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <boost/json.hpp>
#include <regex>

#include "metrics/families.h"
#include "support/json.h"
#include "watched_shop.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using watch::WatchedShop;

std::string Config(const std::string& name) {
  return std::string(TACIT_SOURCE_DIR) + "/config/" + name;
}

TEST(MetricsTest, TheDocumentedTableIsWhatARunningDaemonExports) {
  TempDir dir;
  WatchedShop shop(dir);
  ASSERT_TRUE(shop.WaitUntilLearnt());
  const auto promised = test::DocumentedMetrics();
  const auto of_operators = test::ShapesOf(shop.Page(1)), of_all = test::ShapesOf(shop.Page(0));
  EXPECT_GT(of_operators.size(), 80u);
  EXPECT_THAT(test::Differences(promised, of_operators, of_all, true), IsEmpty());
  const json::object privacy = test::ParseJson(shop.Ask(0, "/v1/privacy"));
  EXPECT_THAT(shop.Page(0), HasSubstr(fmt::format("\ntacit_commit_version {}\n",
                                                  privacy.at("version").to_number<uint64_t>())));
  EXPECT_THAT(shop.Page(0), HasSubstr("\ntacit_ready 1\n"));
  for (const auto& [name, shape] : of_all)
    EXPECT_TRUE(of_operators.contains(name)) << "operators see all";

  // Planted: each sort of difference is seen.
  auto wrong = promised;
  wrong.erase("tacit_ready");
  wrong["tacit_auc"].shape.type = "counter";
  wrong["tacit_calibration"].is_public = true;
  wrong["tacit_degraded"].shape.help = "Another";
  wrong["tacit_disk_free_bytes"].shape.labels = {"path"};
  wrong["tacit_dreams_total"].shape.type = "counter";
  EXPECT_THAT(
      test::Differences(wrong, of_operators, of_all, true),
      ElementsAre("tacit_auc is a gauge, in the table a counter",
                  "tacit_calibration is shown to others than the table says",
                  "tacit_degraded has the help 'Whether something is wrong that /readyz tells "
                  "operators of', in the table 'Another'",
                  "tacit_disk_free_bytes has other labels", "tacit_ready is not in the table",
                  "tacit_dreams_total is in the table, and not exported"));
}

TEST(MetricsTest, AServerOfACheckpointHasNoMetricBesideTheTable) {
  TempDir dir;
  {
    WatchedShop shop(dir);
    ASSERT_TRUE(shop.WaitUntilLearnt());
    shop.process().Signal(SIGTERM);
    ASSERT_TRUE(shop.process().Wait());
  }
  const std::string url = "unix:" + (dir / "operators");
  test::Process server({TACITD, "--config", dir / "shop.yaml", "--set",
                        "serve.operator_listen=" + url, "--set", "serve.listen=", "--serve-only",
                        "--checkpoint", dir / "store"});
  std::string page;
  ASSERT_TRUE(test::Eventually("it answers", [&] {
    const auto answer = http::Fetch(url + ":/metrics", "GET", "", test::kPatience);
    page = answer ? answer->body : "";
    return !page.empty();
  })) << server.Err();
  const auto shapes = test::ShapesOf(page);
  test::MetricShapes of_all;
  for (const auto& [name, row] : test::DocumentedMetrics())
    if (row.is_public) of_all[name] = {};
  EXPECT_THAT(test::Differences(test::DocumentedMetrics(), shapes, of_all, false), IsEmpty());
  for (const char* name : {"tacit_build_info", "tacit_canary_share", "tacit_serving_version",
                           "tacit_version_answers_total"})
    EXPECT_TRUE(shapes.contains(name)) << name;
  EXPECT_THAT(page, testing::Not(HasSubstr("tacit_last_commit_timestamp_seconds 0\n")))
      << "the ledger has the time";
}

class PromtoolTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string missing;
    folder_ = watch::PrometheusFolder(&missing);
    if (folder_.empty()) GTEST_SKIP() << missing;
  }
  Ended CheckMetrics(const std::string& page) {
    test::WriteFile(dir_ / "page", page);
    return test::Run({"/bin/sh", "-c",
                      fmt::format("exec {}/promtool check metrics < {}", folder_, dir_ / "page")});
  }
  TempDir dir_;
  std::string folder_;
};

TEST_F(PromtoolTest, FindsNothingToSayAboutARunningDaemon) {
  WatchedShop shop(dir_);
  ASSERT_TRUE(shop.WaitUntilLearnt());
  for (const size_t listener : {0, 1}) {
    const Ended checked = CheckMetrics(shop.Page(listener));
    EXPECT_EQ(checked.exit_code, 0);
    EXPECT_EQ(checked.out + checked.err, "");
  }
  const std::string page = shop.Page(1);
  for (const auto& [right, wrong] : std::vector<std::pair<std::string, std::string>>{
           {"tacit_records_read_total", "tacit_records_read"},
           {"tacit_commit_seconds", "tacit_commit_milliseconds"},
           {"tacit_ready 1", "tacit_ready one"}}) {
    const Ended checked = CheckMetrics(std::regex_replace(page, std::regex(right), wrong));
    EXPECT_NE(checked.exit_code, 0) << wrong << " is planted";
  }
}

// A Prometheus of a test's own, which scrapes one daemon. An answer that takes longer than the
// interval is none.
class Prometheus {
 public:
  Prometheus(const std::string& folder, const TempDir& dir, const std::string& target) {
    test::WriteFile(dir / "prometheus.yml",
                    fmt::format("global: {{scrape_interval: 2s, evaluation_interval: 2s}}\n"
                                "rule_files: [\"{}\"]\n"
                                "scrape_configs:\n"
                                "  - job_name: tacit\n"
                                "    static_configs: [{{targets: [\"{}\"]}}]\n",
                                Config("alerts.yaml"), target));
    process_ = std::make_unique<test::Process>(std::vector<std::string>{
        folder + "/prometheus", "--config.file=" + (dir / "prometheus.yml"),
        "--storage.tsdb.path=" + (dir / "tsdb"), "--web.listen-address=127.0.0.1:0",
        "--log.level=info"});
  }

  testing::AssertionResult WaitForScrapes(int scrapes) {
    return test::Eventually("it has scraped",
                            [&] {
                              if (address_.empty()) {
                                static const std::regex kAddress(
                                    R"(Listening on" address=(127\.0\.0\.1:[1-9]\d*))");
                                const std::string said = process_->Err();
                                std::smatch found;
                                if (!std::regex_search(said, found, kAddress)) return false;
                                address_ = found[1];
                              }
                              return Size(fmt::format("sum_over_time(up[1m]) >= {}", scrapes)) > 0;
                            })
           << process_->Err();
  }
  json::object Get(const std::string& path) const {
    const auto answer = http::Fetch("http://" + address_ + path, "GET", "", test::kPatience);
    // It answers 503 while it starts, and 400 with a reason to what it cannot evaluate.
    const bool answered = answer && answer->status != 503;
    return answered ? test::ParseJson(answer->body) : json::object{};
  }
  // The number of series that an expression returns now; -1 and a failure: it cannot be asked.
  int Size(const std::string& expression) const {
    std::string query;
    for (const unsigned char c : expression)
      query +=
          std::isalnum(c) != 0 ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
    const json::object answer = Get("/api/v1/query?query=" + query);
    if (answer.empty()) return 0;
    if (answer.at("status") != "success") {
      ADD_FAILURE() << expression << ": " << answer;
      return -1;
    }
    return static_cast<int>(answer.at("data").at("result").as_array().size());
  }

 private:
  std::unique_ptr<test::Process> process_;
  std::string address_;
};

// The expressions of all panels, by what they are of.
std::vector<std::pair<std::string, std::string>> PanelExpressions() {
  std::vector<std::pair<std::string, std::string>> expressions;
  const json::object board = test::ParseJson(test::ReadFile(Config("grafana.json")));
  for (const json::value& panel : board.at("panels").as_array()) {
    if (panel.at("type") == "row") continue;
    for (const json::value& target : panel.at("targets").as_array()) {
      std::string expression(target.at("expr").as_string());
      expression = std::regex_replace(expression, std::regex(R"(\$instance)"), ".*");
      expression = std::regex_replace(expression, std::regex(R"(\$__rate_interval)"), "1m");
      expressions.emplace_back(std::string(panel.at("title").as_string()), expression);
    }
  }
  return expressions;
}

// The expressions of all alerts, with 0 or 1 for what each comparison says: a healthy daemon has
// data for all of them.
std::vector<std::pair<std::string, std::string>> AlertExpressions() {
  std::vector<std::pair<std::string, std::string>> expressions;
  static const std::regex kComparison(R"( (==|!=|<=|>=|<|>) )");
  const YAML::Node alerts = YAML::LoadFile(Config("alerts.yaml"));
  for (const YAML::Node& rule : alerts["groups"][0]["rules"])
    expressions.emplace_back(
        rule["alert"].as<std::string>(),
        std::regex_replace(rule["expr"].as<std::string>(), kComparison, " $1 bool "));
  return expressions;
}

// Tells whether an expression asks for nothing but metrics of workers, which this run has not.
bool IsOfWorkers(const std::string& expression) {
  static const std::regex kName(R"(\b(tacit|process)_\w+)");
  const std::sregex_iterator names(expression.begin(), expression.end(), kName), end;
  return std::all_of(names, end, [](const std::smatch& name) {
    return std::ranges::any_of(metrics::kFamilies, [&](const metrics::Family& family) {
      return family.name == name.str() && family.only == metrics::kWorkers;
    });
  });
}

TEST_F(PromtoolTest, EveryPanelAndEveryAlertHasDataOfARun) {
  WatchedShop shop(dir_);
  ASSERT_TRUE(shop.WaitUntilLearnt());
  shop.Ask(0, "/v1/score", R"({"learner":"clicks","rows":[{"features":{"x":1,"c":"2"}}]})");
  Prometheus prometheus(folder_, dir_, shop.address(1));
  ASSERT_TRUE(prometheus.WaitForScrapes(3));
  const auto panels = PanelExpressions(), alerts = AlertExpressions();
  EXPECT_GT(panels.size(), 60u);
  EXPECT_GT(alerts.size(), 25u);
  // A scrape that fails leaves its series out until the next one.
  auto missing = panels;
  missing.insert(missing.end(), alerts.begin(), alerts.end());
  EXPECT_GT(std::erase_if(missing, [](const auto& one) { return IsOfWorkers(one.second); }), 6u);
  EXPECT_TRUE(test::Eventually("every expression has data", [&] {
    std::erase_if(missing, [&](const auto& one) { return prometheus.Size(one.second) > 0; });
    return missing.empty() || HasFailure();
  }));
  EXPECT_THAT(missing, IsEmpty());
  // Planted: a name that is misspelt has no data, wherever it stands.
  static const std::regex kName(R"(\b(tacit|process)_(\w+))");
  for (const auto* expressions : {&panels, &alerts})
    for (const auto& [of, expression] : *expressions) {
      if (!std::regex_search(expression, kName)) continue;
      EXPECT_EQ(prometheus.Size(std::regex_replace(expression, kName, "$1_$2_x")), 0)
          << of << ": " << expression;
    }
  // The rules are those that it evaluates, without an error.
  ASSERT_TRUE(test::Eventually("every rule was evaluated", [&] {
    const json::object rules = prometheus.Get("/api/v1/rules");
    for (const json::value& group : rules.at("data").at("groups").as_array())
      for (const json::value& rule : group.at("rules").as_array())
        if (rule.at("health") != "ok") return false;
    return true;
  }));
}

}  // namespace
}  // namespace tacit
