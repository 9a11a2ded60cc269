// Tests what a publisher writes. The oracle reads the topic naively, the last record of each key,
// and compares with what the store serves.
#include "feed/publisher.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "feed/row_blocks.h"
#include "feed_rig.h"
#include "store/disk/rocks.h"

namespace tacit::feed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The newest record of each place, decoded.
struct NaiveModel {
  std::map<RecordPlace, std::string> payloads;
  std::map<int32_t, VersionEnd> ends;
};

class PublisherTest : public FeedTest {
 protected:
  NaiveModel ReadModel() const {
    NaiveModel model;
    for (const FoundRecord& found : ReadTopic()) {
      const auto record = DecodeRecord(found.key, found.value);
      EXPECT_TRUE(record) << record.error().message;
      if (!record) continue;
      if (record->place.kind == RecordKind::kVersionEnd) {
        const auto end = DecodeVersionEnd(record->payload);
        EXPECT_TRUE(end) << end.error().message;
        if (end) model.ends[found.partition] = *end;
      } else {
        model.payloads[record->place] = std::string(record->payload);
      }
    }
    return model;
  }

  // The topic holds exactly what the store serves.
  void ExpectTopicIsStore() {
    const NaiveModel model = ReadModel();
    const auto snapshot = store_->Latest();
    ASSERT_EQ(model.ends.size(), static_cast<size_t>(kPartitions));
    for (const auto& [partition, end] : model.ends) {
      EXPECT_EQ(end.tip.seq, snapshot->version());
      EXPECT_EQ(end.tip.head, snapshot->head());
    }
    const auto layout = options_.learners[0].rows;
    size_t rows = 0;
    std::string dense, released, chain;
    for (const auto& [place, payload] : model.payloads) {
      const auto expect_served = [&](uint64_t bucket, std::string_view bytes) {
        ++rows;
        const auto& table = layout.space.tables()[place.table];
        const uint64_t row = table.first + bucket;
        std::vector<float> served(table.dim);
        ASSERT_TRUE(snapshot->Rows(LearnerIndex(0), {&row, 1}, served));
        ASSERT_EQ(bytes.size(), served.size() * sizeof(float));
        EXPECT_EQ(std::memcmp(bytes.data(), served.data(), bytes.size()), 0) << row;
      };
      if (place.kind == RecordKind::kRow) {
        EXPECT_FALSE(SendsBlocks(layout));
        expect_served(place.number, payload);
      }
      if (place.kind == RecordKind::kBlock) {
        EXPECT_TRUE(SendsBlocks(layout));
        const auto block = DecodeBlock(payload);
        ASSERT_TRUE(block) << block.error().message;
        block->ForRows([&](size_t at, std::string_view bytes, bool) {
          expect_served(place.number * kBlockRows + at, bytes);
        });
      }
      if (place.kind == RecordKind::kDense) dense += payload.substr(4);
      if (place.kind == RecordKind::kReleased) released += payload.substr(4);
      if (place.kind == RecordKind::kLedger) chain += payload;
    }
    std::set<uint64_t> written;
    for (uint64_t seq = 1; seq <= snapshot->version().value; ++seq)
      for (const uint64_t row : store::Script::RowsOf(seq)) written.insert(row);
    EXPECT_EQ(rows, written.size());
    const std::span<const float> served = snapshot->ServedDense(LearnerIndex(0));
    ASSERT_EQ(dense.size(), served.size_bytes());
    EXPECT_EQ(std::memcmp(dense.data(), served.data(), dense.size()), 0);
    EXPECT_EQ(released, store::Script::ReleasedOf(snapshot->version().value));
    const auto entries = snapshot->LedgerEntries(0, ~uint64_t{0});
    ASSERT_TRUE(entries);
    std::string expected;
    for (const std::string& entry : *entries) expected += entry;
    EXPECT_EQ(chain, expected);
  }
};

