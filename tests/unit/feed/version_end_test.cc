#include "feed/version_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace tacit::feed {
namespace {

using ::testing::HasSubstr;

Mark MakeMark() {
  Mark mark;
  mark.feed.fill(0xab);
  mark.partition = 2;
  mark.partitions = 4;
  mark.previous = CommitSeq(10);
  mark.whole_since = CommitSeq(3);
  mark.term.fill(7);
  mark.time_ms = 1'700'000'000'123;
  mark.records = 17;
  mark.checksum = ~uint64_t{5};
  mark.all_records = 60;
  mark.all_bytes = 6000;
  mark.tip.seq = CommitSeq(12);
  mark.tip.head.fill(9);
  mark.tip.ledger_entries = 5;
  mark.tip.learners = {{"ctr", privacy::Unit::kUser, 1.5, 1e-6, 70}};
  mark.tip.total = {"", privacy::Unit::kEvent, 1.5, 1e-6, 70};
  mark.learners = {{.key = 0,
                    .record = "layout",
                    .step = 70,
                    .dense_floats = 100'000,
                    .dense_chunks = 2,
                    .released_bytes = 3,
                    .released_chunks = 1},
                   {.key = 4, .record = ""}};
  return mark;
}

TEST(MarkTest, ReadsBackWhatWasWritten) {
  const Mark mark = MakeMark();
  const auto read = DecodeMark(EncodeMark(mark));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->feed, mark.feed);
  EXPECT_EQ(read->partition, 2u);
  EXPECT_EQ(read->partitions, 4u);
  EXPECT_EQ(read->previous, mark.previous);
  EXPECT_EQ(read->whole_since, mark.whole_since);
  EXPECT_EQ(read->term, mark.term);
  EXPECT_EQ(read->time_ms, mark.time_ms);
  EXPECT_EQ(read->records, 17u);
  EXPECT_EQ(read->checksum, mark.checksum);
  EXPECT_EQ(read->all_records, 60u);
  EXPECT_EQ(read->all_bytes, 6000u);
  EXPECT_EQ(store::EncodeTip(read->tip), store::EncodeTip(mark.tip));
  EXPECT_EQ(read->learners, mark.learners);
}

TEST(MarkTest, PartsThatDoNotBelongTogetherAreAnError) {
  const auto expect_refused = [](const std::function<void(Mark&)>& change) {
    Mark mark = MakeMark();
    change(mark);
    const auto read = DecodeMark(EncodeMark(mark));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kCorruption);
    EXPECT_THAT(read.error().message, HasSubstr("mark"));
  };
  expect_refused([](Mark& mark) { mark.partitions = 0; });
  expect_refused([](Mark& mark) { mark.partition = 4; });
  expect_refused([](Mark& mark) { mark.partitions = ~0u; });
  expect_refused([](Mark& mark) { mark.records = 61; });
  expect_refused([](Mark& mark) { mark.previous = CommitSeq(12); });
  expect_refused([](Mark& mark) { mark.whole_since = CommitSeq(13); });
  expect_refused([](Mark& mark) { mark.learners[1].key = 0; });
  expect_refused([](Mark& mark) { mark.learners[0].dense_chunks = 0; });
  expect_refused([](Mark& mark) { mark.learners[0].dense_floats = 0; });
  expect_refused([](Mark& mark) { mark.learners[0].dense_floats = ~uint64_t{0}; });
  expect_refused([](Mark& mark) { mark.learners[0].dense_chunks = ~0u; });
  expect_refused([](Mark& mark) { mark.learners[0].released_chunks = 4; });
  expect_refused([](Mark& mark) { mark.learners[1].released_bytes = 1; });
}

// No payload crashes the reader, and one that is read is written again as the same bytes: nothing
// is read that is not there.
TEST(MarkTest, NoBytesCrashItAndNoneAreMadeUp) {
  const std::string good = EncodeMark(MakeMark());
  for (size_t left = 0; left < good.size(); ++left)
    EXPECT_FALSE(DecodeMark(good.substr(0, left))) << left;
  EXPECT_FALSE(DecodeMark(good + '\0'));
  std::mt19937_64 random(7);
  int read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    const auto mark = DecodeMark(bytes);
    if (!mark) continue;
    ++read;
    EXPECT_EQ(EncodeMark(*mark), bytes);
  }
  EXPECT_GT(read, 1000);
}

}  // namespace
}  // namespace tacit::feed
