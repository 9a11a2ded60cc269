// The source of the stream room beside a real broker that asks for a password.
#include "stream/kafka/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/eventually.h"
#include "system/kafka/broker.h"

namespace tacit::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::unique_ptr<stream::Source> Open(stream::KafkaSourceOptions options) {
  auto source = stream::OpenKafkaSource(std::move(options), nullptr);
  EXPECT_TRUE(source) << source.error().message;
  return source ? std::move(*source) : nullptr;
}

TEST(KafkaSourceTest, WhoIsNotLetInIsToldSoAtTheStart) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Broker broker({.secure = true});
  broker.CreateTopic("t", 1);
  stream::KafkaSourceOptions options;
  options.topic = "t";
  options.open_timeout = kPatience;  // a slow opening is not left to Poll
  options.properties.values = {
      {"bootstrap.servers", broker.sasl_tls()}, {"group.id", "t"},
      {"security.protocol", "sasl_ssl"},        {"sasl.mechanism", "SCRAM-SHA-512"},
      {"ssl.ca.location", broker.ca_file()},    {"sasl.username", broker.user()},
      {"sasl.password", "wrong-as-can-be"}};
  const Status refused = Open(options)->Seek({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << refused.error().message;
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("topic 't'"), HasSubstr("the brokers refuse a client"),
                    testing::Not(HasSubstr("wrong-as-can-be"))));
  std::string password = ReadFile(broker.password_file());
  while (!password.empty() && password.back() == '\n') password.pop_back();
  options.properties.values.back().second = password;
  const Status let_in = Open(options)->Seek({});
  EXPECT_TRUE(let_in) << let_in.error().message;
}

}  // namespace
}  // namespace tacit::test
