#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "broker_double.h"
#include "stream/kafka/turns.h"

namespace tacit::stream {
namespace {

using testing::HasSubstr;

// Delivers what it was given, and nothing else.
class Shelf final : public MessageFetcher {
 public:
  void Put(int32_t partition, uint64_t offset, int64_t timestamp_ms = 0) {
    messages[partition].push_back({.offset = offset, .timestamp_ms = timestamp_ms, .value = "v"});
  }
  void PutEnd(int32_t partition, uint64_t offset) {
    messages[partition].push_back({.offset = offset, .at_end = true});
  }
  Status Fetch(int32_t partition, size_t max, milliseconds,
               std::vector<FetchedMessage>* out) override {
    auto& from = messages[partition];
    const auto taken = static_cast<ptrdiff_t>(std::min(max, from.size()));
    std::move(from.begin(), from.begin() + taken, std::back_inserter(*out));
    from.erase(from.begin(), from.begin() + taken);
    return {};
  }
  Result<uint64_t> Add(int32_t) override {
    if (away) return Fail(ErrorCode::kUnavailable, "no leader");
    return 40;
  }
  Status Seek(int32_t, uint64_t) override {
    ADD_FAILURE() << "turns follow each other without a jump";
    return {};
  }

  std::map<int32_t, std::vector<FetchedMessage>> messages;
  bool away = false;
};

// Delivers records without end, of this size and at every this many offsets, as many at once as a
// client's queue has.
class Belt final : public MessageFetcher {
 public:
  Belt(size_t bytes, uint64_t gap) : value_(bytes, 'v'), gap_(gap) {}
  Status Fetch(int32_t, size_t max, milliseconds, std::vector<FetchedMessage>* out) override {
    constexpr size_t kQueued = 32;
    for (size_t i = 0; i < std::min(max, kQueued); ++i)
      out->push_back({.offset = gap_ * delivered++, .value = value_});
    return {};
  }
  Result<uint64_t> Add(int32_t) override { return 0; }
  Status Seek(int32_t, uint64_t) override { return {}; }

  uint64_t delivered = 0;

 private:
  const std::string value_;
  const uint64_t gap_;
};

class KafkaTurnsTest : public testing::Test {
 protected:
  // "PARTITION:BEGIN-END" of a frame, "PARTITION:|OFFSET" of a cut; "" when there is none.
  std::string Take() {
    event::RawRecords frame;
    std::optional<LastRecord> last;
    const auto taken = turns_.Take(shelf_, milliseconds(0), &frame, &last);
    EXPECT_TRUE(taken);
    if (!taken || !*taken) return "";
    const std::string partition = std::to_string(frame.partition) + ":";
    if (frame.size() == 0) return partition + "|" + std::to_string(frame.cuts.at(0).offset);
    for (const auto& fault : frame.faults) faults_.push_back(fault.reason);
    return partition + std::to_string(frame.first_offset) + "-" +
           std::to_string(frame.end_offset());
  }
  void Close(std::vector<PartitionEnd> ends, bool tick = false) {
    ASSERT_TRUE(rounds_.Close(ends, tick));
  }

