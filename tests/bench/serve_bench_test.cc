// `tacit bench serve` says what its readers need: for each question a rate, the bare server's
// beside it, and latencies, with and without training. No figure of time is held to anything.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <string>

#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;

TEST(ServeBenchTest, EachQuestionHasItsRowBesideTheLimit) {
  const test::Ended ended =
      test::Run({TACIT, "bench", "serve", "--quick", "--json"}, {}, std::chrono::seconds(280));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  std::set<std::string> names;
  const json::value output = json::parse(ended.out);
  for (const json::value& value : output.at("rows").as_array()) {
    const json::object& row = value.as_object();
    const std::string name(row.at("name").as_string());
    SCOPED_TRACE(name);
    EXPECT_TRUE(names.insert(name).second);
    if (name == "serve-operator-under-attack") {
      EXPECT_EQ(row.at("hostile_connections").to_number<int>(), 1000);
      EXPECT_GT(row.at("requests").to_number<int>(), 0);
      EXPECT_EQ(row.at("limit").to_number<double>(), 50);
      continue;
    }
    if (name == "serve-user-unknown") {
      EXPECT_GT(row.at("requests_of_known").to_number<int>(), 0);
      EXPECT_GT(row.at("ratio").to_number<double>(), 0);
      continue;
    }
    if (row.contains("compares")) {
      EXPECT_GT(row.at("value").to_number<double>(), 0);
      EXPECT_GT(row.at("limit").to_number<double>(), 1);
      continue;
    }
    for (const char* key : {"value", "limit", "share", "p50_us", "p99_us", "connections"})
      EXPECT_GT(row.at(key).to_number<double>(), 0) << key;
    EXPECT_LE(row.at("p50_us").to_number<double>(), row.at("p99_us").to_number<double>());
    EXPECT_EQ(row.at("training").as_bool(), name.ends_with("-training"));
    EXPECT_EQ(row.at("cpu_us").is_null(), row.at("training").as_bool());
  }
  EXPECT_TRUE(names.contains("serve-operator-under-attack"));
  EXPECT_TRUE(names.contains("serve-user-unknown"));
  for (const std::string question :
       {"health", "score-1", "score-32", "lookup-64", "recommend", "infer-json", "infer-binary"}) {
    for (const std::string training : {"", "-training"})
      EXPECT_TRUE(names.contains("serve-" + question + training)) << question + training;
    EXPECT_TRUE(names.contains("serve-tail-" + question + "-training")) << question;
  }
  for (const char* compared :
       {"serve-tail-score-32", "serve-tail-lookup-64", "serve-infer-binary-over-json",
        "serve-paced-score-1-training", "serve-paced-score-1-spinning"})
    EXPECT_TRUE(names.contains(compared)) << compared;
}

}  // namespace
}  // namespace tacit