TEST_F(PublisherTest, EachVersionIsWhatTheStoreServes) {
  const auto publisher = MakePublisher();
  const auto nothing = publisher->Publish();
  ASSERT_TRUE(nothing) << nothing.error().message;
  EXPECT_FALSE(*nothing);  // nothing is committed yet
  std::vector<bool> whole;
  for (const int steps : {1, 1, 3, 1, 7, 2}) {
    Steps(steps);
    const PublishedVersion published = MustPublish(*publisher);
    EXPECT_EQ(published.version, store_->Latest()->version());
    whole.push_back(published.whole);
    ExpectTopicIsStore();
  }
  EXPECT_THAT(whole, ElementsAre(true, false, false, false, false, false));
  const auto again = publisher->Publish();
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);  // it is there already
}

TEST_F(PublisherTest, ANewStartGoesOnFromTheEnds) {
  auto publisher = MakePublisher();
  Steps(3);
  EXPECT_TRUE(MustPublish(*publisher).whole);
  const FeedId feed = ReadModel().ends[0].feed;
  publisher.reset();
  Steps(2);
  Reopen();  // the deltas of 4 and 5 are folded, and were kept
  Steps(1);
  publisher = MakePublisher();
  const PublishedVersion published = MustPublish(*publisher);
  EXPECT_FALSE(published.whole);
  ExpectTopicIsStore();
  const VersionEnd end = ReadModel().ends[2];
  EXPECT_EQ(end.feed, feed);
  EXPECT_EQ(end.previous.value, 3u);
  EXPECT_EQ(end.whole_since.value, 3u);
  EXPECT_EQ(store_->Latest()->version().value, 6u);
  // Published deltas are let go.
  Steps(4);
  ASSERT_TRUE(store_->Settle());
  const auto release = store_->LatestRelease();
  const auto each = [](const store::ReleasedRow&) -> Status { return {}; };
  EXPECT_FALSE(*store_->ForReleasedRows(*release, CommitSeq(5), each));
  EXPECT_TRUE(*store_->ForReleasedRows(*release, CommitSeq(6), each));
}

// The same with a learner whose rows are small.
class SmallRowsTest : public PublisherTest {
 protected:
  SmallRowsTest() {
    store_.reset();
    std::filesystem::remove_all(options_.path);
    std::filesystem::remove_all(options_.witness);
    // Rows have as many floats as the script's, but most of them are the optimiser's.
    options_.learners[0] = store::MakeLearner("ctr", {{"site", 40, 2, 3}, {"ad", 200, 3, 13}});
    store_ = store::MustOpen(options_);
  }
};

TEST_F(SmallRowsTest, EachVersionIsWhatTheStoreServes) {
  auto publisher = MakePublisher();
  std::vector<bool> whole;
  std::vector<uint64_t> records;
  for (const int steps : {1, 1, 3, 1}) {
    Steps(steps);
    const PublishedVersion published = MustPublish(*publisher);
    whole.push_back(published.whole);
    records.push_back(published.records);
    ExpectTopicIsStore();
  }
  // A new start goes on with what the store has.
  publisher.reset();
  Steps(1);
  Reopen();
  Steps(1);
  publisher = MakePublisher();
  whole.push_back(MustPublish(*publisher).whole);
  ExpectTopicIsStore();
  Steps(1);
  whole.push_back(MustPublish(*publisher).whole);
  ExpectTopicIsStore();
  EXPECT_THAT(whole, ElementsAre(true, false, false, false, false, false));
  // A block of each table, a chunk, the released state and entries of the ledger.
  EXPECT_THAT(records, testing::Each(testing::Lt(10u)));
}

