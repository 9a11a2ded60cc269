#include <gmock/gmock.h>

#include "log_files.h"

namespace tacit::stream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A log of three files, of which the first two and a part of the third are read.
class LogIdentityTest : public LogFilesTest {
 protected:
  void SetUp() override {
    LogFilesTest::SetUp();
    files_ = {Write("a", Lines(0, 10)), Write("b.gz", Gzip(Lines(10, 10))),
              Write("c", Lines(20, 1000))};
    const auto source = Open(files_, 10);
    ReadAll(*source, 30);
    identity_ = source->Identity();
  }

  std::string Verdict(const std::vector<std::string>& files) const {
    const auto source = Open(files);
    const Status status = source->VerifyIdentity(identity_);
    return status ? "accepted" : status.error().message;
  }

  std::vector<std::string> files_;
  std::string identity_;
};

TEST_F(LogIdentityTest, TheSameLogIsAcceptedAndReadOn) {
  const auto source = Open(files_);
  ASSERT_TRUE(source->VerifyIdentity(identity_));
  EXPECT_EQ(source->Identity(), identity_);
  ASSERT_TRUE(SeekTo(*source, 30));
  const Delivered rest = ReadAll(*source);
  EXPECT_EQ(rest.records.size(), 990u);
  EXPECT_EQ(rest.first_offset, 30u);
}

TEST_F(LogIdentityTest, NothingReadFitsEverything) {
  const auto source = Open(files_);
  EXPECT_TRUE(source->VerifyIdentity(""));
  EXPECT_TRUE(source->VerifyIdentity(Open({Write("other", "x")})->Identity()));
}

TEST_F(LogIdentityTest, FilesMayBeAddedBehindAndAnUnfinishedFileMayGrow) {
  auto files = files_;
  files.push_back(Write("d", "new\n"));
  EXPECT_EQ(Verdict(files), "accepted");
  Write("c", Lines(20, 2000));
  EXPECT_EQ(Verdict(files), "accepted");
}

TEST_F(LogIdentityTest, ChangedFilesAreRefusedByName) {
  Write("a", Lines(1, 10));
  EXPECT_THAT(Verdict(files_), AllOf(HasSubstr("/a:"), HasSubstr("has changed")));
  Write("a", Lines(0, 9));
  EXPECT_THAT(Verdict(files_), AllOf(HasSubstr("/a:"), HasSubstr("shorter")));
  Write("a", Lines(0, 11));
  EXPECT_THAT(Verdict(files_), AllOf(HasSubstr("/a:"), HasSubstr("has grown")));
}

TEST_F(LogIdentityTest, RemovedRenamedAndReorderedFilesAreRefusedByName) {
  EXPECT_THAT(Verdict({files_[0], files_[1]}), AllOf(HasSubstr("'c'"), HasSubstr("no longer")));
  EXPECT_THAT(Verdict({files_[0], files_[2]}), HasSubstr("was 'b.gz' when it was read"));
  EXPECT_THAT(Verdict({files_[1], files_[0], files_[2]}), HasSubstr("was 'a'"));
}

TEST_F(LogIdentityTest, ATornIdentityIsRefusedNotRead) {
  const auto source = Open(files_);
  for (size_t cut = 1; cut < identity_.size(); ++cut) {
    const Status status = source->VerifyIdentity(identity_.substr(0, cut));
    ASSERT_FALSE(status) << cut;
  }
  EXPECT_FALSE(source->VerifyIdentity(identity_ + "x"));
}

// While the daemon runs.
TEST_F(LogIdentityTest, AFileThatGrowsBehindItsEndIsRefusedWhenItIsReadAgain) {
  const auto source = Open({files_[0], files_[2]});
  ReadAll(*source);
  std::ofstream(files_[0], std::ios::app) << "late\n";
  ASSERT_TRUE(SeekTo(*source, 0));
  EXPECT_THAT(ReadAll(*source).error, AllOf(HasSubstr("/a:"), HasSubstr("has grown")));
  const Status status = SeekTo(*source, 15);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kRefused);
}

// Same size, same first MiB, other lines: what the number of records can still reveal.
TEST_F(LogIdentityTest, AChangedNumberOfRecordsIsRefused) {
  const std::string text = Lines(0, 40000);
  ASSERT_GT(text.size(), size_t{1} << 20);
  const auto source = Open({Write("big", text)});
  ReadAll(*source);
  std::string other = text;
  other[other.size() - 3] = '\n';
  Write("big", other);
  ASSERT_TRUE(SeekTo(*source, 0));
  EXPECT_THAT(ReadAll(*source).error, AllOf(HasSubstr("/big:"), HasSubstr("since it was read")));
}

}  // namespace
}  // namespace tacit::stream
