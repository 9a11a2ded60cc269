#include "stream/log/log_source.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include "log_files.h"
#include "stream/log/copies.h"

namespace tacit::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using LogSourceTest = LogFilesTest;

TEST_F(LogSourceTest, OffsetsRunThroughTheFilesAndEndsAreCuts) {
  const auto source = Open({Write("a.tsv", "one\ntwo\n"), Write("b.tsv", "three\nfour")});
  const Delivered all = ReadAll(*source);
  EXPECT_THAT(all.records, ElementsAre("one", "two", "three", "four"));
  EXPECT_THAT(all.cuts, ElementsAre("a.tsv@2", "b.tsv@4"));
  EXPECT_THAT(all.places, ElementsAre("a.tsv:1", "a.tsv:2", "b.tsv:1", "b.tsv:2"));
  EXPECT_EQ(all.first_offset, 0u);
  EXPECT_THAT(ReadAll(*source).records, IsEmpty()) << "the end is not the end";
}

TEST_F(LogSourceTest, EmptyFilesAreCutsAlone) {
  const auto source = Open(
      {Write("a", ""), Write("b", "x\n"), Write("c", ""), Write("d", Gzip("")), Write("e", "\n")});
  const Delivered all = ReadAll(*source);
  EXPECT_THAT(all.records, ElementsAre("x", ""));
  EXPECT_THAT(all.cuts, ElementsAre("a@0", "b@1", "c@1", "d@1", "e@2"));
}

TEST_F(LogSourceTest, GzipIsToldByItsBytes) {
  const std::string text = Lines(0, 50000);
  const auto plain = Open({Write("plain.gz", text)});  // the name lies
  const auto packed = Open({Write("packed.tsv", Gzip(text))});
  const Delivered expected = ReadAll(*plain);
  EXPECT_EQ(expected.records.size(), 50000u);
  EXPECT_EQ(ReadAll(*packed).records, expected.records);
}

TEST_F(LogSourceTest, GzipMembersAndPaddingAreReadThrough) {
  const auto source = Open({Write(
      "a.gz", Gzip("one\ntw") + Gzip("o\n") + Gzip("") + Gzip("three") + std::string(700, '\0'))});
  EXPECT_THAT(ReadAll(*source).records, ElementsAre("one", "two", "three"));
}

TEST_F(LogSourceTest, CorruptGzipGivesAFaultAndTheNextFileGoesOn) {
  const std::string text = Lines(0, 20000);
  std::string packed = Gzip(text);
  std::mt19937 random(3);
  size_t faulty = 0;
  for (int round = 0; round < 40; ++round) {
    std::string bad = packed;
    bad[2 + random() % (bad.size() - 2)] ^= static_cast<char>(1 << random() % 8);
    const auto source = Open({Write("bad.gz", bad), Write("next", "after\n")});
    const Delivered all = ReadAll(*source);
    if (all.error.find("truncated gzip data") != std::string::npos) {  // it looks like a cut
      ++faulty;
      continue;
    }
    ASSERT_EQ(all.error, "");
    ASSERT_EQ(all.records.back(), "after");
    for (const std::string& record : all.records)
      if (record.starts_with("FAULT")) {
        ++faulty;
        EXPECT_THAT(record, HasSubstr("bad.gz"));
      }
    // The same again, through Seek: which record has which offset never changes.
    const uint64_t middle = all.records.size() - 2;
    ASSERT_TRUE(SeekTo(*source, middle));
    EXPECT_THAT(ReadAll(*source).records, ElementsAre(all.records[middle], "after"));
    ASSERT_TRUE(SeekTo(*source, 0));
    EXPECT_EQ(ReadAll(*source).records, all.records);
  }
  EXPECT_GT(faulty, 30u);  // the checksum lets nothing through but the header's idle bits
}

TEST_F(LogSourceTest, BytesBehindGzipThatAreNotGzipAreAFault) {
  const auto source = Open({Write("a.gz", Gzip("one\n") + "garbage")});
  const Delivered all = ReadAll(*source);
  ASSERT_EQ(all.records.size(), 2u);
  EXPECT_THAT(all.records[1], StartsWith("FAULT corrupt gzip data (incorrect header check)"));
}

// A fault has an offset like any record: positions before and after it can be reached at once.
TEST_F(LogSourceTest, SeekCountsAFaultAsARecord) {
  for (const std::string text : {"one\n", "one\ntwo"}) {  // the fault alone; with a cut line
    const std::vector<std::string> files = {Write("a.gz", Gzip(text) + "garbage"),
                                            Write("b", "after\n")};
    const auto at_fault = Open(files), behind = Open(files);
    ASSERT_TRUE(SeekTo(*at_fault, 1));
    EXPECT_THAT(ReadAll(*at_fault).records, ElementsAre(StartsWith("FAULT"), "after"));
    ASSERT_TRUE(SeekTo(*behind, 2));
    EXPECT_THAT(ReadAll(*behind).records, ElementsAre("after"));
  }
}

