#include "metrics/families.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "support/process.h"

namespace tacit::metrics {
namespace {

const std::string kSource = TACIT_SOURCE_DIR;

TEST(FamiliesTest, TheListForProgramsHasEveryMetric) {
  const boost::json::value printed = boost::json::parse(MetricsAsJson());
  const boost::json::array& list = printed.as_array();
  ASSERT_EQ(list.size(), std::size(kFamilies));
  for (size_t i = 0; i < list.size(); ++i)
    EXPECT_EQ(std::string_view(list[i].at("name").as_string()), kFamilies[i].name);
  EXPECT_EQ(list[0], boost::json::parse(R"({"name":"process_cpu_seconds_total","type":"counter",
      "for":"operators","labels":"","only":"",
      "what":"Processor time of all threads, in user and system mode"})"));
}

// Some daemons alone register a metric, and no test runs them all.
TEST(FamiliesTest, EveryMetricIsRegisteredSomewhere) {
  std::string sources;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kSource + "/src")) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file() && name != "families.h") sources += test::ReadFile(entry.path());
  }
  const auto is_registered = [&](std::string_view name) {
    return sources.find('"' + std::string(name) + '"') != sources.npos;
  };
  for (const Family& family : kFamilies) EXPECT_TRUE(is_registered(family.name)) << family.name;
  EXPECT_FALSE(is_registered("tacit_dreams_total"));
}

}  // namespace
}  // namespace tacit::metrics
