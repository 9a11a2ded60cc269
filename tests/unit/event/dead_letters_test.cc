#include "event/dead_letters.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "base/files/log.h"
#include "event/letter_line.h"
#include "event/recent_offsets.h"
#include "spdlog/sinks/ostream_sink.h"
#include "support/eventually.h"
#include "support/temp_dir.h"

namespace tacit::event {
namespace {

using ::testing::HasSubstr;

class DeadLettersTest : public ::testing::Test {
 protected:
  std::unique_ptr<DeadLetterSink> Open() {
    auto sink = OpenDeadLetterFile({.path = path_, .max_bytes = max_bytes_, .files = files_});
    EXPECT_TRUE(sink) << (sink ? "" : sink.error().message);
    return sink ? std::move(*sink) : nullptr;
  }
  std::string Text() const { return Text(path_); }
  static std::string Text(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // The places of all letters in all files, each as often as it is there.
  std::multiset<std::pair<int32_t, uint64_t>> Kept() const {
    std::multiset<std::pair<int32_t, uint64_t>> kept;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);)
        if (const auto place = ParseLine(line)) kept.emplace(place->partition, place->offset);
    }
    return kept;
  }
  size_t Lines() const {
    const std::string text = Text();
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  static DeadLetter Letter(int32_t partition, uint64_t offset, std::string reason = "bad") {
    return {"a.tsv", offset + 1, partition, offset, std::move(reason)};
  }
  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  const test::TempDir folder_;
  const std::string directory_ = folder_.path();
  const std::string path_ = directory_ + "/letters.jsonl";
  uint64_t max_bytes_ = 1 << 20;
  uint32_t files_ = 4;
};

// Catches everything that is logged while it lives.
class CaughtLog {
 public:
  CaughtLog() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~CaughtLog() { spdlog::set_default_logger(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::shared_ptr<spdlog::logger> before_;
  std::ostringstream text_;
};

// A full disk, played by a limit on the size of files, while it lives.
class SmallFilesOnly {
 public:
  explicit SmallFilesOnly(uint64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &old_), 0);
    const rlimit small{bytes, old_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~SmallFilesOnly() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit old_{};
  void (*handler_)(int);
};

// Waits until the sink says that it cannot write.
testing::AssertionResult Waits(const DeadLetterSink& sink) {
  return test::Eventually("the sink is in trouble", [&] { return !sink.trouble().empty(); });
}

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

TEST_F(DeadLettersTest, AForeignLineIsPassedOverAndTold) {
  for (const std::string line : {"hello\n", "[]\n", "{}\n", "{\"partition\":0,\"offset\":-1}\n",
                                 "{\"partition\":\"0\",\"offset\":1}\n", "\n"}) {
    std::filesystem::remove(path_);
    ASSERT_TRUE(Open()->Write({{Letter(0, 1)}}));
    Append(line);
    const std::string before = Text();
    const CaughtLog log;
    auto sink = Open();
    ASSERT_TRUE(sink) << line;
    EXPECT_THAT(log.text(), HasSubstr("letters.jsonl:2: not a dead letter, passed over"));
    EXPECT_EQ(Text(), before);
    ASSERT_TRUE(sink->Write({{Letter(0, 1), Letter(0, 2)}}));
    EXPECT_EQ(Text(), before + ToLine(Letter(0, 2)));
  }
}

// A line of another writer is his to end, and no letter is glued to it.
TEST_F(DeadLettersTest, AForeignLineWithoutAnEndGetsOne) {
  ASSERT_TRUE(Open()->Write({{Letter(0, 1)}}));
  Append("half a li");
  auto sink = Open();
  ASSERT_TRUE(sink->Write({{Letter(0, 2)}}));
  Append("another");
  ASSERT_TRUE(sink->Write({{Letter(0, 3)}}));
  EXPECT_EQ(Text(), ToLine(Letter(0, 1)) + "half a li\n" + ToLine(Letter(0, 2)) + "another\n" +
                        ToLine(Letter(0, 3)));
}

TEST_F(DeadLettersTest, ALineIsReadAsItIsWritten) {
  for (const std::string text : {"", "a.tsv", "with \"quotes\",\"line\":9", "back\\slash\\", "\n\t",
                                 "\",\"line\":1,\"partition\":5,\"offset\":6,\"reason\":\"x\"}"}) {
    for (const int32_t partition : {0, 7, INT32_MAX}) {
      DeadLetter letter = Letter(partition, uint64_t{1} << 63, text);
      letter.origin = text;
      std::string line = ToLine(letter);
      ASSERT_EQ(line.back(), '\n');
      line.pop_back();
      const auto place = ParseLine(line);
      ASSERT_TRUE(place) << line;
      EXPECT_EQ(place->partition, partition);
      EXPECT_EQ(place->offset, uint64_t{1} << 63);
      // Cut short, it is no letter, but may be the beginning of one.
      for (size_t n = 0; n < line.size(); ++n) {
        EXPECT_FALSE(ParseLine(line.substr(0, n))) << line.substr(0, n);
        EXPECT_TRUE(MayBeginLine(line.substr(0, n)));
      }
    }
  }
}

TEST_F(DeadLettersTest, AnUnwritablePlaceIsNamed) {
  const auto sink = OpenDeadLetterFile({.path = directory_ + "/none/letters.jsonl"});
  ASSERT_FALSE(sink);
  EXPECT_THAT(sink.error().message, HasSubstr("none/letters.jsonl"));
}

// A device takes letters and keeps none, or is read without an end; a pipe holds its reader up.
TEST_F(DeadLettersTest, AnythingButAFileIsRefused) {
  ASSERT_EQ(::mkfifo((directory_ + "/pipe").c_str(), 0600), 0);
  for (const std::string& path :
       {std::string("/dev/null"), directory_ + "/pipe", directory_, std::string("/dev/full")}) {
    const auto sink = OpenDeadLetterFile({.path = path});
    ASSERT_FALSE(sink) << path;
    EXPECT_EQ(sink.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(sink.error().message, HasSubstr("opening " + path + ": is not a regular file"));
  }
  // So is one among the older files.
  std::filesystem::create_symlink("/dev/full", path_ + ".1");
  const auto sink = OpenDeadLetterFile({.path = path_, .files = 2});
  ASSERT_FALSE(sink);
  EXPECT_THAT(sink.error().message, HasSubstr(path_ + ".1: is not a regular file"));
}

// A letter that did not fit leaves nothing in the file. Write waits, says why, and continues once
// there is room.
TEST_F(DeadLettersTest, AFullDiskIsWaitedOut) {
  auto sink = Open();
  ASSERT_TRUE(sink->Write({{Letter(0, 1)}}));
  const std::string before = Text();
  EXPECT_EQ(sink->trouble(), "");
  std::atomic<bool> done = false;
  std::thread writer;
  {
    const SmallFilesOnly full(before.size() + 20);
    writer = std::thread([&] {
      EXPECT_TRUE(sink->Write({{Letter(0, 2)}}));
      done = true;
    });
    EXPECT_TRUE(Waits(*sink));
    EXPECT_THAT(sink->trouble(), HasSubstr("letters.jsonl: File too large"));
    // While it tries again there is a part of a letter, for a moment.
    EXPECT_TRUE(test::Eventually("nothing is left behind", [&] { return Text() == before; }));
    EXPECT_FALSE(done);
  }
  writer.join();
  EXPECT_EQ(sink->trouble(), "");
  EXPECT_EQ(Text(), before + ToLine(Letter(0, 2)));
}

TEST_F(DeadLettersTest, AWriteThatWaitsCanBeEnded) {
  auto sink = Open();
  const SmallFilesOnly full(10);
  Status status;
  std::thread writer([&] { status = sink->Write({{Letter(0, 2)}}); });
  EXPECT_TRUE(Waits(*sink));
  sink->Interrupt();
  writer.join();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(Text(), "");
}

TEST_F(DeadLettersTest, AFullFileIsMovedAsideAndTheOldestGoes) {
  files_ = 3;
  max_bytes_ = 2 * ToLine(Letter(0, 11)).size();
  auto sink = Open();
  for (uint64_t offset = 10; offset < 17; ++offset) ASSERT_TRUE(sink->Write({{Letter(0, offset)}}));
  EXPECT_EQ(Text(), ToLine(Letter(0, 16)));
  EXPECT_EQ(Text(path_ + ".1"), ToLine(Letter(0, 14)) + ToLine(Letter(0, 15)));
  EXPECT_EQ(Text(path_ + ".2"), ToLine(Letter(0, 12)) + ToLine(Letter(0, 13)));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".3"));
  // One Write of many fills one file after the other.
  std::vector<DeadLetter> many;
  for (uint64_t offset = 20; offset < 25; ++offset) many.push_back(Letter(0, offset));
  ASSERT_TRUE(sink->Write(many));
  EXPECT_EQ(Text(), ToLine(Letter(0, 24)));
  EXPECT_EQ(Text(path_ + ".2"), ToLine(Letter(0, 20)) + ToLine(Letter(0, 21)));
}

// A crash between two renames leaves a gap: all letters are still known, and nothing is lost.
TEST_F(DeadLettersTest, ACrashWhileFilesAreMovedRepeatsNoLetter) {
  max_bytes_ = 2 * ToLine(Letter(0, 11)).size();
  std::vector<DeadLetter> letters;
  for (uint64_t offset = 10; offset < 15; ++offset) letters.push_back(Letter(0, offset));
  const auto moved = [&](int renames) {
    if (renames > 0) std::filesystem::rename(path_ + ".2", path_ + ".3");
    if (renames > 1) std::filesystem::rename(path_ + ".1", path_ + ".2");
    if (renames > 2) std::filesystem::rename(path_, path_ + ".1");
  };
  for (int renames = 0; renames <= 3; ++renames) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    ASSERT_TRUE(Open()->Write(letters));
    const auto before = Kept();
    ASSERT_EQ(before.size(), letters.size());
    moved(renames);
    auto sink = Open();
    ASSERT_TRUE(sink->Write(letters));
    EXPECT_EQ(Kept(), before) << renames;
    ASSERT_TRUE(sink->Write({{Letter(0, 15), Letter(0, 16)}}));
    EXPECT_EQ(Kept().size(), before.size() + 2) << renames;
  }
}

// As log rotation does: the next letter is in a new file, and none is in one that has no name.
TEST_F(DeadLettersTest, AFileThatIsMovedAwayIsMadeAnew) {
  auto sink = Open();
  ASSERT_TRUE(sink->Write({{Letter(0, 1)}}));
  std::filesystem::rename(path_, path_ + "-20260101");
  ASSERT_TRUE(sink->Write({{Letter(0, 1), Letter(0, 2)}}));
  EXPECT_EQ(Text(), ToLine(Letter(0, 2)));
  std::filesystem::remove(path_);
  ASSERT_TRUE(sink->Write({{Letter(0, 3)}}));
  EXPECT_EQ(Text(), ToLine(Letter(0, 3)));
  std::filesystem::resize_file(path_, 0);  // copied and cut short
  ASSERT_TRUE(sink->Write({{Letter(0, 4)}}));
  EXPECT_EQ(Text(), ToLine(Letter(0, 4)));
}

// A file from before there was a bound: its end alone is looked at, and it is moved aside.
TEST_F(DeadLettersTest, AStartReadsNoMoreOfAFileThanItsBound) {
  std::string old = "foreign\n";
  for (uint64_t offset = 1000; offset < 3000; ++offset) old += ToLine(Letter(0, offset));
  std::ofstream(path_) << old;
  max_bytes_ = 10 * ToLine(Letter(0, 1000)).size();
  const CaughtLog log;
  auto sink = Open();
  EXPECT_EQ(log.text(), "");
  ASSERT_TRUE(sink->Write({{Letter(0, 1500), Letter(0, 2992), Letter(0, 2999), Letter(0, 3000)}}));
  EXPECT_EQ(Text(path_ + ".1"), old);
  EXPECT_EQ(Text(), ToLine(Letter(0, 1500)) + ToLine(Letter(0, 3000)));
}

TEST_F(DeadLettersTest, SeenOffsetsTakeBoundedMemory) {
  RecentOffsets seen(3);
  for (uint64_t offset = 0; offset < 4 * 512; offset += 2) seen.Insert(0, offset);
  EXPECT_EQ(seen.blocks(), 3u);
  EXPECT_FALSE(seen.Contains(0, 0));  // the lowest are forgotten
  EXPECT_TRUE(seen.Contains(0, 512));
  EXPECT_FALSE(seen.Contains(0, 513));
  EXPECT_TRUE(seen.Contains(0, 4 * 512 - 2));
  EXPECT_FALSE(seen.Contains(1, 512));
}

// Random letters, random restarts and full files, against a set.
TEST_F(DeadLettersTest, HoldsEachLetterOnce) {
  max_bytes_ = 4096;
  files_ = 100;
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
    ASSERT_EQ(Kept(), decltype(Kept())(model.begin(), model.end()));
  }
}

}  // namespace
}  // namespace tacit::event
