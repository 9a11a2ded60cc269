// The key of workers, from the file that `tacit workers key` makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "support/process.h"
#include "support/temp_dir.h"
#include "wiring/plans/workers.h"

namespace tacit::cli {
namespace {

using ::testing::HasSubstr;

class WorkersKey : public ::testing::Test {
 protected:
  std::string Why() const {
    const auto key = wiring::ReadWorkersKey(config_);
    return key ? "" : key.error().message;
  }
  void Write(const std::string& text) const { std::ofstream(config_.key_file) << text; }

  test::TempDir dir_;
  const config::Workers config_{.topic = "sum", .key_file = dir_.path() + "/workers.key"};
};

TEST_F(WorkersKey, IsMadeOnceAndReadBack) {
  const std::vector<std::string> make = {TACIT, "workers", "key", config_.key_file};
  EXPECT_EQ(test::Run(make).exit_code, 0);
  struct stat info {};
  ASSERT_EQ(::stat(config_.key_file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  const auto key = wiring::ReadWorkersKey(config_);
  ASSERT_TRUE(key) << key.error().message;
  const test::Ended again = test::Run(make);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("File exists"));
  EXPECT_EQ(wiring::ReadWorkersKey(config_).value(), *key);
  config::Workers others = config_;
  others.topic = "other";
  EXPECT_NE(wiring::ReadWorkersKey(others).value(), *key);
}

TEST_F(WorkersKey, IsRefusedWithItsPlaceAndWithoutItsText) {
  EXPECT_THAT(Why(), HasSubstr("workers.key_file: " + config_.key_file + ": No such file"));
  Write(std::string(63, 'a'));
  ::chmod(config_.key_file.c_str(), 0600);
  EXPECT_THAT(Why(), HasSubstr("workers.key_file: " + config_.key_file + ": is no key of workers"));
  EXPECT_THAT(Why(), ::testing::Not(HasSubstr("aaaa")));
  Write(std::string(64, 'a'));
  EXPECT_EQ(Why(), "");
  ::chmod(config_.key_file.c_str(), 0644);
  EXPECT_THAT(Why(), HasSubstr("has mode 0644"));
}

}  // namespace
}  // namespace tacit::cli
