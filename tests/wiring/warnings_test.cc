#include <gmock/gmock.h>

#include "config/sample.h"
#include "wiring/assembly.h"
#include "wiring/plan_text.h"

namespace tacit::wiring {
namespace {

std::vector<std::string> WarningsOf(const std::vector<std::string>& overrides) {
  const auto config = config::Parse(config::kSample, "c.yaml", overrides);
  EXPECT_TRUE(config) << config.error().message;
  if (!config) return {};
  const auto assembly = Assemble(*config);
  EXPECT_TRUE(assembly) << assembly.error().message;
  return assembly ? ConfigurationWarnings(*assembly) : std::vector<std::string>();
}

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ConfigurationWarnings, NameAKafkaSectionThatNothingUses) {
  const auto unused = HasSubstr("kafka: is written, and nothing uses it");
  EXPECT_THAT(WarningsOf({}), Not(Contains(unused)));
  EXPECT_THAT(WarningsOf({"kafka.bootstrap.servers=broker:9092"}), Contains(unused));
  EXPECT_THAT(WarningsOf({"source.kind=kafka", "source.topic=clicks",
                          "kafka.bootstrap.servers=broker:9092"}),
              Not(Contains(unused)));
}

}  // namespace
}  // namespace tacit::wiring
