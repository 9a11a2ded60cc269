#include "event/dead_letters.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

namespace tacit::event {
namespace {

using ::testing::HasSubstr;

class DeadLettersTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<DeadLetterSink> Open() {
    auto sink = OpenDeadLetterFile(path_);
    EXPECT_TRUE(sink) << (sink ? "" : sink.error().message);
    return sink ? std::move(*sink) : nullptr;
  }
  std::string Text() const {
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  size_t Lines() const {
    const std::string text = Text();
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  static DeadLetter Letter(int32_t partition, uint64_t offset, std::string reason = "bad") {
    return {"a.tsv", offset + 1, partition, offset, std::move(reason)};
  }
  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  const std::string directory_ = ::testing::TempDir() + "dead_letters_" +
                                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path_ = directory_ + "/letters.jsonl";
};

TEST_F(DeadLettersTest, LettersAreJsonLines) {
  ASSERT_TRUE(Open()->Write({{Letter(0, 7, "column 5 (I4): 'a\"b' is not an integer")}}));
  EXPECT_EQ(Text(),
            "{\"file\":\"a.tsv\",\"line\":8,\"partition\":0,\"offset\":7,"
            "\"reason\":\"column 5 (I4): 'a\\\"b' is not an integer\"}\n");
}

TEST_F(DeadLettersTest, NoLetterIsWrittenTwice) {
  auto sink = Open();
  ASSERT_TRUE(sink->Write({{Letter(0, 7), Letter(0, 8), Letter(0, 7)}}));
  ASSERT_TRUE(sink->Write({{Letter(0, 8), Letter(1, 8)}}));
  EXPECT_EQ(Lines(), 3u);
  sink = Open();
  ASSERT_TRUE(sink->Write({{Letter(0, 7), Letter(1, 8), Letter(1, 7)}}));
  EXPECT_EQ(Lines(), 4u);
}

TEST_F(DeadLettersTest, ATornLastLineIsCutOffAndWrittenAgain) {
  ASSERT_TRUE(Open()->Write({{Letter(0, 1), Letter(0, 2)}}));
  const std::string whole = Text();
  const size_t first = whole.find('\n') + 1;
  for (size_t cut = first; cut < whole.size(); ++cut) {
    std::filesystem::resize_file(path_, cut);
    auto sink = Open();
    EXPECT_EQ(Text(), whole.substr(0, first));
    ASSERT_TRUE(sink->Write({{Letter(0, 1), Letter(0, 2)}}));
    EXPECT_EQ(Text(), whole);
  }
}

TEST_F(DeadLettersTest, AForeignFileIsRefusedAndLeftAlone) {
  for (const std::string line : {"hello\n", "[]\n", "{}\n", "{\"partition\":0,\"offset\":-1}\n",
                                 "{\"partition\":\"0\",\"offset\":1}\n", "\n"}) {
    std::filesystem::remove(path_);
    ASSERT_TRUE(Open()->Write({{Letter(0, 1)}}));
    Append(line + "torn");
    const std::string before = Text();
    const auto sink = OpenDeadLetterFile(path_);
    ASSERT_FALSE(sink) << line;
    EXPECT_EQ(sink.error().code, ErrorCode::kCorruption);
    EXPECT_THAT(sink.error().message, HasSubstr("letters.jsonl:2"));
    EXPECT_EQ(Text(), before);
  }
}

TEST_F(DeadLettersTest, AnUnwritablePlaceIsNamed) {
  const auto sink = OpenDeadLetterFile(directory_ + "/none/letters.jsonl");
  ASSERT_FALSE(sink);
  EXPECT_THAT(sink.error().message, HasSubstr("none/letters.jsonl"));
}

// A full disk, played by a limit on the size of files: what did not fit leaves nothing behind and
// may be written again.
TEST_F(DeadLettersTest, AFailedWriteIsCutOffAndCanBeRepeated) {
  auto sink = Open();
  ASSERT_TRUE(sink->Write({{Letter(0, 1)}}));
  const std::string before = Text();
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{before.size() + 20, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = sink->Write({{Letter(0, 2)}});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("letters.jsonl"));
  EXPECT_EQ(Text(), before);
  ASSERT_TRUE(sink->Write({{Letter(0, 2)}}));
  EXPECT_EQ(Lines(), 2u);
}

// Random letters, random restarts, against a set.
TEST_F(DeadLettersTest, HoldsEachLetterOnce) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::set<std::pair<int32_t, uint64_t>> model;
  auto sink = Open();
  for (int round = 0; round < 100; ++round) {
    std::vector<DeadLetter> letters;
    for (uint32_t i = random() % 8; i > 0; --i) {
      letters.push_back(Letter(static_cast<int32_t>(random() % 2), random() % 300));
      model.emplace(letters.back().partition, letters.back().offset);
    }
    ASSERT_TRUE(sink->Write(letters));
    if (random() % 10 == 0) sink = Open();
    ASSERT_EQ(Lines(), model.size());
  }
}

}  // namespace
}  // namespace tacit::event
