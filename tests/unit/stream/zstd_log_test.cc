#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "log_files.h"

namespace tacit::stream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ZstdLogTest : public LogFilesTest {
 protected:
  // A frame that holds nothing of the log, as parallel packers write them.
  static std::string Skippable() { return std::string("\x50\x2a\x4d\x18\4\0\0\0abcd", 12); }
};

TEST_F(ZstdLogTest, IsToldByItsBytes) {
  const std::string text = Lines(0, 50000);
  const Delivered expected = ReadAll(*Open({Write("plain.zst", text)}));  // the name lies
  EXPECT_EQ(expected.records.size(), 50000u);
  EXPECT_EQ(ReadAll(*Open({Write("packed.tsv", Zstd(text))})).records, expected.records);
  EXPECT_EQ(ReadAll(*Open({Write("skip.tsv", Skippable() + Zstd(text))})).records,
            expected.records);
}

TEST_F(ZstdLogTest, FramesAreReadThrough) {
  const auto source = Open({Write(
      "a", Zstd("one\ntw") + Zstd("o\n") + Zstd("") + Skippable() + Zstd("three") + Skippable())});
  EXPECT_THAT(ReadAll(*source).records, ElementsAre("one", "two", "three"));
}

TEST_F(ZstdLogTest, CorruptGivesAFaultAndTheNextFileGoesOn) {
  const std::string packed = Zstd(Lines(0, 20000));
  std::mt19937 random(3);
  size_t faulty = 0, read = 0;
  for (int round = 0; round < 40; ++round) {
    std::string bad = packed;
    bad[4 + random() % (bad.size() - 4)] ^= static_cast<char>(1 << random() % 8);
    const auto source = Open({Write("bad.zst", bad), Write("next", "after\n")});
    const Delivered all = ReadAll(*source);
    if (all.error.find("truncated zstd data") != std::string::npos) {  // it looks like a cut
      ++faulty;
      continue;
    }
    ASSERT_EQ(all.error, "");
    ASSERT_EQ(all.records.back(), "after");
    const uint64_t last = all.records.size() - 2;
    if (all.records[last].starts_with("FAULT")) {
      ++faulty;
      EXPECT_THAT(all.records[last], HasSubstr("bad.zst"));
    }
    read += last;
    // The same again, through Seek: which record has which offset never changes.
    ASSERT_TRUE(SeekTo(*source, last));
    EXPECT_THAT(ReadAll(*source).records, ElementsAre(all.records[last], "after"));
    ASSERT_TRUE(SeekTo(*source, 0));
    EXPECT_EQ(ReadAll(*source).records, all.records);
  }
  EXPECT_GT(faulty, 35u);       // there is a checksum
  EXPECT_GT(read, 40 * 2000u);  // what lies before the damage is read
}

TEST_F(ZstdLogTest, BytesBehindThatAreNotZstdAreAFault) {
  const Delivered all = ReadAll(*Open({Write("a", Zstd("one\n") + "garbage")}));
  ASSERT_EQ(all.records.size(), 2u);
  EXPECT_THAT(all.records[1], StartsWith("FAULT corrupt zstd data (Unknown frame descriptor)"));
}

}  // namespace
}  // namespace tacit::stream
