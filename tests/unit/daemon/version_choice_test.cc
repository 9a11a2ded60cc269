#include "daemon/version_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/temp_dir.h"

namespace tacit::daemon {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(VersionChoiceTest, ComesBackAsItWasWritten) {
  const test::TempDir dir;
  const std::string path = dir / "choice.json";
  ASSERT_TRUE(ReadChoice(path));
  EXPECT_FALSE(*ReadChoice(path)) << "there is none yet";
  const VersionChoice choice{
      .lineage = "abc", .serving = 7, .canary = serve::Canary{.version = 9, .share = .25}};
  ASSERT_TRUE(WriteChoice(path, choice));
  const auto read = ReadChoice(path);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->lineage, "abc");
  EXPECT_EQ((*read)->serving, 7u);
  ASSERT_TRUE((*read)->canary);
  EXPECT_EQ((*read)->canary->version, 9u);
}

TEST(VersionChoiceTest, AFolderOrAPipeInItsPlaceIsRefused) {
  const test::TempDir dir;
  const std::string folder = dir / "folder", pipe = dir / "pipe";
  std::filesystem::create_directories(folder);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {folder, pipe}) {
    const auto read = ReadChoice(path);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(read.error().message,
                AllOf(HasSubstr("serve.versions.file"), HasSubstr(path), HasSubstr("remove it")));
  }
}

}  // namespace
}  // namespace tacit::daemon
