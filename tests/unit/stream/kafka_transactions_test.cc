// Producers that write in transactions, with librdkafka's mock broker. It hands records out as they
// come, decided or not: visibility is tested with a real broker (tests/system/kafka/feed_test.cc).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "mock_kafka.h"
#include "stream/kafka/producer.h"
#include "stream/kafka/topic_reader.h"

namespace tacit::stream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class KafkaTransactionsTest : public testing::Test {
 protected:
  KafkaTransactionsTest() { kafka_.Create("t", 2); }

  KafkaProperties properties() const { return {{{"bootstrap.servers", kafka_.bootstrap()}}}; }
  std::unique_ptr<KafkaProducer> Open() {
    auto producer = KafkaProducer::Open(
        {.properties = properties(), .topic = "t", .transactional_id = "feed-t"});
    EXPECT_TRUE(producer) << producer.error().message;
    return producer ? std::move(*producer) : nullptr;
  }
  // Repeats a request until it is decided.
  static Status Decide(const std::function<Status()>& request) {
    Status status = request();
    while (!status && status.error().code == ErrorCode::kUnavailable) status = request();
    return status;
  }
  static Status Init(KafkaProducer& producer) {
    return Decide([&] { return producer.InitTransactions(test::kPatience); });
  }
  static Status Commit(KafkaProducer& producer) {
    return Decide([&] { return producer.CommitTransaction(test::kPatience); });
  }
  // Keys and values by (partition, offset).
  std::map<std::pair<int32_t, uint64_t>, std::string> ReadAll() const {
    std::map<std::pair<int32_t, uint64_t>, std::string> all;
    const Status read = ReadKafkaTail(
        properties(), "t", 1000, test::kPatience, [&](const KafkaTopicRecord& record) -> Status {
          all[{record.partition, record.offset}] =
              fmt::format("{}={}", record.key.value_or("-"), record.value.value_or("-"));
          return {};
        });
    EXPECT_TRUE(read) << read.error().message;
    return all;
  }

  MockKafka kafka_;
};

TEST_F(KafkaTransactionsTest, WritesWholeTransactions) {
  const auto producer = Open();
  ASSERT_TRUE(Init(*producer));
  for (int version = 1; version <= 2; ++version) {
    ASSERT_TRUE(producer->BeginTransaction());
    for (int32_t partition : {0, 1})
      ASSERT_TRUE(producer->Send(
          {.partition = partition, .key = "k", .value = std::to_string(version)}, test::kPatience));
    const Status committed = Commit(*producer);
    ASSERT_TRUE(committed) << committed.error().message;
  }
  std::vector<std::string> values;
  for (const auto& [place, text] : ReadAll()) values.push_back(text);
  EXPECT_THAT(values, ElementsAre("k=1", "k=2", "k=1", "k=2"));
}

// The mock itself lets everybody write: a real broker fences in tests/system/kafka/feed_test.cc.
TEST_F(KafkaTransactionsTest, OneWhomABrokerFencesIsTold) {
  constexpr int16_t kEndTransaction = 26;
  const auto first = Open();
  ASSERT_TRUE(Init(*first));
  ASSERT_TRUE(first->BeginTransaction());
  ASSERT_TRUE(first->Send({.partition = 0, .key = "k", .value = "first"}, test::kPatience));
  rd_kafka_mock_push_request_errors(kafka_.cluster(), kEndTransaction, 1,
                                    RD_KAFKA_RESP_ERR_PRODUCER_FENCED);
  const Status refused = Commit(*first);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused) << refused.error().message;
  EXPECT_THAT(refused.error().message,
              HasSubstr("topic 't': another producer has taken over 'feed-t'"));
}

TEST_F(KafkaTransactionsTest, ItsNameIsNotForTheConfigurationToSet) {
  const auto refused = KafkaProducer::Open(
      {.properties = {{{"transactional.id", "mine"}}}, .topic = "t", .transactional_id = "feed-t"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("kafka.transactional.id"));
}

// Nothing is decided without a broker, and the caller is told that it may ask again.
TEST(KafkaTransactionsAwayTest, NoBrokerIsNoDecision) {
  const auto producer = KafkaProducer::Open({.properties = {{{"bootstrap.servers", "127.0.0.1:1"}}},
                                             .topic = "t",
                                             .transactional_id = "feed-t"});
  ASSERT_TRUE(producer) << producer.error().message;
  const Status asked = (*producer)->InitTransactions(std::chrono::milliseconds(200));
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, ErrorCode::kUnavailable) << asked.error().message;
}

