// Feeds that are not as they should be: a replica refuses each by name, and goes on showing what it
// shows, or waits; it never shows a version that the trainer did not have.
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "replica_rig.h"

namespace tacit::feed {
namespace {

using ::testing::HasSubstr;

class BadFeedTest : public ReplicaTest {
 protected:
  // More bytes than the mock keeps of a partition, in front of what comes.
  void Overflow(const std::string& topic) {
    const std::string filler(500'000, 'x');
    for (int32_t partition = 0; partition < kPartitions; ++partition)
      for (int i = 0; i < 12; ++i) kafka_.WriteKeyed(topic, partition, "key", filler);
    kafka_.Flush();
  }
  // Follows the topic to this version, and ends.
  std::unique_ptr<store::ReplicaStore> Followed(uint64_t version) {
    auto store = OpenReplica();
    Replica replica(*store, options_.learners, source());
    Follow(replica, *store, version);
    return store;
  }
  // Commits a change of a row that no step of the script changes.
  void CommitAlone(uint64_t row, uint32_t step, float value) {
    store::WorkingRows& working = store_->working_rows(LearnerIndex(0));
    const std::vector<uint64_t> rows = {row};
    std::vector<float*> places(1);
    ASSERT_TRUE(working.Gather(rows, places));
    places[0][0] = value;
    working.MarkChanged(rows);
    store::CommitRequest request;
    request.learners.push_back(
        {LearnerIndex(0), working.TakeDelta(), nullptr, "", {store::TestCharge("ctr", step)}});
    ASSERT_TRUE(store_->Commit(std::move(request), {}));
    ASSERT_TRUE(store_->Flush());
  }
  // A row that no step of the script changes up to this one.
  static uint64_t RowOfNone(uint64_t through) {
    std::set<uint64_t> rows;
    for (uint64_t seq = 1; seq <= through; ++seq) rows.merge(RowsOf(seq));
    for (uint64_t row = 0;; ++row)
      if (!rows.contains(row)) return row;
  }
  static std::set<uint64_t> RowsOf(uint64_t seq) {
    const auto rows = store::Script::RowsOf(seq);
    return {rows.begin(), rows.end()};
  }
  // A copy of the store as it is, with its witness. No publisher may have it.
  store::StoreOptions CopyStore() {
    EXPECT_TRUE(store_->Settle());
    snapshots_.clear();
    store_.reset();
    store::StoreOptions copy = options_;
    copy.path += "-copy";
    copy.witness += "-copy";
    std::filesystem::copy(options_.path, copy.path, std::filesystem::copy_options::recursive);
    std::filesystem::copy(options_.witness, copy.witness);
    store_ = store::MustOpen(options_);
    return copy;
  }
};

// Retention has passed over records that a replica needs: those from its position on, or, where it
// is empty, those at the topic's beginning.
TEST_F(BadFeedTest, ATopicThatIsCutOffAtItsBeginningIsRefused) {
  const auto publisher = MakePublisher();
  for (const int steps : {1, 2}) StepAndPublish(*publisher, steps);
  kafka_.Create("cut", kPartitions);
  Overflow("cut");
  for (const FoundRecord& record : ReadTopic())
    kafka_.WriteKeyed("cut", record.partition, record.key, record.value);
  kafka_.Flush();
  const auto empty = OpenReplica("empty");
  Replica begins(*empty, options_.learners, source("cut"));
  EXPECT_THAT(Refusal(begins), HasSubstr("records were deleted, not compacted, and rows are lost"));
  EXPECT_EQ(empty->Latest(), nullptr);
  const auto store = Followed(3);
  Overflow(kTopic);
  Replica goes_on(*store, options_.learners, source());
  EXPECT_THAT(Refusal(goes_on),
              HasSubstr("records were deleted, not compacted, and rows are lost"));
  ExpectSame(*store->Latest());
}

// Its ends are behind the positions that a replica has, and so they say nothing.
TEST_F(BadFeedTest, ATopicMadeAnewIsRefusedWhereItHasAsMuchInIt) {
  auto publisher = MakePublisher();
  for (const int steps : {1, 2}) StepAndPublish(*publisher, steps);
  const auto store = Followed(3);
  kafka_.Create("anew", kPartitions);
  publisher = MakePublisher(false, "anew");
  for (int i = 0; i < 6; ++i) StepAndPublish(*publisher, 1);
  Replica replica(*store, options_.learners, source("anew"));
  EXPECT_THAT(Refusal(replica), HasSubstr("is a mark of another feed than those before"));
  ExpectSame(*store->Latest());
  EXPECT_EQ(store->Latest()->version().value, 3u);
}

TEST_F(BadFeedTest, ATopicThatHasLostAPartitionIsRefused) {
  const auto publisher = MakePublisher();
  StepAndPublish(*publisher, 2);
  kafka_.Create("narrow", kPartitions - 1);
  const auto store = Followed(2);
  Replica goes_on(*store, options_.learners, source("narrow"));
  EXPECT_THAT(Refusal(goes_on), HasSubstr("has 2 partitions, and its marks say 3"));
  ExpectSame(*store->Latest());
  for (const FoundRecord& record : ReadTopic())
    if (record.partition < kPartitions - 1)
      kafka_.WriteKeyed("narrow", record.partition, record.key, record.value);
  kafka_.Flush();
  const auto empty = OpenReplica("empty");
  Replica begins(*empty, options_.learners, source("narrow"));
  EXPECT_THAT(Refusal(begins), HasSubstr("has 2 partitions, and its marks say 3"));
}

// A replica that runs reads what others write there.
TEST_F(BadFeedTest, ForeignRecordsStopARunningReplica) {
  const auto publisher = MakePublisher();
  StepAndPublish(*publisher, 2);
  const auto store = OpenReplica();
  Replica replica(*store, options_.learners, source());
  Follow(replica, *store, 2);
  kafka_.WriteKeyed(kTopic, 1, "{\"item\": 4}", "hello");
  kafka_.Flush();
  EXPECT_THAT(Refusal(replica), HasSubstr("is no record of a feed"));
  ExpectSame(*store->Latest());
}

// Brokers are away until the store has let go of deltas: the next version has all rows.
TEST_F(BadFeedTest, AVersionThatIsSentWholeAfterTheBacklogIsFollowed) {
  store_.reset();
  options_.outbox_bytes = 20'000;
  store_ = store::MustOpen(options_);
  bool goes_on = true;
  Publisher publisher(*store_, clock_,
                      PublisherOptions{.properties = properties(),
                                       .topic = kTopic,
                                       .check_topic = [] { return Status(); },
                                       .keep_going = [&goes_on] { return goes_on; }});
  StepAndPublish(publisher, 1);
  const auto store = OpenReplica();
  ReplicaSource impatient = source();
  impatient.patience = std::chrono::milliseconds(300);
  Replica replica(*store, options_.learners, impatient);
  Follow(replica, *store, 1);
  kafka_.SetDown(true);
  Steps(12);
  ASSERT_TRUE(store_->Settle());
  goes_on = false;
  const auto away = publisher.Publish();
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, ErrorCode::kUnavailable);
  for (int i = 0; i < 3; ++i) {
    const auto stepped = replica.Step(std::chrono::milliseconds(100));
    EXPECT_TRUE(stepped || stepped.error().code == ErrorCode::kUnavailable);
  }
  ExpectSame(*store->Latest());
  kafka_.SetDown(false);
  goes_on = true;
  EXPECT_TRUE(MustPublish(publisher).whole);
  snapshots_[13] = store_->Latest();
  Follow(replica, *store, 13);
  StepAndPublish(publisher, 2);
  Follow(replica, *store, 15);
}

// A copy of the trainer's store from before takes the feed over, and is ahead when it first
// publishes. Its version is whole; a replica has rows of commits that the copy never had.
TEST_F(BadFeedTest, AnOlderCopyThatHasGoneOnAndTakesOverIsNotMixedIn) {
  const uint64_t lost_row = RowOfNone(6);
  ASSERT_LT(lost_row, 240u);
  auto publisher = MakePublisher();
  StepAndPublish(*publisher, 3);
  publisher.reset();
  const store::StoreOptions copy = CopyStore();
  publisher = MakePublisher();
  CommitAlone(lost_row, 4, 77);
  StepAndPublish(*publisher, 0);
  const auto store = OpenReplica();
  Replica replica(*store, options_.learners, source());
  Follow(replica, *store, 4);
  publisher.reset();
  const auto original = std::move(store_);
  options_ = copy;
  store_ = store::MustOpen(options_);
  Steps(3);
  EXPECT_EQ(store_->Latest()->version().value, 6u);
  const auto refused = MakePublisher()->Publish();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("two copies of it have gone on"));
  publisher = MakePublisher(/*takes_over=*/true);
  EXPECT_TRUE(MustPublish(*publisher).whole);
  EXPECT_THAT(Refusal(replica), HasSubstr("is a mark of another feed than those before"));
  ExpectSame(*store->Latest());
  EXPECT_EQ(store->Latest()->version().value, 4u);
  // An empty store begins with what is there now, and a new start of the trainer goes on with it.
  snapshots_.clear();
  snapshots_[6] = store_->Latest();
  const auto fresh = OpenReplica("fresh");
  Replica other(*fresh, options_.learners, source());
  Follow(other, *fresh, 6);
  publisher = MakePublisher();
  StepAndPublish(*publisher, 1);
  Follow(other, *fresh, 7);
  snapshots_.clear();  // before the stores that they are of
}

}  // namespace
}  // namespace tacit::feed
