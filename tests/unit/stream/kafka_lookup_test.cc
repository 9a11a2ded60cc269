#include <gtest/gtest.h>

#include <string>

#include "mock_kafka.h"
#include "stream/kafka/lookup.h"
#include "stream/kafka/topic.h"
#include "support/eventually.h"

namespace tacit::stream {
namespace {

using std::chrono::milliseconds;
using test::Eventually;

class KafkaLookupTest : public testing::Test {
 protected:
  KafkaLookupTest() {
    kafka_.Create("t", 1);
    kafka_.WriteNumbers("t", 0, 0, 10);
  }
  KafkaProperties properties() const { return {{{"bootstrap.servers", kafka_.bootstrap()}}}; }
  void Open(KafkaLookup* lookup) {
    const Status opened = lookup->Open(properties(), "t");
    ASSERT_TRUE(opened) << opened.error().message;
  }
  // The error that a record is found with, and its value.
  struct Found {
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__FAIL;
    std::string value;
  };
  static Found MustFind(KafkaLookup* lookup, uint64_t offset) {
    Found found;
    EXPECT_TRUE(Eventually("it is found", [&] {
      const KafkaMessage message = lookup->Find(0, offset, milliseconds(100));
      if (message == nullptr) return false;
      found.error = message->err;
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        found.value.assign(static_cast<const char*>(message->payload), message->len);
      return true;
    }));
    return found;
  }

  MockKafka kafka_;
};

TEST_F(KafkaLookupTest, FindsRecordsInAnyOrder) {
  KafkaLookup lookup;
  Open(&lookup);
  for (const uint64_t offset : {3u, 4u, 9u, 0u, 9u})
    EXPECT_EQ(MustFind(&lookup, offset).value, std::to_string(offset));
}

// The source has read the record, so that a partition that ends before it may be that of a new
// leader who does not know better yet. Taken for gone, the record's dead letter would lose its
// value.
TEST_F(KafkaLookupTest, AnEndBeforeTheRecordIsNotBelievedAtOnce) {
  KafkaLookup lookup(test::kPatience * 10);
  Open(&lookup);
  EXPECT_EQ(MustFind(&lookup, 9).value, "9");
  EXPECT_EQ(lookup.Find(0, 10, milliseconds(1000)), nullptr);
  kafka_.WriteNumbers("t", 0, 10, 2);
  EXPECT_EQ(MustFind(&lookup, 10).value, "10");
  EXPECT_EQ(MustFind(&lookup, 11).value, "11");
}

TEST_F(KafkaLookupTest, AnEndThatStaysIsBelieved) {
  KafkaLookup lookup(milliseconds(300));
  Open(&lookup);
  EXPECT_EQ(lookup.Find(0, 10, milliseconds(0)), nullptr);
  EXPECT_EQ(MustFind(&lookup, 10).error, RD_KAFKA_RESP_ERR__PARTITION_EOF);
  EXPECT_EQ(MustFind(&lookup, 3).value, "3");
}

TEST_F(KafkaLookupTest, RecordsOutliveAnExceptionInTheBroker) {
  kafka_.FailFetches(2);
  const PartitionOffset from[] = {{.partition = 0, .offset = 4}};
  KafkaProperties of_group = properties();
  of_group.values.emplace_back("group.id", "g");
  const auto found = ReadRecordsAt(of_group, "t", from, test::kPatience);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->at(0).offset, 4u);
}

// Taken for the end of the partition, it would leave the record that was read unchecked.
TEST_F(KafkaLookupTest, RecordsAreNotLeftOutForAnEndBeforeThem) {
  const PartitionOffset from[] = {{.partition = 0, .offset = 10}};
  KafkaProperties of_group = properties();
  of_group.values.emplace_back("group.id", "g");
  const auto early = ReadRecordsAt(of_group, "t", from, milliseconds(2000));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::kUnavailable);
  kafka_.WriteNumbers("t", 0, 10, 1);
  const auto found = ReadRecordsAt(of_group, "t", from, test::kPatience);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->at(0).offset, 10u);
}

}  // namespace
}  // namespace tacit::stream