TEST_F(KafkaTransactionsTest, AReaderGoesOnFromWhereItIs) {
  kafka_.WriteNumbers("t", 0, 0, 5);
  const auto opened = KafkaTopicReader::Open(properties(), "t");
  ASSERT_TRUE(opened) << opened.error().message;
  KafkaTopicReader& reader = **opened;
  const auto spans = reader.Spans(test::kPatience);
  ASSERT_TRUE(spans) << spans.error().message;
  ASSERT_EQ(spans->size(), 2u);
  EXPECT_EQ((*spans)[0].end, 5u);
  EXPECT_EQ((*spans)[1].end, 0u);
  const PartitionOffset from[] = {{.partition = 0, .offset = 2}, {.partition = 1, .offset = 0}};
  ASSERT_TRUE(reader.Seek(from));
  std::vector<std::pair<uint64_t, std::string>> read;
  const auto show = [&](const KafkaTopicRecord& record) -> Status {
    read.emplace_back(record.offset, record.value.value_or("-"));
    return {};
  };
  ASSERT_TRUE(reader.Read(test::kPatience, show));
  EXPECT_TRUE(reader.at_end());
  EXPECT_THAT(read, ElementsAre(Pair(2, "2"), Pair(3, "3"), Pair(4, "4")));
  EXPECT_EQ(reader.Position(0), 5u);
  EXPECT_EQ(reader.Position(1), 0u);
  // The end is an end until something comes; a failure of the caller's comes out as it is.
  kafka_.WriteNumbers("t", 0, 5, 1);
  EXPECT_TRUE(test::Eventually("the next one comes", [&] {
    EXPECT_TRUE(reader.Read(std::chrono::milliseconds(100), show));
    return read.size() == 4;
  }));
  kafka_.WriteNumbers("t", 0, 6, 1);
  Status failed;
  EXPECT_TRUE(test::Eventually("the last one fails", [&] {
    failed = reader.Read(std::chrono::milliseconds(100), [](const KafkaTopicRecord&) -> Status {
      return Fail(ErrorCode::kRefused, "not this one");
    });
    return !failed;
  }));
  EXPECT_EQ(failed.error().message, "not this one");
}

// A broker has one where a segment goes away while it reads it.
TEST_F(KafkaTransactionsTest, AReaderOutlivesAnExceptionInTheBroker) {
  kafka_.WriteNumbers("t", 0, 0, 2);
  kafka_.FailFetches(2);
  const auto reader = KafkaTopicReader::Open(properties(), "t");
  ASSERT_TRUE(reader) << reader.error().message;
  const PartitionOffset from[] = {{.partition = 0, .offset = 0}};
  ASSERT_TRUE((*reader)->Seek(from));
  std::vector<std::string> read;
  const auto show = [&](const KafkaTopicRecord& record) -> Status {
    read.emplace_back(record.value.value_or("-"));
    return {};
  };
  bool told = false;
  EXPECT_TRUE(test::Eventually("the records come", [&] {
    const Status status = (*reader)->Read(std::chrono::milliseconds(20), show);
    EXPECT_TRUE(status) << status.error().message;
    told = told || (*reader)->trouble() == "Unknown broker error";
    return !status || read.size() == 2;
  }));
  EXPECT_THAT(read, ElementsAre("0", "1"));
  EXPECT_TRUE(told) << "no fetch failed";
  EXPECT_EQ((*reader)->trouble(), "");
}

TEST_F(KafkaTransactionsTest, AnOffsetThatIsNotThereIsNamed) {
  kafka_.WriteNumbers("t", 0, 0, 5);
  const auto reader = KafkaTopicReader::Open(properties(), "t");
  ASSERT_TRUE(reader);
  const PartitionOffset from[] = {{.partition = 0, .offset = 70}};
  ASSERT_TRUE((*reader)->Seek(from));
  const Status read =
      (*reader)->Read(test::kPatience, [](const KafkaTopicRecord&) -> Status { return {}; });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(read.error().message, HasSubstr("topic 't': partition 0: offset 70 is not there"));
}

}  // namespace
}  // namespace tacit::stream
