// The pages that `tacitd --describe config` prints. manual_test compares them with their files.
#include "config/reference.h"

#include <gtest/gtest.h>

#include "config/config.h"
#include "config/environment.h"
#include "config/lister.h"
#include "config/tree.h"

namespace tacit::config {
namespace {

TEST(Reference, EveryKeyAndSectionIsDescribedInSentences) {
  Config config;
  config.features.resize(1);
  config.learners.resize(1);
  for (const Row& row : RowsOf(config)) {
    if (row.type == Row::Type::kItem) continue;
    EXPECT_TRUE(row.says.ends_with('.')) << row.path << ": " << row.says;
  }
}

// The list for programs is JSON, which is YAML too.
TEST(Reference, TheListHasEveryKey) {
  const auto list = ParseYaml("list: " + JsonReference(), "list");
  ASSERT_TRUE(list) << list.error().message;
  const auto rows = list->children.at(0).children;
  std::vector<std::string> keys;
  for (const Tree& row : rows) {
    const Tree* const name = row.Find("key");
    ASSERT_NE(name, nullptr);
    if (row.Find("environment") != nullptr) keys.push_back(row.Find("environment")->text);
    if (name->text != "source.round_ms") continue;
    EXPECT_EQ(row.Find("type")->text, "integer");
    EXPECT_EQ(row.Find("default")->text, "250");
    EXPECT_EQ(row.Find("min")->text, "10");
    EXPECT_EQ(row.Find("max")->text, "60000");
    EXPECT_EQ(row.Find("unit")->text, "ms");
    EXPECT_EQ(row.Find("reload")->text, "false");
  }
  std::vector<std::string> expected;
  for (const std::string& pattern : KeyPatterns()) expected.push_back(EnvironmentName(pattern));
  EXPECT_EQ(keys, expected);
}

}  // namespace
}  // namespace tacit::config