TEST_F(LogSourceTest, ALineThatIsTooLongIsAFaultAndIsNotHeld) {
  const std::string huge(10 << 20, 'h');
  const auto source = Open(
      {Write("a", "one\n" + huge + "\ntwo\n" + std::string(1000, 'm') + "\n" + huge)}, 4096, 1000);
  event::RawRecords frame;
  ASSERT_EQ(*source->Poll(std::chrono::milliseconds(0), &frame), PollOutcome::kRecords);
  ASSERT_EQ(frame.size(), 5u);
  ASSERT_EQ(frame.faults.size(), 2u);
  EXPECT_EQ(frame.faults[0].index, 1u);
  EXPECT_EQ(frame.faults[0].reason, "the record is longer than 1000 bytes");
  EXPECT_EQ(frame.faults[1].index, 4u);
  EXPECT_EQ(frame[2], "two");
  EXPECT_EQ(frame[3].size(), 1000u);
  EXPECT_LT(frame.bytes.capacity(), size_t{1} << 20);
}

TEST_F(LogSourceTest, FramesStayInTheirFileAndBounds) {
  const auto source = Open({Write("a", Lines(0, 10)), Write("b", Lines(10, 3))}, 4);
  event::RawRecords frame;
  std::vector<size_t> sizes;
  while (*source->Poll(std::chrono::milliseconds(0), &frame) == PollOutcome::kRecords)
    sizes.push_back(frame.size());
  EXPECT_THAT(sizes, ElementsAre(4, 4, 2, 3));
}

// The mark stands before a file's first line and is no part of it; elsewhere these bytes are data.
TEST_F(LogSourceTest, AByteOrderMarkIsNoPartOfTheFirstLine) {
  const std::string mark = "\xef\xbb\xbf", text = mark + "one\n" + mark + "two\n";
  for (const std::string& content : {text, Gzip(text), Zstd(text)}) {
    const std::vector<std::string> files = {Write("a", content), Write("b", mark), Write("c", text),
                                            Write("d", mark.substr(0, 2))};
    const auto source = Open(files);
    const Delivered all = ReadAll(*source);
    EXPECT_THAT(all.records, ElementsAre("one", mark + "two", "one", mark + "two", "\xef\xbb"));
    EXPECT_THAT(all.cuts, ElementsAre("a@2", "b@2", "c@4", "d@5"));
    EXPECT_THAT(all.places, ElementsAre("a:1", "a:2", "c:1", "c:2", "d:1"));
    for (uint64_t offset = 0; offset < 5; ++offset) {
      const auto again = Open(files);
      ASSERT_TRUE(SeekTo(*again, offset));
      EXPECT_EQ(
          ReadAll(*again).records,
          std::vector(all.records.begin() + static_cast<ptrdiff_t>(offset), all.records.end()));
    }
    ASSERT_TRUE(Open(files)->VerifyIdentity(source->Identity()));
  }
}

TEST_F(LogSourceTest, NulBytesAndCarriageReturnsPassThrough) {
  const std::string line("a\0b\r", 4);
  EXPECT_THAT(ReadAll(*Open({Write("a", line + "\n")})).records, ElementsAre(line));
}

TEST_F(LogSourceTest, SeekingEqualsReadingStraightThrough) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<std::string> files;
  uint64_t lines = 0;
  for (int i = 0; i < 6; ++i) {
    const uint64_t n = i == 2 ? 0 : 500 + random() % 3000;
    std::string text = Lines(lines, n);
    if (i == 4) text.pop_back();  // the last line has no newline
    lines += n;
    std::string name = "f";
    name += std::to_string(i);
    files.push_back(Write(name, i % 3 == 0 ? text : i % 3 == 1 ? Gzip(text) : Zstd(text)));
  }
  const Delivered whole = ReadAll(*Open(files));
  ASSERT_EQ(whole.records.size(), lines);
  auto source = Open(files, 1 + random() % 700);
  for (int round = 0; round < 60; ++round) {
    if (random() % 8 == 0) source = Open(files, 1 + random() % 700);
    const uint64_t from = random() % 10 == 0 ? lines : random() % (lines + 1);
    ASSERT_TRUE(SeekTo(*source, from));
    const size_t take = random() % 2 == 0 ? SIZE_MAX : random() % 2000;
    const Delivered part = ReadAll(*source, take);
    for (size_t i = 0; i < part.records.size(); ++i) {
      ASSERT_EQ(part.records[i], whole.records[from + i]);
      ASSERT_EQ(part.places[i], whole.places[from + i]);
    }
    if (take == SIZE_MAX) {
      ASSERT_EQ(part.records.size(), lines - from);
    }
  }
  EXPECT_FALSE(SeekTo(*source, lines + 1));
  EXPECT_THAT(SeekTo(*source, lines + 1).error().message, HasSubstr("past the end"));
}

