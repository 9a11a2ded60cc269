// A replay's knowledge of lines, of times and of what the topic has already.
#include "cli/replay/replay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <random>

#include "base/clock.h"
#include "cli/replay/line_fields.h"
#include "cli/replay/pacer.h"
#include "cli/replay/replay_header.h"
#include "support/process.h"
#include "unit/stream/mock_kafka.h"

namespace tacit::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class HeldClock final : public Clock {
 public:
  TimePoint Now() const override { return now; }
  int64_t UnixMillis() const override { return 0; }
  TimePoint now;
};

double SecondsBehind(const HeldClock& clock, Clock::TimePoint due) {
  return Seconds(due - clock.now);
}

TEST(ReplayPacerTest, ARateIsKeptToByCountAndNotByWhatWasLate) {
  HeldClock clock;
  ReplayPacer pacer({.rate = 10}, clock);
  EXPECT_EQ(SecondsBehind(clock, pacer.Next(std::nullopt)), 0);
  const Clock::TimePoint start = clock.now;
  clock.now += std::chrono::seconds(5);
  for (int line = 1; line < 100; ++line)
    EXPECT_NEAR(Seconds(pacer.Next(std::nullopt) - start), line / 10.0, 1e-6);
}

TEST(ReplayPacerTest, SpeedDividesTheLinesOwnTimes) {
  HeldClock clock;
  ReplayPacer pacer({.speed = 60}, clock);
  EXPECT_EQ(SecondsBehind(clock, pacer.Next(1'000'000.0)), 0);
  EXPECT_NEAR(SecondsBehind(clock, pacer.Next(1'060'000.0)), 1, 1e-6);
  EXPECT_NEAR(SecondsBehind(clock, pacer.Next(4'600'000.0)), 60, 1e-6);
  EXPECT_LE(SecondsBehind(clock, pacer.Next(900'000.0)), 0);     // out of order: at once
  EXPECT_LE(SecondsBehind(clock, pacer.Next(std::nullopt)), 0);  // without a time: at once
}

TEST(ReplayPacerTest, WithoutEitherEveryLineIsDue) {
  HeldClock clock;
  ReplayPacer pacer({}, clock);
  for (int line = 0; line < 10; ++line) EXPECT_EQ(SecondsBehind(clock, pacer.Next(1e9 * line)), 0);
}

TEST(ReplayHeaderTest, ComesBackFromItsText) {
  for (const char* name : {"day-00.tsv.gz", "with space: 7.jsonl", ""}) {
    const ReplayHeader header{name, 12345678901, "0123456789abcdef", 3, 12, "user"};
    const auto parsed = ParseReplayHeader(ReplayHeaderText(header));
    ASSERT_TRUE(parsed) << name;
    EXPECT_EQ(parsed->name, name);
    EXPECT_EQ(parsed->line, header.line);
    EXPECT_EQ(parsed->id, header.id);
    EXPECT_EQ(parsed->run, header.run);
    EXPECT_EQ(parsed->partitions, header.partitions);
    EXPECT_EQ(parsed->key, header.key);
  }
  for (const char* text : {"", "x", "a:1\tid\t1\t2", "a:x\tid\t1\t2\tuser", "a:1\tid\t-1\t2\tuser",
                           "a\tid\t1\t2\tuser", "a:1\tid\t1\tmany\tuser"})
    EXPECT_FALSE(ParseReplayHeader(text)) << text;
}

ReplayHeader Header(const std::string& id, uint64_t line, uint64_t run = 1) {
  return {"name-" + id, line, id, run, 4, "user"};
}

TEST(ReplayHistoryTest, TheLastLineOfEachPartitionInTheOrderOfTheFilesIsKnown) {
  const std::vector<ReplayFile> files{{"/x/name-a", "name-a", "a", 0},
                                      {"/x/name-b", "name-b", "b", 0}};
  ReplayHistory history(files);
  EXPECT_EQ(history.run(), 0u);
  EXPECT_EQ(history.Last(0), ReplayPlace{});
  history.Note(0, Header("b", 3));
  history.Note(0, Header("a", 900));  // an earlier file's
  history.Note(1, Header("a", 17));
  history.Note(2, Header("other", 5));  // not ours to continue
  EXPECT_TRUE(history.Check(4, "user"));
  EXPECT_EQ(history.run(), 1u);
  EXPECT_EQ(history.Last(0), (ReplayPlace{1, 3}));
  EXPECT_EQ(history.Last(1), (ReplayPlace{0, 17}));
  EXPECT_EQ(history.Last(2), ReplayPlace{});
  // A later run makes all that was before a thing of the past.
  history.Note(1, Header("a", 2, 2));
  EXPECT_EQ(history.run(), 2u);
  EXPECT_EQ(history.Last(0), ReplayPlace{});
  EXPECT_EQ(history.Last(1), (ReplayPlace{0, 2}));
}

TEST(ReplayHistoryTest, WhatCannotBeGoneOnWithIsToldByName) {
  const std::vector<ReplayFile> files{{"/x/name-a", "name-a", "a", 0}};
  ReplayHistory history(files);
  history.Note(0, Header("a", 3));
  EXPECT_THAT(history.Check(5, "user").error().message,
              HasSubstr("4 partitions when the replay began, and has 5 now"));
  EXPECT_THAT(history.Check(4, "item").error().message, HasSubstr("--key user"));
  ReplayHeader other = Header("b", 3);
  other.name = "name-a";
  history.Note(0, other);
  EXPECT_THAT(history.Check(4, "user").error().message, HasSubstr("name-a is not the file"));
}

TEST(ReplayFilesTest, AFileIsKnownByItsFirstMiBAndMayNotBeThereTwice) {
  test::TempDir dir;
  test::WriteFile(dir / "a", "one");
  test::WriteFile(dir / "b", "one");
  test::WriteFile(dir / "c", "two");
  const std::vector<std::string> paths{dir / "a", dir / "b", dir / "c"};
  const auto files = LookAtFiles(paths);
  ASSERT_TRUE(files);
  EXPECT_EQ((*files)[0].id, "7692c3ad3540bb80");  // SHA-256 of "one" begins so
  EXPECT_EQ((*files)[0].id, (*files)[1].id);
  EXPECT_NE((*files)[0].id, (*files)[2].id);
  const std::vector<std::string> twice{dir / "a", dir.path() + "/./a"};
  EXPECT_THAT(LookAtFiles(twice).error().message, HasSubstr("twice"));
  const std::vector<std::string> missing{dir / "none"};
  EXPECT_EQ(LookAtFiles(missing).error().code, ErrorCode::kNotFound);
}

// Once such a file is whole its id would be another one, and the lines sent would not be found
// again.
TEST(ReplayFilesTest, AShortFileThatIsCutIsRefused) {
  test::TempDir dir;
  test::WriteFile(dir / "a.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\3", 10));
  const std::vector<std::string> paths{dir / "a.gz"};
  const auto files = LookAtFiles(paths);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().code, ErrorCode::kIo);
  EXPECT_THAT(files.error().message, HasSubstr("truncated gzip data at byte 10 of " + paths[0] +
                                               ": the file is not whole"));
}

// A frame of as many blocks as zstd makes of the text.
std::string ZstdBlocks(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  return packed;
}

using Format = config::Source::Format;

config::Config Schema(Format format) {
  config::Config config;
  config.source.format = format;
  config.features = {{.name = "c", .kind = config::Feature::Kind::kCategorical},
                     {.name = "n", .kind = config::Feature::Kind::kDense}};
  return config;
}

std::string KeyOf(LineFields& fields, std::string_view line) {
  fields.Read(line);
  const auto key = fields.key();
  return key ? std::string(*key) : "(none)";
}

TEST(LineFieldsTest, ATsvLinesColumnsStandInTheCodecsOrder) {
  const auto c = MakeLineFields(Schema(Format::kCriteoTsv), "c", false);
  ASSERT_TRUE(c);
  EXPECT_EQ(KeyOf(**c, "1\t42\tx"), "x");  // numbers stand before categories
  EXPECT_EQ(KeyOf(**c, "1\t42\tx\r"), "x");
  EXPECT_EQ(KeyOf(**c, "1\t42\t"), "(none)");
  EXPECT_EQ(KeyOf(**c, "1"), "(none)");
  const auto n = MakeLineFields(Schema(Format::kCriteoTsv), "n", false);
  EXPECT_EQ(KeyOf(**n, "1\t42\tx"), "42");
  EXPECT_THAT(MakeLineFields(Schema(Format::kCriteoTsv), "user", false).error().message,
              HasSubstr("--key user"));
}

TEST(LineFieldsTest, AJsonLinesFieldsAndFeaturesAreKeys) {
  const auto user = MakeLineFields(Schema(Format::kJson), "user", true);
  ASSERT_TRUE(user);
  EXPECT_EQ(KeyOf(**user, R"({"user":"u1","timestamp_ms":5})"), "u1");
  EXPECT_EQ((*user)->timestamp_ms(), 5);
  EXPECT_EQ(KeyOf(**user, R"({"user":17})"), "17");
  EXPECT_FALSE((*user)->timestamp_ms());
  for (const char* line : {R"({"user":null})", R"({"user":1.5})", "{}", "[]", "nonsense", ""})
    EXPECT_EQ(KeyOf(**user, line), "(none)") << line;
  const auto c = MakeLineFields(Schema(Format::kJson), "c", false);
  EXPECT_EQ(KeyOf(**c, R"({"c":"no","features":{"c":"yes"}})"), "yes");
  EXPECT_EQ(KeyOf(**c, R"({"features":[]})"), "(none)");
  EXPECT_THAT(MakeLineFields(Schema(Format::kJson), "usr", false).error().message,
              HasSubstr("--key usr"));
}

// A longer one is sent as far as it goes, and nothing behind it. The same command sends the rest.
TEST(ReplayTest, ACutFileIsSentOnceAndTheNextOneNotBeforeItsRest) {
  test::TempDir dir;
  std::mt19937 random(1);
  std::string text;
  constexpr uint64_t kLines = 60'000;
  for (uint64_t line = 0; line < kLines; ++line) {
    for (int k = 0; k < 30; ++k) text += static_cast<char>('0' + random() % 64);
    text += '\n';
  }
  const std::vector<std::string> paths{dir / "a.zst", dir / "b"};
  const std::string whole = ZstdBlocks(text);
  ASSERT_GT(whole.size(), size_t{1'400'000});
  test::WriteFile(paths[0], whole.substr(0, 1'200'000));
  test::WriteFile(paths[1], "after\n");
  stream::MockKafka kafka;
  kafka.Create("t", 2);
  const ReplayOptions options{.properties = {{{"bootstrap.servers", kafka.bootstrap()}}},
                              .topic = "t",
                              .key = "none",
                              .frame = ""};
  const auto replay = [&]() -> Result<ReplaySummary> {
    TACIT_ASSIGN(const auto files, LookAtFiles(paths));
    TACIT_ASSIGN(const auto fields, MakeLineFields(Schema(Format::kJson), "none", false));
    const SystemClock clock;
    return Replay(options, files, *fields, clock, [](const ReplayView&) { return true; });
  };
  for (int start = 0; start < 2; ++start) {
    const auto cut = replay();
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code, ErrorCode::kIo);
    EXPECT_THAT(cut.error().message, HasSubstr("at byte 1200000 of " + paths[0]));
  }
  test::WriteFile(paths[0], whole);
  const auto rest = replay();
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_EQ(rest->lines, kLines + 1);
  EXPECT_GT(rest->already_there, kLines / 2);
  EXPECT_LT(rest->already_there, kLines);
  EXPECT_EQ(rest->sent, kLines + 1 - rest->already_there);
}

}  // namespace
}  // namespace tacit::cli
