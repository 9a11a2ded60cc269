// Tests a replica behind librdkafka's mock of a broker.
#include <gmock/gmock.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <random>

#include "base/moving_average.h"
#include "replica_rig.h"

namespace tacit::feed {
namespace {

using ::testing::HasSubstr;

// Gives out a few records in each reading.
class SlowReader final : public stream::KafkaTopicReader {
 public:
  SlowReader(std::unique_ptr<stream::KafkaTopicReader> from, int* readings)
      : from_(std::move(from)), readings_(readings) {}
  Result<std::vector<stream::PartitionSpan>> Spans(Milliseconds timeout) override {
    return from_->Spans(timeout);
  }
  Status Seek(std::span<const stream::PartitionOffset> from) override {
    for (const auto& one : from) next_[one.partition] = one.offset;
    return from_->Seek(from);
  }
  Status Read(Milliseconds timeout, const Show& show) override {
    constexpr size_t kAtOnce = 7;
    const Status read = from_->Read(timeout, [&](const stream::KafkaTopicRecord& record) -> Status {
      kept_.push_back(
          {record.partition, record.offset, std::string(*record.key), std::string(*record.value)});
      return {};
    });
    if (!read) return read;
    *readings_ += 1;
    for (size_t i = 0; i < kAtOnce && !kept_.empty(); ++i) {
      const FoundRecord one = std::move(kept_.front());
      kept_.pop_front();
      next_[one.partition] = one.offset + 1;
      TACIT_RETURN_IF_ERROR(show(
          {.partition = one.partition, .offset = one.offset, .key = one.key, .value = one.value}));
    }
    return {};
  }
  Status DeleteBefore(std::span<const stream::PartitionOffset> until,
                      Milliseconds timeout) override {
    return from_->DeleteBefore(until, timeout);
  }
  uint64_t Position(int32_t partition) const override {
    return kept_.empty() ? from_->Position(partition) : next_.at(partition);
  }
  bool at_end() const override { return kept_.empty() && from_->at_end(); }
  std::string trouble() const override { return from_->trouble(); }

