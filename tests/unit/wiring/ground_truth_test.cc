#include "wiring/plans/ground_truth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/process.h"

namespace tacit::wiring {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// A run that has ended does not fail for the want of a figure beside its own.
TEST(GroundTruthTest, AFolderOrAPipeInItsPlaceSaysNothing) {
  const test::TempDir dir;
  const std::string folder = dir / "folder", pipe = dir / "pipe", good = dir / "good";
  std::filesystem::create_directories(folder + "/" + kGroundTruthFile);
  for (const std::string& log : {pipe, good}) std::filesystem::create_directories(log);
  ASSERT_EQ(mkfifo((pipe + "/" + kGroundTruthFile).c_str(), 0600), 0);
  test::WriteFile(good + "/" + kGroundTruthFile, R"({"best_auc":{"day-1":0.75}})");
  EXPECT_THAT(ReadBestAuc({folder + "/day-1.tsv", pipe + "/day-1.tsv"}), IsEmpty());
  EXPECT_THAT(ReadBestAuc({folder + "/day-1.tsv", good + "/day-1.tsv"}),
              ElementsAre(Pair("day-1", .75)));
}

}  // namespace
}  // namespace tacit::wiring
