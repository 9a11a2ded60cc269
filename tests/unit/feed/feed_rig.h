#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "feed/inspection.h"
#include "feed/publisher.h"
#include "stream/kafka/producer.h"
#include "stream/kafka/topic_reader.h"
#include "support/eventually.h"
#include "unit/store/script.h"
#include "unit/stream/mock_kafka.h"

// A store of the store tests' script that publishes to librdkafka's mock of a broker.
namespace tacit::feed {

struct FoundRecord {
  int32_t partition = 0;
  uint64_t offset = 0;
  std::string key, value;
};

class FeedTest : public ::testing::Test {
 protected:
  static constexpr char kTopic[] = "model";
  static constexpr int32_t kPartitions = 3;

  FeedTest() : options_(store::TestOptions(folder_)) {
    options_.outbox_bytes = uint64_t{1} << 30;
    kafka_.Create(kTopic, kPartitions);
    store_ = store::MustOpen(options_);
  }

  stream::KafkaProperties properties() const {
    return {{{"bootstrap.servers", kafka_.bootstrap()}, {"linger.ms", "1"}}};
  }
  std::unique_ptr<Publisher> MakePublisher(bool takes_over = false,
                                           const std::string& topic = kTopic) {
    return std::make_unique<Publisher>(
        *store_, clock_,
        PublisherOptions{.properties = properties(),
                         .topic = topic,
                         .takes_over = takes_over,
                         // The mock answers no question for settings.
                         .check_topic = [] { return Status(); }});
  }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) {
      const Status step = store::Script::Step(*store_);
      ASSERT_TRUE(step) << step.error().message;
    }
  }
  void Reopen() {
    ASSERT_TRUE(store_->Settle());
    store_.reset();
    store_ = store::MustOpen(options_);
  }
  // Publishes the last commit; a failure is one of the test.
  PublishedVersion MustPublish(Publisher& publisher) {
    Result<std::optional<PublishedVersion>> published = publisher.Publish();
    while (!published && published.error().code == ErrorCode::kUnavailable)
      published = publisher.Publish();
    EXPECT_TRUE(published) << published.error().message;
    EXPECT_TRUE(published && *published) << "nothing was published";
    return published && *published ? **published : PublishedVersion{};
  }

  std::vector<FoundRecord> ReadTopic(const std::string& topic = kTopic) const {
    std::vector<FoundRecord> records;
    const Status read = stream::ReadKafkaTail(
        properties(), topic, 1'000'000, test::kPatience,
        [&](const stream::KafkaTopicRecord& record) -> Status {
          records.push_back({record.partition, record.offset, std::string(*record.key),
                             std::string(*record.value)});
          return {};
        });
    EXPECT_TRUE(read) << read.error().message;
    return records;
  }
  // Writes records where they were, to another topic, as `change` leaves them; in one transaction.
  void CopyTopic(const std::string& to, const std::function<bool(FoundRecord&)>& change) {
    kafka_.Create(to, kPartitions);
    auto producer = stream::KafkaProducer::Open({.properties = properties(), .topic = to});
    ASSERT_TRUE(producer) << producer.error().message;
    for (FoundRecord record : ReadTopic()) {
      if (!change(record)) continue;
      ASSERT_TRUE((*producer)->Send(
          {.partition = record.partition, .key = record.key, .value = record.value},
          test::kPatience));
    }
    ASSERT_TRUE((*producer)->Flush(test::kPatience));
  }
  Inspection Inspect(const std::string& topic = kTopic) const {
    auto found = InspectFeed(properties(), topic, test::kPatience, {});
    EXPECT_TRUE(found) << found.error().message;
    return found ? *std::move(found) : Inspection{};
  }

  SystemClock clock_;
  store::TestFolder folder_;
  store::StoreOptions options_;
  mutable stream::MockKafka kafka_;
  std::unique_ptr<store::Store> store_;
};

}  // namespace tacit::feed
