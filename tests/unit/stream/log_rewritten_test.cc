#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "log_files.h"

namespace tacit::stream {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kLines = 40000;
constexpr size_t kRead = 20;

// Lines that hardly pack, so that packed files, too, are read in several pieces.
std::string NoisyLines(uint32_t seed) {
  std::mt19937 random(seed);
  std::string text;
  for (size_t i = 0; i < kLines; ++i) {
    for (int letter = 0; letter < 40; ++letter) text += static_cast<char>('0' + random() % 64);
    text += '\n';
  }
  return text;
}

void Overwrite(const std::string& path, std::string_view content) {
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << content;
}

// A log of one file, to which something is done while it is read.
class LogRewrittenTest : public LogFilesTest {
 protected:
  using Pack = std::string (*)(std::string_view);
  static std::string Plain(std::string_view text) { return std::string(text); }
  static constexpr Pack kPacks[] = {Plain, Gzip, Zstd};

  // Begins to read the file, does `what` to it and reads the rest.
  Delivered ReadWhile(const std::string& content, const std::function<void()>& what) {
    source_ = Open({Write("day.tsv", content)}, kRead);
    EXPECT_EQ(ReadAll(*source_, kRead).records.size(), kRead);
    what();
    return ReadAll(*source_);
  }

  // Puts the file back and reads it from the last commit, as a new start does.
  Delivered StartAgain(const std::string& content) {
    const std::string identity = source_->Identity();
    source_ = Open({Write("day.tsv", content)});
    const Status known = source_->VerifyIdentity(identity);
    EXPECT_TRUE(known) << known.error().message;
    EXPECT_TRUE(SeekTo(*source_, kRead));
    return ReadAll(*source_);
  }

  const std::string path_ = PathOf("day.tsv");
  const std::string text_ = NoisyLines(1), other_ = NoisyLines(2);
  std::unique_ptr<Source> source_;
};

TEST_F(LogRewrittenTest, ATruncatedFileIsNoWholeOneAndCanBePutBack) {
  for (const Pack pack : kPacks) {
    const std::string content = pack(text_);
    const Delivered rest = ReadWhile(content, [&] { fs::resize_file(path_, 0); });
    EXPECT_THAT(rest.error, AllOf(HasSubstr("/day.tsv: "), HasSubstr("shorter while it was read"),
                                  HasSubstr("put it back")));
    EXPECT_THAT(rest.cuts, IsEmpty());
    for (const std::string& record : rest.records) EXPECT_THAT(record, ::testing::SizeIs(40));
    const Delivered again = StartAgain(content);
    EXPECT_EQ(again.error, "");
    EXPECT_EQ(again.records.size(), kLines - kRead);
  }
}

TEST_F(LogRewrittenTest, AFileThatBeginsAnewIsNotReadOn) {
  const Delivered rest = ReadWhile(text_, [&] { Write("day.tsv", other_.substr(0, 1 << 20)); });
  EXPECT_THAT(rest.error, HasSubstr("shorter while it was read"));
  EXPECT_LT(rest.records.size(), kLines / 4);
}

TEST_F(LogRewrittenTest, NoRecordOfOtherContentIsDelivered) {
  for (const Pack pack : kPacks) {
    const Delivered rest =
        ReadWhile(pack(text_), [&] { Overwrite(path_, pack(other_ + "more\n")); });
    EXPECT_THAT(rest.error, AllOf(HasSubstr("/day.tsv: "), HasSubstr("while it was read")));
    EXPECT_THAT(rest.cuts, IsEmpty());
    const Delivered again = StartAgain(pack(text_));
    ASSERT_GE(again.records.size(), rest.records.size());
    for (size_t i = 0; i < rest.records.size(); ++i)
      ASSERT_EQ(rest.records[i], again.records[i]) << i;
  }
}

// A change that its first bytes do not show is found where the file ends.
TEST_F(LogRewrittenTest, AnotherFileInItsPlaceIsSeenAtTheEnd) {
  std::string similar = text_;
  similar[100000] = '!';
  for (const std::string& content : {other_, similar, text_.substr(0, text_.size() - 41)}) {
    const Delivered rest = ReadWhile(text_, [&] { fs::rename(Write("new", content), path_); });
    EXPECT_THAT(rest.error, AllOf(HasSubstr("/day.tsv: "), HasSubstr("while it was read")));
    EXPECT_THAT(rest.cuts, IsEmpty());
  }
  EXPECT_THAT(ReadWhile(text_, [&] { Overwrite(path_, similar); }).error,
              HasSubstr("while it was read"));
}

TEST_F(LogRewrittenTest, AFileThatIsGoneFromItsPlaceIsTold) {
  const Delivered rest = ReadWhile(text_, [&] { fs::rename(path_, PathOf("day.tsv.1")); });
  EXPECT_THAT(rest.error, AllOf(HasSubstr("/day.tsv: "), HasSubstr("moved or removed")));
  EXPECT_THAT(rest.cuts, IsEmpty());
  EXPECT_EQ(StartAgain(text_).error, "");
}

TEST_F(LogRewrittenTest, AFileMayGrowAndBeCopiedAndTouched) {
  const Delivered grown =
      ReadWhile(text_, [&] { std::ofstream(path_, std::ios::app | std::ios::binary) << "late\n"; });
  EXPECT_EQ(grown.error, "");
  EXPECT_EQ(grown.records.size(), kLines - kRead + 1);
  EXPECT_EQ(grown.records.back(), "late");
  EXPECT_THAT(grown.cuts, ElementsAre("day.tsv@" + std::to_string(kLines + 1)));

  const Delivered copied = ReadWhile(text_, [&] { fs::rename(Write("copy", text_), path_); });
  EXPECT_EQ(copied.error, "");
  EXPECT_EQ(copied.records.size(), kLines - kRead);

  const Delivered touched =
      ReadWhile(text_, [&] { fs::last_write_time(path_, fs::file_time_type::clock::now()); });
  EXPECT_EQ(touched.error, "");
  EXPECT_EQ(touched.records.size(), kLines - kRead);
}

}  // namespace
}  // namespace tacit::stream