 private:
  const std::unique_ptr<stream::KafkaTopicReader> from_;
  int* const readings_;
  std::deque<FoundRecord> kept_;
  std::map<int32_t, uint64_t> next_;
};

TEST_F(ReplicaTest, ShowsWhatTheTrainerShowsVersionByVersion) {
  const auto publisher = MakePublisher();
  const auto store = OpenReplica();
  Replica replica(*store, options_.learners, source());
  const auto none = replica.Step(std::chrono::milliseconds(10));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(none.error().message, HasSubstr("has no version yet"));
  EXPECT_EQ(store->Latest(), nullptr);
  for (const int steps : {1, 3, 1, 7, 2, 1, 1, 1, 4}) {
    StepAndPublish(*publisher, steps);
    Follow(replica, *store, store_->Latest()->version().value);
  }
  EXPECT_EQ(replica.sight().versions, 9u);
  EXPECT_EQ(replica.sight().newest, replica.sight().served);
  // The comparison sees a version that is mixed with another.
  const auto older = snapshots_.begin()->second;
  EXPECT_FALSE(Same(*store->Latest(), *older));
}

TEST_F(ReplicaTest, OneThatJoinsLateOrComesBackGoesOn) {
  const auto publisher = MakePublisher();
  for (const int steps : {1, 3, 2}) StepAndPublish(*publisher, steps);
  auto store = OpenReplica();
  auto replica = std::make_unique<Replica>(*store, options_.learners, source());
  Follow(*replica, *store, 6);
  for (int i = 0; i < 4; ++i) {
    StepAndPublish(*publisher, 2);
    replica.reset();
    if (i % 2 == 0) {
      ASSERT_TRUE(store->Settle());
    }
    store.reset();
    store = OpenReplica();
    ASSERT_TRUE(store->Latest());
    ExpectSame(*store->Latest());  // before anything was read
    replica = std::make_unique<Replica>(*store, options_.learners, source());
    Follow(*replica, *store, store_->Latest()->version().value);
  }
}

TEST_F(ReplicaTest, MovingAveragesOfUnchangedRowsMoveOn) {
  store_.reset();
  std::filesystem::remove_all(options_.path);
  std::filesystem::remove(options_.witness);
  store::LearnerLayout& learner = options_.learners[0];
  learner.rows.average = MovingAverage(0.9);
  for (size_t t = 0; t < learner.rows.state_floats.size(); ++t)
    learner.rows.state_floats[t] += learner.rows.space.tables()[t].dim + 1;
  store_ = store::MustOpen(options_);
  std::mt19937 random(4);
  uint32_t step = 0;
  const auto commit = [&] {
    ++step;
    store::WorkingRows& working = store_->working_rows(LearnerIndex(0));
    std::vector<uint64_t> rows;
    for (uint64_t row = random() % 9; row < 240; row += 1 + random() % 40) rows.push_back(row);
    std::vector<float*> places(rows.size());
    ASSERT_TRUE(working.Gather(rows, places));
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t floats = learner.rows.RowFloats(learner.rows.space.TableOf(rows[i]));
      for (uint32_t f = 0; f + 1 < floats; ++f)
        places[i][f] = static_cast<float>(random() % 1000) / 8;
      places[i][floats - 1] = CountAsFloat(step);
    }
    working.MarkChanged(rows);
    auto dense = std::make_shared<store::DenseState>();
    dense->parameters = {1.0f * static_cast<float>(step), 2};
    dense->optimizer = {7, 0.5f * static_cast<float>(step), 3, CountAsFloat(step)};
    store::CommitRequest request;
    request.learners.push_back(
        {LearnerIndex(0), working.TakeDelta(), dense, "", {store::TestCharge("ctr", step)}});
    ASSERT_TRUE(store_->Commit(std::move(request), {}));
    ASSERT_TRUE(store_->Flush());
  };
  const auto publisher = MakePublisher();
  auto store = OpenReplica();
  auto replica = std::make_unique<Replica>(*store, options_.learners, source());
  for (int i = 0; i < 8; ++i) {
    for (int k = 0; k <= i % 3; ++k) commit();
    StepAndPublish(*publisher, 0);
    Follow(*replica, *store, step);
  }
  replica.reset();
  store.reset();
  ExpectSame(*OpenReplica()->Latest());
}

// Compaction leaves the last record of each key: a late replica sees the newest version, and one
// that was away finds holes in those between.
TEST_F(ReplicaTest, ACompactedTopicGivesTheNewestVersion) {
  const auto publisher = MakePublisher();
  for (const int steps : {1, 3, 2, 5}) StepAndPublish(*publisher, steps);
  std::map<std::pair<int32_t, std::string>, uint64_t> last;
  for (const FoundRecord& record : ReadTopic())
    last[{record.partition, record.key}] = record.offset;
  CopyTopic("compacted", [&](FoundRecord& record) {
    return last[{record.partition, record.key}] == record.offset;
  });
  const auto store = OpenReplica();
  Replica replica(*store, options_.learners, source("compacted"));
  Follow(replica, *store, 11);
}

// A replica that may hold nothing puts rows into its store before it has a version. The
// store is closed in between, not killed.
TEST_F(ReplicaTest, OneThatHoldsLittleBeginsWithTheSameVersion) {
  const auto publisher = MakePublisher();
  for (const int steps : {1, 3, 2, 5}) StepAndPublish(*publisher, steps);
  // Read in pieces: an end that is never asked for until all is read.
  ReplicaSource little = source();
  little.held_bytes_most = 0;
  int taken = 0;
  little.open_reader = [&]() -> Result<std::unique_ptr<stream::KafkaTopicReader>> {
    auto reader = stream::KafkaTopicReader::Open(properties(), kTopic);
    if (!reader) return reader;
    return std::unique_ptr<stream::KafkaTopicReader>(
        std::make_unique<SlowReader>(*std::move(reader), &taken));
  };
  auto store = OpenReplica();
  {
    Replica replica(*store, options_.learners, little);
    Follow(replica, *store, 11);
    EXPECT_GT(taken, 20);  // pieces, so that rows went ahead of the version
    EXPECT_EQ(replica.sight().pending_bytes, 0u);
    for (int i = 0; i < 4; ++i) {
      StepAndPublish(*publisher, 2);
      Follow(replica, *store, store_->Latest()->version().value);
    }
  }
  store.reset();
  ExpectSame(*OpenReplica()->Latest());
}

TEST_F(ReplicaTest, AMixOfTwoVersionsIsSeen) {
  const auto publisher = MakePublisher();
  for (const int steps : {2, 3}) StepAndPublish(*publisher, steps);
  // The first row of version 5 that version 2 had too gets the value that it had then.
  bool done = false;
  std::map<RecordPlace, std::string> before;
  CopyTopic("mixed", [&](FoundRecord& found) {
    const auto record = DecodeRecord(found.key, found.value);
    if (record->place.kind != RecordKind::kRow) return true;
    if (record->origin.version.value == 2) before[record->place] = record->payload;
    const auto was = before.find(record->place);
    if (record->origin.version.value != 5 || was == before.end() || done) return true;
    done = true;
    std::string value;
    AppendValue(record->place, record->origin, was->second, &value);
    found.value = value;
    return true;
  });
  ASSERT_TRUE(done);
  const auto store = OpenReplica();
  Replica replica(*store, options_.learners, source("mixed"));
  EXPECT_THAT(Refusal(replica), HasSubstr("version 5: a partition has other records of it"));
  EXPECT_EQ(store->Latest(), nullptr);
}

TEST_F(ReplicaTest, ABrokenLedgerChainIsRefusedByName) {
  const auto publisher = MakePublisher();
  for (const int steps : {5, 4}) StepAndPublish(*publisher, steps);
  // All sums are right: a writer of the topic can make them so. The chain is not.
  std::map<int32_t, uint64_t> sums;
  CopyTopic("forged", [&](FoundRecord& found) {
    const auto record = DecodeRecord(found.key, found.value);
    std::string value;
    if (record->place.kind == RecordKind::kLedger && record->place.number == 0) {
      auto entry = privacy::LedgerEntry::Decode(record->payload);
      EXPECT_TRUE(entry);
      entry->epsilon /= 2;
      const uint32_t sum = AppendValue(record->place, record->origin, entry->Encode(), &value);
      sums[found.partition] += sum - uint64_t{record->checksum};
      found.value = value;
    } else if (record->place.kind == RecordKind::kVersionEnd) {
      auto end = DecodeVersionEnd(record->payload);
      EXPECT_TRUE(end);
      end->checksum += std::exchange(sums[found.partition], 0);
      AppendValue(record->place, record->origin, EncodeVersionEnd(*end), &value);
      found.value = value;
    }
    return true;
  });
  const auto store = OpenReplica();
  Replica replica(*store, options_.learners, source("forged"));
  EXPECT_THAT(Refusal(replica), HasSubstr("the ledger's chain is broken"));
  EXPECT_EQ(store->Latest(), nullptr);
}

TEST_F(ReplicaTest, OtherModelsTopicsAndStoresAreRefusedByName) {
  const auto publisher = MakePublisher();
  StepAndPublish(*publisher, 2);
  {  // A learner that the feed lacks; one that is another model.
    store::ReplicaOptions options = replica_options("others");
    options.learners.push_back(store::MakeLearner("more", {{"x", 5, 2, 0}}));
    auto store = store::ReplicaStore::Open(options);
    ASSERT_TRUE(store);
    Replica replica(**store, options.learners, source());
    EXPECT_THAT(Refusal(replica), HasSubstr("the feed has no learner 'more'"));
  }
  {
    store::ReplicaOptions options = replica_options("model");
    options.learners[0].promise.model_fingerprint.fill(0xee);
    auto store = store::ReplicaStore::Open(options);
    ASSERT_TRUE(store);
    Replica replica(**store, options.learners, source());
    EXPECT_THAT(Refusal(replica), HasSubstr("the model fingerprint differs"));
  }
  {
    auto store = OpenReplica();
    ReplicaSource bad = source();
    bad.check_topic = [] { return Status(Fail(ErrorCode::kRefused, "is not compacted")); };
    Replica replica(*store, options_.learners, bad);
    EXPECT_THAT(Refusal(replica), HasSubstr("is not compacted"));
  }
  auto store = OpenReplica();
  {
    Replica replica(*store, options_.learners, source());
    Follow(replica, *store, 2);
  }
  {  // The same store, another topic: made anew, with less in it.
    kafka_.Create("anew", kPartitions);
    Replica replica(*store, options_.learners, source("anew"));
    EXPECT_THAT(Refusal(replica), HasSubstr("it was made anew, or has lost records"));
  }
  {
    kafka_.Create("wider", kPartitions + 1);
    Replica replica(*store, options_.learners, source("wider"));
    EXPECT_THAT(Refusal(replica), HasSubstr("has 4 partitions, and its marks say 3"));
  }
  ExpectSame(*store->Latest());  // and goes on being shown
  ASSERT_TRUE(store->Settle());
  store.reset();
  // No trainer trains on a replica's store, and no replica goes into a trainer's.
  store::StoreOptions trainer = options_;
  trainer.path = replica_options().path;
  trainer.witness = folder_.root() + "/other-witness";
  const auto trained = store::Store::Open(trainer);
  ASSERT_FALSE(trained);
  EXPECT_EQ(trained.error().code, ErrorCode::kRefused);
  EXPECT_THAT(trained.error().message, HasSubstr("is a replica's"));
  snapshots_.clear();
  store_.reset();
  store::ReplicaOptions own = replica_options();
  own.path = options_.path;
  const auto replicated = store::ReplicaStore::Open(own);
  ASSERT_FALSE(replicated);
  EXPECT_EQ(replicated.error().code, ErrorCode::kRefused);
  EXPECT_THAT(replicated.error().message, HasSubstr("is a trainer's"));
}

// A trainer's store is restored, and takes the feed over: versions of another lineage follow.
TEST_F(ReplicaTest, ATrainerOfAnotherLineageIsRefusedAndWhatIsShownStays) {
  auto publisher = MakePublisher();
  StepAndPublish(*publisher, 3);
  const auto store = OpenReplica();
  Replica replica(*store, options_.learners, source());
  Follow(replica, *store, 3);
  publisher.reset();
  const auto lost = std::move(store_);
  options_.path += "-2";
  options_.witness += "-2";
  store_ = store::MustOpen(options_);
  Steps(5);
  publisher = MakePublisher(/*takes_over=*/true);
  MustPublish(*publisher);
  EXPECT_THAT(Refusal(replica), HasSubstr("another store publishes there now"));
  ExpectSame(*store->Latest());
  EXPECT_EQ(store->Latest()->version().value, 3u);
  // An empty store begins with what is there now.
  snapshots_.clear();
  snapshots_[5] = store_->Latest();
  const auto fresh = OpenReplica("fresh");
  Replica other(*fresh, options_.learners, source());
  Follow(other, *fresh, 5);
}

TEST_F(ReplicaTest, AReleaseCheckpointIsABeginning) {
  const auto publisher = MakePublisher();
  StepAndPublish(*publisher, 3);
  Steps(1);
  const std::string parent = folder_.root() + "/checkpoints";
  const auto made =
      store_->MakeCheckpoint({.kind = store::CheckpointKind::kRelease, .parent = parent});
  ASSERT_TRUE(made) << made.error().message;
  snapshots_[4] = store_->Latest();
  const auto store = OpenReplica();
  ReplicaSource from = source();
  from.checkpoint = made->place.folder;
  Replica replica(*store, options_.learners, from);
  ASSERT_TRUE(test::Eventually("the checkpoint is shown", [&] {
    const auto stepped = replica.Step(std::chrono::milliseconds(20));
    if (!stepped && stepped.error().code != ErrorCode::kUnavailable) {
      ADD_FAILURE() << stepped.error().message;
      return true;
    }
    return store->Latest() != nullptr;
  }));
  EXPECT_EQ(store->Latest()->version().value, 4u);
  ExpectSame(*store->Latest());
  StepAndPublish(*publisher, 2);
  Follow(replica, *store, 6);
}

TEST_F(ReplicaTest, BrokersThatAreAwayAreWaitedFor) {
  const auto publisher = MakePublisher();
  StepAndPublish(*publisher, 2);
  const auto store = OpenReplica();
  ReplicaSource impatient = source();
  impatient.patience = std::chrono::milliseconds(300);
  Replica replica(*store, options_.learners, impatient);
  Follow(replica, *store, 2);
  kafka_.SetDown(true);
  bool told = false;
  for (int i = 0; i < 30 && !told; ++i) {
    const auto stepped = replica.Step(std::chrono::milliseconds(100));
    told = !stepped;
    if (told) {
      EXPECT_EQ(stepped.error().code, ErrorCode::kUnavailable) << stepped.error().message;
    }
  }
  EXPECT_TRUE(told);
  ExpectSame(*store->Latest());
  kafka_.SetDown(false);
  StepAndPublish(*publisher, 1);
  Follow(replica, *store, 3);
}

}  // namespace
}  // namespace tacit::feed