TEST_F(SmallRowsTest, TheTopicIsSoundForWhoInspectsIt) {
  const auto publisher = MakePublisher();
  for (const int steps : {2, 3}) {
    Steps(steps);
    MustPublish(*publisher);
  }
  const Inspection found = Inspect();
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_GT(found.rows, 100u);
  // A block that has lost a float.
  CopyTopic("cut", [&](FoundRecord& one) {
    const auto record = DecodeRecord(one.key, one.value);
    if (record->place.kind != RecordKind::kBlock || record->place.table != 1) return true;
    const std::string payload(record->payload.substr(0, record->payload.size() - sizeof(float)));
    std::string value;
    AppendValue(record->place, record->origin, payload, &value);
    one.value = value;
    return true;
  });
  EXPECT_THAT(Inspect("cut").faults, testing::Contains(HasSubstr("block")));
}

TEST_F(PublisherTest, BeyondTheBacklogAVersionIsSentWhole) {
  store_.reset();
  options_.outbox_bytes = 20'000;
  store_ = store::MustOpen(options_);
  const auto publisher = MakePublisher();
  Steps(1);
  EXPECT_TRUE(MustPublish(*publisher).whole);
  Steps(12);
  ASSERT_TRUE(store_->Settle());
  EXPECT_TRUE(MustPublish(*publisher).whole);
  ExpectTopicIsStore();
  EXPECT_EQ(ReadModel().ends[0].whole_since.value, 13u);
  Steps(1);
  EXPECT_FALSE(MustPublish(*publisher).whole);
  ExpectTopicIsStore();
}

TEST_F(PublisherTest, DenseParametersOfSeveralChunksAreWhole) {
  auto dense = std::make_shared<store::DenseState>();
  for (int i = 0; i < 150'000; ++i) dense->parameters.push_back(static_cast<float>(i));
  store::CommitRequest request;
  request.learners.push_back({LearnerIndex(0), nullptr, dense, "", {store::TestCharge("ctr", 1)}});
  ASSERT_TRUE(store_->Commit(std::move(request), {}));
  ASSERT_TRUE(store_->Flush());
  MustPublish(*MakePublisher());
  const Inspection found = Inspect();
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_EQ(found.versions.back().end.learners[0].dense_chunks, 3u);
  std::string bytes;
  for (const auto& [place, payload] : ReadModel().payloads)
    if (place.kind == RecordKind::kDense) bytes += payload.substr(4);
  ASSERT_EQ(bytes.size(), 4 * dense->parameters.size());
  EXPECT_EQ(std::memcmp(bytes.data(), dense->parameters.data(), bytes.size()), 0);
}

// Everything that a store holds and that may not leave it is planted, and looked for in all bytes
// of the topic, keys and values; what may leave is found by the same look.
TEST_F(PublisherTest, NothingButWhatIsReleasedLeavesTheStore) {
  constexpr float kOptimiserPlant = 4242.5f, kReleasedPlant = 1717.25f;
  const auto bytes_of = [](const auto& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const Hash128 user{0x1122334455667788, 0x99aabbccddeeff01};
  const uint32_t item = 0xdeadbea7;
  store::WorkingRows& working = store_->working_rows(LearnerIndex(0));
  const std::vector<uint64_t> rows = {3, 100};
  std::vector<float*> places(rows.size());
  ASSERT_TRUE(working.Gather(rows, places));
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& layout = options_.learners[0].rows;
    const uint32_t table = layout.space.TableOf(rows[i]);
    for (uint32_t f = 0; f < layout.RowFloats(table); ++f)
      places[i][f] = f < layout.space.tables()[table].dim ? kReleasedPlant : kOptimiserPlant;
  }
  working.MarkChanged(rows);
  auto dense = std::make_shared<store::DenseState>();
  dense->parameters = {kReleasedPlant};
  dense->optimizer = {kOptimiserPlant};
  store::CommitRequest request;
  request.source_identity = "identity-plant";
  request.learners.push_back({LearnerIndex(0),
                              working.TakeDelta(),
                              dense,
                              "position-plant",
                              {store::TestCharge("ctr", 1)}});
  auto& commit = request.learners.back();
  commit.charges[0].topic = "topic-plant";
  commit.charges[0].ranges = {{0, 0x7766554433221100, 0x7766554433221164}};
  commit.allowances = {.step = 1, .uses = {{.user = user, .used = 1}}};
  commit.histories = {
      .step = 1, .appended = {{.user = user, .items = {{item, 1}}}}, .items_most = 5};
  commit.allocation = "allocation-plant";
  commit.released = std::make_shared<const std::string>("released-plant");
  ASSERT_TRUE(store_->Commit(std::move(request), {}));
  ASSERT_TRUE(store_->Flush());
  auto publisher = MakePublisher();
  MustPublish(*publisher);
  Steps(3);  // a version out of deltas
  EXPECT_FALSE(MustPublish(*publisher).whole);
  std::string all;
  for (const FoundRecord& record : ReadTopic()) all += record.key + record.value;
  const auto key = store_->user_key();
  publisher.reset();
  ASSERT_TRUE(store_->Settle());
  store_.reset();
  const auto rocks = store::Rocks::OpenReadOnly(options_.path);
  ASSERT_TRUE(rocks) << rocks.error().message;
  const auto salt = (*rocks)->Get(store::Family::kMeta, store::meta::kSalt);
  ASSERT_TRUE(salt && *salt);
  ASSERT_EQ((*salt)->size(), 32u);
  const auto is_there = [&](const std::string& plant) { return all.find(plant) != all.npos; };
  EXPECT_TRUE(is_there(bytes_of(kReleasedPlant)));
  EXPECT_TRUE(is_there("released-plant") || is_there("released by 3"));
  for (const std::string& plant :
       {bytes_of(kOptimiserPlant), std::string("identity-plant"), std::string("position"),
        std::string("topic-plant"), std::string("allocation-plant"), std::string("source"),
        bytes_of(uint64_t{0x7766554433221100}), bytes_of(user.low), bytes_of(user.high),
        bytes_of(item), bytes_of(key), **salt, (*salt)->substr(0, 8), bytes_of(key).substr(0, 8)})
    EXPECT_FALSE(is_there(plant)) << ToHex(
        {reinterpret_cast<const uint8_t*>(plant.data()), plant.size()});
}

TEST_F(PublisherTest, RecordsOfOthersAreNamedAndNothingIsWritten) {
  kafka_.Write(kTopic, 1, "{\"item\": 4}");
  kafka_.Flush();
  Steps(1);
  const auto publisher = MakePublisher();
  for (int i = 0; i < 2; ++i) {
    const auto refused = publisher->Publish();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kCorruption);
    EXPECT_THAT(refused.error().message,
                HasSubstr("topic 'model': partition 1, offset 0: is no record of a feed"));
  }
  EXPECT_EQ(stream::ReadKafkaTail(properties(), kTopic, 10, test::kPatience,
                                  [](const stream::KafkaTopicRecord& record) -> Status {
                                    EXPECT_EQ(record.partition, 1);
                                    return {};
                                  })
                .has_value(),
            true);
}

