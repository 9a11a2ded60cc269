// Files that options name: whole or not at all, and no more people may read them than before.
#include "console/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "support/process.h"
#include "support/temp_dir.h"

namespace tacit::console {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputFileTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    test::WriteFile(dir_ / name, text);
    return dir_ / name;
  }
  size_t FilesThere() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()));
  }

  const test::TempDir dir_;
};

// As `--output /dev/stdout` has it, where standard output is a file.
TEST_F(OutputFileTest, ALinkStaysAndItsFileIsReplaced) {
  const std::string file = Write("file", "old"), link = dir_ / "link";
  fs::create_symlink("file", link);
  ASSERT_TRUE(CheckWritable("--output", link));
  EXPECT_EQ(test::ReadFile(file), "old");
  ASSERT_TRUE(WriteFile(link, "new"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(test::ReadFile(file), "new");
  EXPECT_EQ(FilesThere(), 2u);
}

TEST_F(OutputFileTest, WhoMayReadItStaysAsItWas) {
  for (const mode_t mode : {0600, 0640, 0644}) {
    const std::string file = Write("file", "old");
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    ASSERT_TRUE(WriteFile(file, "new"));
    EXPECT_EQ(test::ReadFile(file), "new");
    EXPECT_EQ(static_cast<mode_t>(fs::status(file).permissions()), mode);
  }
}

TEST_F(OutputFileTest, ADeviceIsWrittenToAndStays) {
  ASSERT_TRUE(CheckWritable("--output", "/dev/null"));
  ASSERT_TRUE(WriteFile("/dev/null", "text"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const Status full = WriteFile("/dev/full", "text");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "/dev/full: cannot be written");
}

TEST_F(OutputFileTest, TheCheckLeavesNothingAndNamesTheOption) {
  ASSERT_TRUE(CheckWritable("--svg", dir_ / "new.svg"));
  ASSERT_TRUE(CheckAppendable("--results", dir_ / "new.jsonl"));
  EXPECT_EQ(FilesThere(), 0u);
  ASSERT_TRUE(CheckWritable("--svg", ""));
  for (const auto check : {CheckWritable, CheckAppendable}) {
    const Status refused = check("--svg", dir_ / "none/new.svg");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr("--svg " + (dir_ / "none/new.svg") + ":"));
    EXPECT_FALSE(check("--svg", dir_.path()));
  }
}

// The disk is full half way: files may grow to a page and no further.
TEST_F(OutputFileTest, AFileThatCannotBeWrittenWholeLeavesTheOldOne) {
  const std::string file = Write("file", "old");
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit page = {4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &page), 0);
  const Status full = WriteFile(file, std::string(10'000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kIo);
  EXPECT_THAT(full.error().message, HasSubstr(file));
  EXPECT_EQ(test::ReadFile(file), "old");
  EXPECT_EQ(FilesThere(), 1u);
}

}  // namespace
}  // namespace tacit::console
