// The broker that the other tests rely on, and what they write to and read from it.
#include "system/kafka/broker.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "system/kafka/clients.h"
#include "system/kafka/topic.h"

namespace tacit::test {
namespace {

std::vector<TopicRecord> Numbered(int count) {
  std::vector<TopicRecord> records;
  for (int i = 0; i < count; ++i)
    records.push_back({.partition = i % 3,
                       .key = "k" + std::to_string(i),
                       .value = "v" + std::to_string(i),
                       .headers = {{"n", std::to_string(i)}}});
  return records;
}

void ExpectNumbered(const std::vector<TopicRecord>& records, int count) {
  ASSERT_EQ(records.size(), static_cast<size_t>(count));
  for (const TopicRecord& record : records) {
    const int64_t i = record.offset * 3 + record.partition;
    EXPECT_EQ(record.key, "k" + std::to_string(i));
    EXPECT_EQ(record.value, "v" + std::to_string(i));
    EXPECT_EQ(record.Header("n"), std::to_string(i));
  }
}

TEST(BrokerTest, HoldsWhatItWasGivenOverKillsAndRestarts) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker broker;
  broker.CreateTopic("t", 3);
  WriteTopic(broker.bootstrap(), "t", Numbered(300));
  broker.Kill();
  EXPECT_FALSE(broker.running());
  broker.Start();
  ExpectNumbered(ReadTopic(broker.bootstrap(), "t"), 300);
  broker.Suspend();
  broker.Continue();
  broker.GrowTopic("t", 4);
  WriteTopic(broker.bootstrap(), "t", std::vector<TopicRecord>{{.partition = 3, .value = "new"}});
  EXPECT_EQ(TopicSize(broker.bootstrap(), "t"), 301);
  broker.DeleteRecordsBefore("t", 0, 40);
  EXPECT_EQ(TopicSize(broker.bootstrap(), "t"), 261);
  broker.DeleteTopic("t");
  EXPECT_FALSE(ReadCommitted(broker.bootstrap(), "nobody", "t", 0));
  broker.Stop();
  EXPECT_FALSE(broker.running());
}

class SecureBrokerTest : public testing::TestWithParam<const char*> {
 protected:
  void ExpectReadable(const Broker& broker, const std::string& mechanism) {
    SCOPED_TRACE(mechanism);
    ExpectNumbered(ReadTopic(broker.sasl_tls(), "t",
                             {{"security.protocol", "sasl_ssl"},
                              {"ssl.ca.location", broker.ca_file()},
                              {"sasl.mechanism", mechanism},
                              {"sasl.username", broker.user()},
                              {"sasl.password", ReadFile(broker.password_file())}}),
                   30);
  }
};

TEST_P(SecureBrokerTest, SpeaksTlsAndSaslToWhoKnowsThePassword) {
  const std::string version = GetParam();
  TACIT_NEED_BROKER(version);
  Broker broker({.version = version, .secure = true});
  broker.CreateTopic("t", 3);
  WriteTopic(broker.tls(), "t", Numbered(30),
             {{"security.protocol", "ssl"}, {"ssl.ca.location", broker.ca_file()}});
  ExpectReadable(broker, "PLAIN");
  // Kafka 4 refuses the SCRAM of librdkafka before 2.6.1 (its pull request 4895).
  if (version >= "4" && rd_kafka_version() < 0x020601ff) return;
  ExpectReadable(broker, "SCRAM-SHA-256");
  ExpectReadable(broker, "SCRAM-SHA-512");
}

INSTANTIATE_TEST_SUITE_P(Versions, SecureBrokerTest, testing::Values("3.9.1", "4.1.0"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace tacit::test