TEST_F(PublisherTest, ATopicThatIsNotThereIsWaitedFor) {
  Steps(1);
  const auto publisher = MakePublisher(false, "later");
  kafka_.SetDown(true);
  const auto away = publisher->Publish();
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, ErrorCode::kUnavailable);
  kafka_.SetDown(false);
  kafka_.Create("later", 2);
  MustPublish(*publisher);
  EXPECT_FALSE(ReadTopic("later").empty());
}

// Two stores that never knew of each other, one topic.
TEST_F(PublisherTest, AnotherStoreIsRefusedUntilAnOperatorSaysSo) {
  Steps(2);
  MustPublish(*MakePublisher());
  const std::string before = store_->Latest()->lineage();
  store_.reset();
  store::TestFolder other;
  options_ = store::TestOptions(other);
  options_.outbox_bytes = uint64_t{1} << 30;
  store_ = store::MustOpen(options_);
  Steps(4);
  const auto refused = MakePublisher()->Publish();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("is of the store of lineage " + before));
  EXPECT_THAT(refused.error().message, HasSubstr("--take-over-feed"));
  const auto publisher = MakePublisher(/*takes_over=*/true);
  EXPECT_TRUE(MustPublish(*publisher).whole);
  Steps(1);
  EXPECT_FALSE(MustPublish(*publisher).whole);  // it takes over once
  EXPECT_THAT(Inspect().faults, IsEmpty());
  Steps(1);
  EXPECT_FALSE(MustPublish(*MakePublisher()).whole);
  store_.reset();
}

