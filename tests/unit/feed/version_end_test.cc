#include "feed/version_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>

namespace tacit::feed {
namespace {

using ::testing::HasSubstr;

VersionEnd MakeVersionEnd() {
  VersionEnd end;
  end.feed.fill(0xab);
  end.partition = 2;
  end.partitions = 4;
  end.previous = CommitSeq(10);
  end.whole_since = CommitSeq(3);
  end.term.fill(7);
  end.time_ms = 1'700'000'000'123;
  end.records = 17;
  end.checksum = ~uint64_t{5};
  end.all_records = 60;
  end.all_bytes = 6000;
  end.tip.seq = CommitSeq(12);
  end.tip.head.fill(9);
  end.tip.ledger_entries = 5;
  end.tip.learners = {{"ctr", privacy::Unit::kUser, 1.5, 1e-6, 70}};
  end.tip.total = {"", privacy::Unit::kEvent, 1.5, 1e-6, 70};
  end.learners = {{.key = 0,
                   .record = "layout",
                   .step = 70,
                   .dense_floats = 100'000,
                   .dense_chunks = 2,
                   .released_bytes = 3,
                   .released_chunks = 1},
                  {.key = 4, .record = ""}};
  return end;
}

TEST(VersionEndTest, ReadsBackWhatWasWritten) {
  const VersionEnd end = MakeVersionEnd();
  const auto read = DecodeVersionEnd(EncodeVersionEnd(end));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->feed, end.feed);
  EXPECT_EQ(read->partition, 2u);
  EXPECT_EQ(read->partitions, 4u);
  EXPECT_EQ(read->previous, end.previous);
  EXPECT_EQ(read->whole_since, end.whole_since);
  EXPECT_EQ(read->term, end.term);
  EXPECT_EQ(read->time_ms, end.time_ms);
  EXPECT_EQ(read->records, 17u);
  EXPECT_EQ(read->checksum, end.checksum);
  EXPECT_EQ(read->all_records, 60u);
  EXPECT_EQ(read->all_bytes, 6000u);
  EXPECT_EQ(store::EncodeTip(read->tip), store::EncodeTip(end.tip));
  EXPECT_EQ(read->learners, end.learners);
  EXPECT_EQ(read->mark, std::nullopt);
}

TEST(VersionEndTest, AMarkIsReadBack) {
  VersionEnd end = MakeVersionEnd();
  end.mark = Hash128{.low = 0, .high = 5};
  const std::string bytes = EncodeVersionEnd(end);
  const auto read = DecodeVersionEnd(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->mark, end.mark);
  for (size_t cut = 1; cut < 16; ++cut)
    EXPECT_FALSE(DecodeVersionEnd(bytes.substr(0, bytes.size() - cut))) << cut;
  EXPECT_FALSE(DecodeVersionEnd(bytes + '\0'));
}

TEST(VersionEndTest, PartsThatDoNotBelongTogetherAreAnError) {
  const auto expect_refused = [](const std::function<void(VersionEnd&)>& change) {
    VersionEnd end = MakeVersionEnd();
    change(end);
    const auto read = DecodeVersionEnd(EncodeVersionEnd(end));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kCorruption);
    EXPECT_THAT(read.error().message, HasSubstr("mark"));
  };
  expect_refused([](VersionEnd& end) { end.partitions = 0; });
  expect_refused([](VersionEnd& end) { end.partition = 4; });
  expect_refused([](VersionEnd& end) { end.partitions = ~0u; });
  expect_refused([](VersionEnd& end) { end.records = 61; });
  expect_refused([](VersionEnd& end) { end.previous = CommitSeq(12); });
  expect_refused([](VersionEnd& end) { end.whole_since = CommitSeq(13); });
  expect_refused([](VersionEnd& end) { end.learners[1].key = 0; });
  expect_refused([](VersionEnd& end) { end.learners[0].dense_chunks = 0; });
  expect_refused([](VersionEnd& end) { end.learners[0].dense_floats = 0; });
  expect_refused([](VersionEnd& end) { end.learners[0].dense_floats = ~uint64_t{0}; });
  expect_refused([](VersionEnd& end) { end.learners[0].dense_chunks = ~0u; });
  expect_refused([](VersionEnd& end) { end.learners[0].released_chunks = 4; });
  expect_refused([](VersionEnd& end) { end.learners[1].released_bytes = 1; });
}

// No payload crashes the reader, and one that is read is written again as the same bytes: nothing
// is read that is not there.
TEST(VersionEndTest, NoBytesCrashItAndNoneAreMadeUp) {
  const std::string good = EncodeVersionEnd(MakeVersionEnd());
  for (size_t left = 0; left < good.size(); ++left)
    EXPECT_FALSE(DecodeVersionEnd(good.substr(0, left))) << left;
  EXPECT_FALSE(DecodeVersionEnd(good + '\0'));
  std::mt19937_64 random(7);
  int read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    const auto end = DecodeVersionEnd(bytes);
    if (!end) continue;
    ++read;
    EXPECT_EQ(EncodeVersionEnd(*end), bytes);
  }
  EXPECT_GT(read, 1000);
}

}  // namespace
}  // namespace tacit::feed