// The end of the file before the position was reported before the position was stored.
TEST_F(LogSourceTest, TheCutAtAPositionIsNotToldAgain) {
  const std::vector<std::string> files = {Write("a", "1\n2\n"), Write("b", "3\n")};
  const auto fresh = Open(files);
  ASSERT_TRUE(SeekTo(*fresh, 2));
  EXPECT_THAT(ReadAll(*fresh).cuts, ElementsAre("b@3"));
  ASSERT_TRUE(SeekTo(*fresh, 2));  // now that the ends are known
  EXPECT_THAT(ReadAll(*fresh).cuts, ElementsAre("b@3"));
  ASSERT_TRUE(SeekTo(*fresh, 3));
  EXPECT_THAT(ReadAll(*fresh).cuts, IsEmpty());
}

TEST_F(LogSourceTest, WhatCannotBeALogIsRefusedByName) {
  const auto refusal = [](std::vector<std::string> files) {
    auto source = OpenLogSource({std::move(files)});
    return source ? "accepted" : source.error().message;
  };
  const std::string good = Write("good", "x\n");
  EXPECT_THAT(refusal({}), HasSubstr("no files"));
  EXPECT_THAT(refusal({good, PathOf("missing")}), HasSubstr("missing: No such file"));
  EXPECT_THAT(refusal({directory_}), HasSubstr("is a directory"));
  EXPECT_THAT(refusal({"/dev/null"}), HasSubstr("not a regular file"));
  // A pipe that nobody writes to.
  ASSERT_EQ(::mkfifo(PathOf("pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal({PathOf("pipe")}), HasSubstr("not a regular file"));
  EXPECT_THAT(refusal({good, directory_ + "/./good"}), HasSubstr("same file"));
  std::filesystem::create_symlink(good, PathOf("link"));
  EXPECT_THAT(refusal({good, PathOf("link")}), HasSubstr("same file"));
}

TEST_F(LogSourceTest, APausedLogDeliversNothing) {
  const auto source = Open({Write("a", "x\n")});
  const int32_t partition = 0;
  event::RawRecords frame;
  source->Pause({&partition, 1});
  EXPECT_EQ(*source->Poll(std::chrono::milliseconds(1), &frame), PollOutcome::kNothing);
  source->Resume({&partition, 1});
  EXPECT_EQ(*source->Poll(std::chrono::milliseconds(1), &frame), PollOutcome::kRecords);
}

TEST_F(LogSourceTest, RecordsAfterIsExactOnceTheEndsAreKnown) {
  const auto source = Open({Write("a", Lines(0, 1000)), Write("b", Gzip(Lines(0, 500)))}, 100);
  const PartitionOffset at{.partition = 0, .offset = 300};
  ReadAll(*source, 500);
  const uint64_t guess = source->RecordsAfter({&at, 1});
  EXPECT_GT(guess, 200u);
  ReadAll(*source);
  EXPECT_EQ(source->RecordsAfter({&at, 1}), 1200u);
}

TEST_F(LogSourceTest, ACopyIsKnownByItsLines) {
  const std::string lines = Lines(0, 3000);
  const std::string first = Write("first.log", lines);
  const auto refused = [&](const std::string& name, const std::string& content) {
    const Status status =
        CheckNoCopies({Write("other.log", Lines(5000, 40)), first, Write(name, content)});
    return status ? "" : status.error().message;
  };
  for (const std::string& copy : {lines, Gzip(lines), Zstd(lines), lines + Lines(3000, 20),
                                  lines.substr(0, lines.size() - 1)})
    EXPECT_EQ(refused("copy", copy), PathOf("copy") + ": has the lines of " + first +
                                         "; a copy counts its records twice, so leave one of them "
                                         "out");
  EXPECT_EQ(refused("later.log", Lines(1, 3000)), "");
  EXPECT_EQ(refused("other", "odd\n" + lines), "");
  // A few lines may be alike by chance, and empty files are.
  const auto twice = [&](const std::string& content) {
    return CheckNoCopies({Write("a", content), Write("b", content)}).has_value();
  };
  EXPECT_TRUE(twice(""));
  EXPECT_TRUE(twice(Lines(0, 19)));
  EXPECT_FALSE(twice(Lines(0, 20)));
  // Files that end at a cut are compared by what is there.
  const std::string packed = Gzip(Lines(0, 900));
  EXPECT_FALSE(twice(packed.substr(0, packed.size() - 100)));
  EXPECT_TRUE(twice(packed.substr(0, 20)));
}

}  // namespace
}  // namespace tacit::stream
