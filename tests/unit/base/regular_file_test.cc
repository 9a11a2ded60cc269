#include "base/files/regular_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "errno_new.h"
#include "support/temp_dir.h"

namespace tacit {
namespace {

TEST(RegularFileTest, IsReadWhole) {
  const test::TempDir dir;
  const std::string path = dir / "file";
  std::string bytes;
  for (size_t i = 0; i < 200'000; ++i) bytes += static_cast<char>(i * 7);
  for (const std::string& text : {std::string(), bytes}) {
    std::ofstream(path, std::ios::binary) << text;
    const auto read = ReadRegularFile(path);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, text);
  }
}

// Nothing is thrown, and nobody waits for somebody who writes to a pipe.
TEST(RegularFileTest, WhatIsNoneIsNamed) {
  const test::TempDir dir;
  const auto code_of = [](const std::string& path) {
    const auto read = ReadRegularFile(path);
    EXPECT_FALSE(read);
    if (read) return ErrorCode::kInternal;
    EXPECT_THAT(read.error().message, ::testing::StartsWith(path + ": "));
    return read.error().code;
  };
  EXPECT_EQ(code_of(dir / "none"), ErrorCode::kNotFound);
  std::filesystem::create_directories(dir / "folder");
  EXPECT_EQ(code_of(dir / "folder"), ErrorCode::kInvalidArgument);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of(dir / "pipe"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of("/dev/zero"), ErrorCode::kInvalidArgument);
}

TEST(RegularFileTest, AFileThatIsNotThereIsNoFailureWhereMemoryIsShort) {
  const test::TempDir dir;
  const std::string path = dir / "a-name-that-no-message-holds-in-place";
  test::LetNewLeaveErrno(true);
  const auto opened = OpenRegularFile(path);
  test::LetNewLeaveErrno(false);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kNotFound) << opened.error().message;
}

}  // namespace
}  // namespace tacit
