// The operator's words of a statement are any texts that YAML can hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "sample.h"

namespace tacit::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Config> ParseAbout(const std::string& about) {
  return Parse(std::string(kSample) + "about:\n" + about, "c.yaml", {});
}

TEST(AboutConfig, IsReadAndDumped) {
  const auto config = ParseAbout(
      "  name: Clicks\n"
      "  curators: [A, B]\n"
      "  description: |\n    Two lines:\n    \"quoted\" \\ é\n"
      "  sector: Finance\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->about.name, "Clicks");
  EXPECT_THAT(config->about.curators, ElementsAre("A", "B"));
  EXPECT_EQ(config->about.description, "Two lines:\n\"quoted\" \\ é\n");
  EXPECT_EQ(config->about.sector, "Finance");
  EXPECT_EQ(config->about.region, "");
  const auto again = Parse(Dump(*config), "again.yaml", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->about.description, config->about.description);
  EXPECT_EQ(Dump(*again), Dump(*config));
}

// Workers compare what their sums follow from, and need not have the same words.
TEST(AboutConfig, ChangesNothingThatIsLearnt) {
  const auto with = ParseAbout("  name: Clicks\n  retention: a year\n");
  const auto without = Parse(kSample, "c.yaml", {});
  ASSERT_TRUE(with && without);
  EXPECT_EQ(DumpSumming(*with), DumpSumming(*without));
  EXPECT_EQ(DumpReading(*with), DumpReading(*without));
}

TEST(AboutConfig, IsRefusedByName) {
  const struct {
    std::string about, why;
  } cases[] = {
      {"  sector: Retail\n", "c.yaml:26: about.sector: must be one of none, Technology"},
      {"  title: x\n", "c.yaml:26: about.title: unknown key"},
      {"  name: \"a\\x07b\"\n", "c.yaml:26: about.name: holds a control character"},
      {"  region: \"a\\tb\"\n", "c.yaml:26: about.region: holds a control character"},
      {"  contact: \"\\x85\"\n", "c.yaml:26: about.contact: holds a control character"},
      {"  curators: [A, \"\\uffff\"]\n", "c.yaml:26: about.curators: holds a control character"},
      {"  retention: \"\xff\"\n", "c.yaml:26: about.retention: holds a control character"},
      {"  curators: []\n", "c.yaml:26: about.curators: must be a list of texts"},
  };
  for (const auto& one : cases) {
    const auto config = ParseAbout(one.about);
    ASSERT_FALSE(config) << one.why;
    EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(config.error().message, HasSubstr(one.why));
  }
}

}  // namespace
}  // namespace tacit::config
