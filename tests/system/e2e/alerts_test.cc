// config/alerts.yaml: promtool accepts the rules, and each alert fires on the case that it is about
// and not on that case's twin (alerts.test.yaml).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <regex>
#include <set>

#include "watched_shop.h"

namespace tacit {
namespace {

using test::Ended;
using test::TempDir;
using testing::HasSubstr;

const std::string kRules = std::string(TACIT_SOURCE_DIR) + "/config/alerts.yaml";
const std::string kCases = std::string(TACIT_SOURCE_DIR) + "/tests/system/e2e/alerts.test.yaml";

class AlertsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string missing;
    folder_ = watch::PrometheusFolder(&missing);
    if (folder_.empty()) GTEST_SKIP() << missing;
  }
  // Runs the cases, or some of them, on rules.
  Ended TestRules(const YAML::Node& rules, const YAML::Node& cases) {
    YAML::Node of_copy = YAML::Clone(cases);
    of_copy["rule_files"] = std::vector<std::string>{"alerts.yaml"};
    test::WriteFile(dir_ / "alerts.yaml", YAML::Dump(rules));
    test::WriteFile(dir_ / "cases.yaml", YAML::Dump(of_copy));
    return test::Run({folder_ + "/promtool", "test", "rules", dir_ / "cases.yaml"});
  }
  TempDir dir_;
  std::string folder_;
};

// The cases of one alert.
YAML::Node CasesOf(const YAML::Node& cases, const std::string& alert) {
  YAML::Node own = YAML::Clone(cases);
  own["tests"] = YAML::Node(YAML::NodeType::Sequence);
  for (const YAML::Node& one : cases["tests"])
    if (one["alert_rule_test"][0]["alertname"].as<std::string>() == alert)
      own["tests"].push_back(YAML::Clone(one));
  return own;
}

TEST_F(AlertsTest, EachFiresOnItsCaseAndNotOnTheTwin) {
  const Ended checked = test::Run({folder_ + "/promtool", "check", "rules", kRules});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  const Ended tested = test::Run({folder_ + "/promtool", "test", "rules", kCases});
  EXPECT_EQ(tested.exit_code, 0) << tested.out << tested.err;
  // A case has a twin for each of its series, and expects the alert of one of them.
  const YAML::Node cases = YAML::LoadFile(kCases);
  for (const YAML::Node& one : cases["tests"]) {
    std::set<std::string> bad, good;
    for (const YAML::Node& input : one["input_series"]) {
      const auto series = input["series"].as<std::string>();
      const bool is_good = series.find("instance=\"good\"") != std::string::npos;
      (is_good ? good : bad)
          .insert(std::regex_replace(series, std::regex("instance=\"\\w+\""), ""));
    }
    EXPECT_EQ(bad, good);
    EXPECT_EQ(one["alert_rule_test"][0]["exp_alerts"].size(), 1u);
    EXPECT_EQ(
        one["alert_rule_test"][0]["exp_alerts"][0]["exp_labels"]["instance"].as<std::string>(),
        "bad");
  }
}

// Planted in each alert: its comparison the other way round, and a name misspelt.
TEST_F(AlertsTest, WhatIsWrongWithAnAlertIsSeenByItsCases) {
  const YAML::Node rules = YAML::LoadFile(kRules), cases = YAML::LoadFile(kCases);
  const auto right = rules["groups"][0]["rules"];
  for (size_t i = 0; i < right.size(); ++i) {
    const auto alert = right[i]["alert"].as<std::string>();
    const auto expr = right[i]["expr"].as<std::string>();
    const YAML::Node own = CasesOf(cases, alert);
    ASSERT_GT(own["tests"].size(), 0u) << alert << " has no case";
    static const std::regex kLess(" < "), kMore(" > "), kOne(" == 1"), kNone(" == 0");
    const auto turned = [&] {
      if (expr.find(" < ") != std::string::npos) return std::regex_replace(expr, kLess, " > ");
      if (expr.find(" > ") != std::string::npos) return std::regex_replace(expr, kMore, " < ");
      if (expr.find(" == 1") != std::string::npos) return std::regex_replace(expr, kOne, " == 0");
      return std::regex_replace(expr, kNone, " == 1");
    }();
    const auto misspelt =
        std::regex_replace(expr, std::regex(R"(\b(up|(?:tacit|process)_\w+))"), "$1_x");
    for (const std::string& wrong : {turned, misspelt}) {
      ASSERT_NE(wrong, expr);
      YAML::Node planted = YAML::Clone(rules);
      planted["groups"][0]["rules"][i]["expr"] = wrong;
      EXPECT_NE(TestRules(planted, own).exit_code, 0) << alert << ": " << wrong;
    }
    const Ended unchanged = TestRules(rules, own);
    EXPECT_EQ(unchanged.exit_code, 0) << alert << unchanged.out << unchanged.err;
  }
}

}  // namespace
}  // namespace tacit