FeedClaim MakeClaim() {
  FeedClaim claim{.lineage = "000102030405060708090a0b0c0d0e0f",
                  .ancestors = {},
                  .terms = {},
                  .version = CommitSeq(10)};
  claim.head.fill(7);
  TermId first{}, second{};
  first.fill(1);
  second.fill(2);
  Digest before{};
  before.fill(5);
  claim.terms.Add({.first = CommitSeq(1), .id = first});
  claim.terms.Add({.first = CommitSeq(6), .id = second, .head_before = before});
  return claim;
}
NewestEnds EndsOf(uint64_t version, uint8_t term) {
  NewestEnds ends{.partitions = 2, .by_partition = {}, .has_records = true};
  for (uint32_t partition : {0, 1}) {
    PlacedEnd placed;
    placed.end.partition = partition;
    placed.end.partitions = 2;
    placed.end.tip.seq = CommitSeq(version);
    placed.end.tip.head.fill(7);
    placed.end.term.fill(term);
    placed.origin.version = CommitSeq(version);
    placed.origin.lineage = *LineageIdOf(MakeClaim().lineage);
    ends.by_partition[static_cast<int32_t>(partition)] = placed;
  }
  return ends;
}

TEST(FeedClaimTest, OneWhoWentOnInOrderGoesOn) {
  EXPECT_TRUE(CheckClaim("t", {.partitions = 2, .by_partition = {}}, MakeClaim(), false));
  for (const auto& [version, term] : {std::pair{10, 2}, {7, 2}, {6, 2}, {4, 1}, {1, 1}})
    EXPECT_TRUE(CheckClaim("t", EndsOf(static_cast<uint64_t>(version), static_cast<uint8_t>(term)),
                           MakeClaim(), false))
        << version;
}

TEST(FeedClaimTest, OlderCopiesAndForksAreRefusedByName) {
  const auto expect_refused = [](const NewestEnds& ends, const FeedClaim& claim,
                                 const std::string& why, bool may_take_over = true) {
    const Status refused = CheckClaim("t", ends, claim, false);
    ASSERT_FALSE(refused) << why;
    EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
    EXPECT_THAT(refused.error().message, HasSubstr(why));
    EXPECT_EQ(CheckClaim("t", ends, claim, true).has_value(), may_take_over) << why;
  };
  expect_refused(EndsOf(11, 2), MakeClaim(), "it is an older copy");
  expect_refused(EndsOf(7, 9), MakeClaim(), "two copies of it have gone on");
  NewestEnds other_head = EndsOf(10, 2);
  for (auto& [partition, one] : other_head.by_partition) one.end.tip.head.fill(8);
  expect_refused(other_head, MakeClaim(), "two copies of it have gone on");
  FeedClaim restored = MakeClaim();
  restored.ancestors = {{.lineage = restored.lineage, .through = CommitSeq(10), .head = {}}};
  restored.ancestors[0].head.fill(7);
  restored.lineage[0] = 'f';
  expect_refused(EndsOf(10, 2), restored, "which was restored from it");
  NewestEnds grown = EndsOf(7, 2);
  grown.partitions = 3;
  expect_refused(grown, MakeClaim(), "has 3 partitions, and its marks say 2", false);
  NewestEnds mixed = EndsOf(7, 2);
  mixed.by_partition[1].end.feed.fill(1);
  expect_refused(mixed, MakeClaim(), "has marks of another feed", false);
  expect_refused({.partitions = 2, .by_partition = {}, .has_records = true}, MakeClaim(), "no mark",
                 false);
}

}  // namespace
}  // namespace tacit::feed
