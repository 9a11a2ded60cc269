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

TEST(Reference, ABoundOfBytesThatNoMachineMeetsIsNotListed) {
  size_t found = 0;
  for (const Row& row : RowsOf(Config())) {
    if (row.path == "memory.total_bytes") {
      EXPECT_EQ(row.least, "64MiB");
      EXPECT_EQ(row.most, "");
      ++found;
    }
    if (row.path == "dead_letters.max_bytes") {
      EXPECT_EQ(row.most, "1024GiB");
      ++found;
    }
  }
  EXPECT_EQ(found, 2u);
}

// The list for programs is JSON, which is YAML too.
TEST(Reference, TheListHasEveryKey) {
  const auto list = ParseYaml("list: " + JsonReference(), "list");
  ASSERT_TRUE(list) << list.error().message;
  const auto rows = list->children.at(0).children;
  const auto text = [](const Tree& row, const char* name) {
    const Tree* const found = row.Find(name);
    return found == nullptr ? std::string() : found->text;
  };
  std::vector<std::string> keys;
  for (const Tree& row : rows) {
    if (row.Find("environment") != nullptr) keys.push_back(text(row, "environment"));
    if (text(row, "key") != "source.round_ms") continue;
    EXPECT_EQ(text(row, "type"), "integer");
    EXPECT_EQ(text(row, "default"), "250");
    EXPECT_EQ(text(row, "min"), "10");
    EXPECT_EQ(text(row, "max"), "60000");
    EXPECT_EQ(text(row, "unit"), "ms");
    EXPECT_EQ(text(row, "reload"), "false");
  }
  std::vector<std::string> expected;
  for (const std::string& pattern : KeyPatterns()) expected.push_back(EnvironmentName(pattern));
  EXPECT_EQ(keys, expected);
}

}  // namespace
}  // namespace tacit::config