  SetClock clock_;
  RoundQueue rounds_;
  Shelf shelf_;
  KafkaTurns turns_{{{.topic = "t"}, clock_, nullptr, rounds_}};
  std::vector<std::string> faults_;
};

TEST_F(KafkaTurnsTest, NothingIsTakenThatIsInNoRound) {
  turns_.Start({.partition = 0});
  shelf_.Put(0, 0);
  shelf_.Put(0, 1);
  EXPECT_EQ(Take(), "");
  EXPECT_TRUE(turns_.idle());
  Close({{0, 1}});
  EXPECT_FALSE(turns_.idle());
  EXPECT_EQ(Take(), "0:0-1");
  EXPECT_EQ(Take(), "");
  EXPECT_TRUE(turns_.idle());
}

TEST_F(KafkaTurnsTest, APartitionThatDoesNotComeIsToldAndNotOvertaken) {
  turns_.Start({.partition = 0});
  turns_.Start({.partition = 1, .offset = 7});
  shelf_.Put(0, 0);
  Close({{0, 1}, {1, 8}});
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(turns_.stall(), "");
  clock_.Advance(10'000);
  EXPECT_EQ(Take(), "");
  EXPECT_THAT(turns_.stall(), HasSubstr("topic 't' partition 1: there are records from offset 7"));
  shelf_.Put(1, 7, -1);
  EXPECT_EQ(Take(), "1:7-8");
  EXPECT_EQ(turns_.stall(), "");
  EXPECT_EQ(Take(), "0:0-1");
}

// The offsets between are markers of transactions.
TEST_F(KafkaTurnsTest, ATickOfTheClockStandsAtTheEndOfItsRound) {
  for (int32_t p = 0; p < 3; ++p) turns_.Start({.partition = p});
  for (uint64_t offset = 0; offset < 4; ++offset) shelf_.Put(0, offset);
  shelf_.PutEnd(0, 6);
  shelf_.Put(1, 0, 1);
  Close({{0, 2}}, false);
  Close({{0, 6}, {1, 1}, {2, 0}}, true);
  Close({{0, 9}}, false);
  EXPECT_EQ(Take(), "0:0-2");
  EXPECT_EQ(Take(), "0:2-4");
  EXPECT_EQ(Take(), "1:0-1");
  EXPECT_EQ(Take(), "0:|6");
  EXPECT_EQ(Take(), "1:|1");
  for (uint64_t offset = 6; offset < 9; ++offset) shelf_.Put(0, offset);
  EXPECT_EQ(Take(), "0:6-9") << "there was nothing in partition 2 to be marked";
}

// The client's queue is bounded in bytes, and a block of a partition is not: it may be 4096 records
// of source.max_record_bytes.
TEST_F(KafkaTurnsTest, LargeRecordsStayInTheClientsQueue) {
  Belt belt(/*bytes=*/1 << 20, /*gap=*/1);
  turns_.Start({.partition = 0});
  Close({{0, 4096}});
  event::RawRecords frame;
  std::optional<LastRecord> last;
  for (uint64_t handed_on = 0; handed_on < 100;) {
    frame.Clear();
    const auto taken = turns_.Take(belt, milliseconds(0), &frame, &last);
    ASSERT_TRUE(taken && *taken);
    handed_on += frame.size();
    ASSERT_LE(belt.delivered - handed_on, 64u) << "each is a mebibyte";
  }
}

// More is fetched than a block has where offsets have gaps, and something is held at every time.
TEST_F(KafkaTurnsTest, ABacklogWithGapsLeavesNothingBehind) {
  constexpr uint64_t kOffsets = 400'000;
  Belt belt(/*bytes=*/1, /*gap=*/2);
  turns_.Start({.partition = 0});
  Close({{0, kOffsets}});
  event::RawRecords frame;
  std::optional<LastRecord> last;
  size_t places = 0, records = 0;
  while (records < kOffsets / 2) {
    frame.Clear();
    const auto taken = turns_.Take(belt, milliseconds(0), &frame, &last);
    ASSERT_TRUE(taken && *taken);
    records += frame.size();
    places = std::max(places, turns_.Find(0)->places());
  }
  EXPECT_LT(places, 20'000u);
}

TEST_F(KafkaTurnsTest, ANewPartitionIsAddedWithItsFirstRound) {
  turns_.Start({.partition = 0});
  shelf_.Put(0, 0);
  shelf_.Put(3, 40, -5);
  shelf_.away = true;
  Close({{0, 1}, {3, 41}});
  EXPECT_EQ(Take(), "") << "its records may be the first ones";
  shelf_.away = false;
  EXPECT_EQ(Take(), "3:40-41");
  EXPECT_EQ(Take(), "0:0-1");
}

// Knows schema 7. The answer to any other is there once it was awaited: it is rejected.
class AwaitedBook final : public event::SchemaBook {
 public:
  event::SchemaVerdict Look(const event::SchemaKey& schema) override {
    using Kind = event::SchemaVerdict::Kind;
    if (schema == event::SchemaKey(7)) return {.kind = Kind::kAccept};
    ahead.insert(schema);
    if (answered_.contains(schema)) return {.kind = Kind::kReject, .reason = "none"};
    return {.kind = Kind::kWait, .reason = "asked"};
  }
  bool LookAhead(const event::SchemaKey& schema) override {
    if (schema != event::SchemaKey(7)) ahead.insert(schema);
    return true;
  }
  void Await(const event::SchemaKey&, milliseconds) override {
    ++awaited;
    answered_ = ahead;
  }

  std::set<event::SchemaKey> ahead;
  int awaited = 0;

 private:
  std::set<event::SchemaKey> answered_;
};

std::string FramedBy(int schema) {
  return std::string("\0\0\0\0", 4) + static_cast<char>(schema) + "v";
}

// The clock stands still, and all of them are in one frame: none is waited for by itself.
TEST_F(KafkaTurnsTest, SchemasOfAllFetchedRecordsAreLookedUpAtOnce) {
  auto owned = std::make_unique<AwaitedBook>();
  AwaitedBook& book = *owned;
  event::Envelope envelope({.framed = true}, std::move(owned));
  KafkaTurns turns({{.topic = "t"}, clock_, &envelope, rounds_});
  for (int32_t p = 0; p < 2; ++p) turns.Start({.partition = p});
  std::vector<std::string> values;
  for (int i = 0; i < 100; ++i) values.push_back(FramedBy(i % 2 == 0 ? 7 : 10 + i));
  for (uint64_t i = 0; i < 100; ++i)
    shelf_.messages[0].push_back({.offset = i, .value = values[i]});
  const std::string other = FramedBy(9);
  shelf_.messages[1].push_back({.offset = 0, .timestamp_ms = 1, .value = other});
  Close({{0, 100}, {1, 1}});
  event::RawRecords frame;
  std::optional<LastRecord> last;
  ASSERT_TRUE(turns.Take(shelf_, std::chrono::minutes(1), &frame, &last).value_or(false));
  EXPECT_EQ(frame.size(), 100u);
  EXPECT_EQ(frame.faults.size(), 50u);
  EXPECT_EQ(book.awaited, 1);
  EXPECT_EQ(book.ahead.size(), 51u) << "that of the other partition's record too";
  frame.Clear();
  ASSERT_TRUE(turns.Take(shelf_, std::chrono::minutes(1), &frame, &last).value_or(false));
  EXPECT_EQ(frame.faults.size(), 1u);
  EXPECT_EQ(book.awaited, 1);
}

// A client that breaks off in the middle of a turn changes nothing about whose it is.
TEST_F(KafkaTurnsTest, ATurnOutlastsItsClient) {
  turns_.Start({.partition = 0});
  turns_.Start({.partition = 1});
  for (uint64_t offset = 0; offset < 3; ++offset) shelf_.Put(0, offset, 5);
  shelf_.Put(1, 0, 6);
  Close({{0, 6}, {1, 1}});
  EXPECT_EQ(Take(), "0:0-3");
  turns_.DropFetched();
  shelf_.messages.clear();
  for (int32_t p = 0; p < 2; ++p) turns_.Start({.partition = p, .offset = turns_.Find(p)->next()});
  shelf_.Put(1, 0, 0);
  EXPECT_EQ(Take(), "");
  for (uint64_t offset = 3; offset < 6; ++offset) shelf_.Put(0, offset, 9);
  EXPECT_EQ(Take(), "0:3-6");
  EXPECT_EQ(Take(), "1:0-1");
}

// Offsets that were counted on are gone: rounds begin anew with what there is.
TEST_F(KafkaTurnsTest, RoundsAreDroppedWhereEndsAreNoLongerTrue) {
  turns_.Start({.partition = 0});
  shelf_.Put(0, 0);
  Close({{0, 5}});
  Close({{0, 9}});
  EXPECT_EQ(Take(), "0:0-1");
  EXPECT_FALSE(rounds_.Close(std::vector<PartitionEnd>{{0, 3}}, false));
  turns_.DropRounds();
  EXPECT_EQ(Take(), "");
  EXPECT_TRUE(turns_.idle());
  shelf_.Put(0, 1);
  Close({{0, 2}});
  EXPECT_EQ(Take(), "0:1-2");
}

}  // namespace
}  // namespace tacit::stream
