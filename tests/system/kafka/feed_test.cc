// A feed with a real broker: versions are seen wholly or not at all, the last publisher ends
// the one before, a topic that would lose rows is refused, and compaction leaves the model.
#include <gmock/gmock.h>

#include <atomic>
#include <set>
#include <thread>

#include "feed/inspection.h"
#include "feed/publisher.h"
#include "support/eventually.h"
#include "system/kafka/broker.h"
#include "unit/store/script.h"

namespace tacit::feed {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr milliseconds kAnswer(20'000);

// Compacts all that it can, all the time.
test::Broker& CompactingBroker() {
  static test::Broker broker({.properties = "log.cleaner.backoff.ms=50\n"
                                            "log.cleaner.dedupe.buffer.size=4194304\n"
                                            "log.initial.task.delay.ms=100\n"
                                            "log.segment.delete.delay.ms=0\n"});
  return broker;
}

class FeedBrokerTest : public ::testing::Test {
 protected:
  static constexpr int32_t kPartitions = 3;

  void SetUp() override {
    TACIT_NEED_BROKER(test::kDefaultVersion);
    topic_ = test::FreshName("feed");
    options_ = store::TestOptions(folder_);
    options_.outbox_bytes = uint64_t{1} << 30;
    store_ = store::MustOpen(options_);
  }
  void MakeTopic(const std::string& policy) {
    CompactingBroker().CreateTopic(topic_, kPartitions,
                                   {{"cleanup.policy", policy},
                                    {"segment.bytes", "16384"},
                                    {"min.cleanable.dirty.ratio", "0.001"},
                                    {"delete.retention.ms", "0"}});
  }
  stream::KafkaProperties properties() const {
    return {{{"bootstrap.servers", CompactingBroker().bootstrap()},
             {"linger.ms", "1"},
             {"batch.num.messages", "20"}}};
  }
  std::unique_ptr<Publisher> MakePublisher() {
    return std::make_unique<Publisher>(
        *store_, clock_,
        PublisherOptions{.properties = properties(), .topic = topic_, .patience = kAnswer});
  }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(store::Script::Step(*store_));
  }
  static Result<std::optional<PublishedVersion>> Publish(Publisher& publisher) {
    auto published = publisher.Publish();
    for (int i = 0; i < 20 && !published && published.error().code == ErrorCode::kUnavailable; ++i)
      published = publisher.Publish();
    return published;
  }
  Inspection Inspect() const {
    auto found = InspectFeed(properties(), topic_, kAnswer, {});
    EXPECT_TRUE(found) << found.error().message;
    return found ? *std::move(found) : Inspection{};
  }

  // Waits until a version is seen: a broker answers before the ends of a transaction are written.
  Inspection Await(uint64_t version) const {
    Inspection found;
    EXPECT_TRUE(test::Eventually("the version is seen", [&] {
      found = Inspect();
      return !found.versions.empty() && found.versions.back().origin.version.value == version;
    }));
    EXPECT_FALSE(found.versions.empty());
    EXPECT_THAT(found.faults, IsEmpty());
    return found;
  }

  SystemClock clock_;
  store::TestFolder folder_;
  store::StoreOptions options_;
  std::unique_ptr<store::Store> store_;
  std::string topic_;
};

// Reads all the time while versions are published: each reading finds whole versions alone, up to
// one that was the newest meanwhile. Then all but the newest records are compacted away, and the
// newest version is whole still.
TEST_F(FeedBrokerTest, ReadersSeeWholeVersionsAndCompactionLeavesTheModel) {
  MakeTopic("compact");
  const auto publisher = MakePublisher();
  Steps(1);
  uint64_t published_records = 0;
  const auto first = Publish(*publisher);
  ASSERT_TRUE(first) << first.error().message;
  published_records += (*first)->records;
  Await(1);
  std::atomic<bool> done = false;
  uint64_t readings = 0;
  std::thread reader([&] {
    while (!done || readings == 0) {
      const Inspection found = Inspect();
      ++readings;
      EXPECT_FALSE(found.versions.empty());
      if (found.versions.empty()) continue;
      EXPECT_EQ(found.versions.back().ends, static_cast<uint32_t>(kPartitions));
    }
  });
  for (int i = 0; i < 30; ++i) {
    Steps(1);
    const auto published = Publish(*publisher);
    EXPECT_TRUE(published) << published.error().message;
    if (published) published_records += (*published)->records;
  }
  done = true;
  reader.join();
  Await(31);
  EXPECT_TRUE(test::Eventually("the cleaner takes what is replaced", [&] {
    std::this_thread::sleep_for(milliseconds(200));  // each reading is work for the broker
    return Inspect().records < published_records / 2;
  })) << CompactingBroker().Log();
  const Inspection compacted = Inspect();
  EXPECT_THAT(compacted.faults, IsEmpty());
  EXPECT_TRUE(compacted.versions.back().whole());
  EXPECT_EQ(compacted.versions.back().origin.version.value, 31u);
  std::set<uint64_t> written;
  for (uint64_t seq = 1; seq <= 31; ++seq)
    for (const uint64_t row : store::Script::RowsOf(seq)) written.insert(row);
  EXPECT_GE(compacted.rows, written.size());
}

// Two publishers of one store, as when a daemon that was thought dead comes back.
TEST_F(FeedBrokerTest, WhoeverPublishesLastEndsWhoeverDidBefore) {
  MakeTopic("compact");
  const auto first = MakePublisher(), second = MakePublisher();
  Steps(2);
  ASSERT_TRUE(Publish(*first));
  Steps(1);
  const auto taken = Publish(*second);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_FALSE((*taken)->whole);
  Steps(1);
  for (int i = 0; i < 2; ++i) {
    const auto fenced = Publish(*first);
    ASSERT_FALSE(fenced);
    EXPECT_EQ(fenced.error().code, ErrorCode::kRefused) << fenced.error().message;
    EXPECT_THAT(fenced.error().message, HasSubstr("another producer has taken over"));
  }
  const auto published = Publish(*second);
  ASSERT_TRUE(published) << published.error().message;
  Await(4);
}

TEST_F(FeedBrokerTest, ATopicThatLosesRowsIsRefused) {
  for (const char* policy : {"delete", "compact,delete"}) {
    topic_ = test::FreshName("feed");
    MakeTopic(policy);
    if (store_->Latest()->version().value == 0) Steps(1);
    const auto refused = Publish(*MakePublisher());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
    EXPECT_THAT(refused.error().message,
                HasSubstr("cleanup.policy is '" + std::string(policy) + "'"));
    EXPECT_EQ(Inspect().records, 0u);
  }
}

// A topic that was made anew is a new feed: it gets everything, and another id.
TEST_F(FeedBrokerTest, ATopicMadeAnewGetsEverythingAgain) {
  MakeTopic("compact");
  Steps(2);
  ASSERT_TRUE(Publish(*MakePublisher()));
  const FeedId before = Await(2).versions.back().end.feed;
  CompactingBroker().DeleteTopic(topic_);
  MakeTopic("compact");
  Steps(1);
  const auto again = Publish(*MakePublisher());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE((*again)->whole);
  const Inspection found = Await(3);
  EXPECT_NE(found.versions.back().end.feed, before);
}

// A broker that is killed and comes back: what was committed meanwhile is published then.
TEST_F(FeedBrokerTest, ABrokerThatWasAwayGetsWhatItMissed) {
  MakeTopic("compact");
  const auto publisher = MakePublisher();
  Steps(1);
  ASSERT_TRUE(Publish(*publisher));
  CompactingBroker().Kill();
  Steps(5);
  CompactingBroker().Start();
  Result<std::optional<PublishedVersion>> published = publisher->Publish();
  EXPECT_TRUE(test::Eventually("it is published", [&] {
    if (!published) published = publisher->Publish();
    return published.has_value();
  }));
  ASSERT_TRUE(*published);
  EXPECT_EQ((*published)->version.value, 6u);
  EXPECT_FALSE((*published)->whole);
  Await(6);
}

}  // namespace
}  // namespace tacit::feed
