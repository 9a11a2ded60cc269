#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stream/kafka/client.h"

namespace tacit::stream {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

KafkaProperties With(std::vector<std::pair<std::string, std::string>> more) {
  KafkaProperties properties{{{"bootstrap.servers", "localhost:1"}}};
  properties.values.insert(properties.values.end(), more.begin(), more.end());
  return properties;
}

std::string RefusalOf(std::vector<std::pair<std::string, std::string>> more,
                      KafkaRole role = KafkaRole::kConsumer) {
  KafkaContext context;
  const auto conf = MakeKafkaConf(With(std::move(more)), role, &context);
  if (conf) return "";
  EXPECT_EQ(conf.error().code, ErrorCode::kInvalidArgument);
  return conf.error().message;
}

std::string ValueOf(const KafkaConf& conf, const char* name) {
  char value[512];
  size_t size = sizeof(value);
  return rd_kafka_conf_get(conf.get(), name, value, &size) == RD_KAFKA_CONF_OK ? value : "?";
}

TEST(KafkaClient, ASettingThatDoesNotExistIsNamedWithTheNearestThatDoes) {
  EXPECT_THAT(RefusalOf({{"bootstrap.server", "x"}}),
              AllOf(HasSubstr("kafka.bootstrap.server: "), HasSubstr("no such setting"),
                    HasSubstr("did you mean 'bootstrap.servers'")));
}

TEST(KafkaClient, AValueThatIsNoneIsNamed) {
  EXPECT_THAT(RefusalOf({{"socket.timeout.ms", "soon"}}),
              HasSubstr("kafka.socket.timeout.ms: Invalid value"));
}

TEST(KafkaClient, WhatRunsCodeIsRefusedOfBothRoles) {
  for (const char* name : {"plugin.library.paths", "sasl.kerberos.kinit.cmd", "ssl.engine.location",
                           "ssl.engine.id", "ssl.providers"}) {
    for (const KafkaRole role : {KafkaRole::kConsumer, KafkaRole::kProducer})
      EXPECT_THAT(RefusalOf({{name, "evil"}}, role),
                  AllOf(HasSubstr(std::string("kafka.") + name), HasSubstr("refused"),
                        Not(HasSubstr("evil"))));
  }
}

TEST(KafkaClient, WhatWouldTakeAwayAGuaranteeIsRefusedAndTheSameValueIsNot) {
  const std::vector<std::array<const char*, 3>> cases = {
      {"enable.auto.commit", "true", "false"},
      {"auto.commit.enable", "true", "false"},
      {"enable.auto.offset.store", "1", "0"},
      {"auto.offset.reset", "earliest", "error"},
      {"isolation.level", "read_uncommitted", "read_committed"},
      {"offset.store.method", "file", "broker"},
      {"enable.partition.eof", "false", "true"},
      {"log.queue", "true", "false"}};
  for (const auto& [name, wrong, right] : cases) {
    EXPECT_THAT(RefusalOf({{name, wrong}}), AllOf(HasSubstr(std::string("kafka.") + name),
                                                  HasSubstr("must be"), HasSubstr(wrong)));
    EXPECT_EQ(RefusalOf({{name, right}}), "") << name;
  }
}

TEST(KafkaClient, WhatNobodySetsIsSetForSafety) {
  KafkaContext context;
  const auto conf =
      MakeKafkaConf(With({{"reconnect.backoff.max.ms", "7000"}}), KafkaRole::kConsumer, &context);
  ASSERT_TRUE(conf);
  EXPECT_EQ(ValueOf(*conf, "enable.auto.commit"), "false");
  EXPECT_EQ(ValueOf(*conf, "enable.auto.offset.store"), "false");
  EXPECT_EQ(ValueOf(*conf, "auto.offset.reset"), "error");
  EXPECT_EQ(ValueOf(*conf, "isolation.level"), "read_committed");
  EXPECT_EQ(ValueOf(*conf, "check.crcs"), "true");
  EXPECT_EQ(ValueOf(*conf, "reconnect.backoff.max.ms"), "7000") << "what one sets is kept";
  const auto unchecked =
      MakeKafkaConf(With({{"check.crcs", "false"}}), KafkaRole::kConsumer, &context);
  ASSERT_TRUE(unchecked);
  EXPECT_EQ(ValueOf(*unchecked, "check.crcs"), "false");
}

TEST(KafkaClient, AProducerTakesTheSameSettings) {
  EXPECT_EQ(
      RefusalOf({{"group.id", "tacit"}, {"auto.offset.reset", "earliest"}}, KafkaRole::kProducer),
      "");
}

// librdkafka quotes wrong values, and under `debug: conf` all of them.
TEST(KafkaClient, SecretsAreInNoMessageAndNoLogLine) {
  EXPECT_THAT(RefusalOf({{"sasl.oauthbearer.client.secret", "hunter2"}, {"nonsense", "1"}}),
              Not(HasSubstr("hunter2")));
  KafkaContext context;
  ASSERT_TRUE(MakeKafkaConf(With({{"sasl.password", "hunter2"},
                                  {"sasl.oauthbearer.config", "principal=hunter3"},
                                  {"sasl.username", "joe"}}),
                            KafkaRole::kConsumer, &context));
  EXPECT_EQ(context.Redact("joe: hunter2, hunter2 and principal=hunter3."),
            "joe: [redacted], [redacted] and [redacted].");
}

// Values kept outside of the configuration are shown nowhere, under any name.
TEST(KafkaClient, HiddenValuesAreInNoMessageEither) {
  KafkaProperties properties = With({{"sasl.username", "joe-the-user"}});
  properties.hidden = {"sasl.username", "session.timeout.ms"};
  KafkaContext context;
  ASSERT_TRUE(MakeKafkaConf(properties, KafkaRole::kConsumer, &context));
  EXPECT_EQ(context.Redact("I am joe-the-user."), "I am [redacted].");
  properties.values.emplace_back("session.timeout.ms", "hunter2");
  const auto refused = MakeKafkaConf(properties, KafkaRole::kConsumer, &context);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("kafka.session.timeout.ms"), Not(HasSubstr("hunter2"))));
}

TEST(KafkaClient, ClientsAreMadeWithoutABroker) {
  for (const KafkaRole role : {KafkaRole::kConsumer, KafkaRole::kProducer}) {
    KafkaContext context;
    auto conf = MakeKafkaConf(With({}), role, &context);
    ASSERT_TRUE(conf);
    EXPECT_TRUE(MakeKafkaClient(std::move(*conf), role, context));
  }
  KafkaContext context;
  auto conf = MakeKafkaConf(With({{"security.protocol", "sasl_plaintext"},
                                  {"sasl.mechanism", "SCRAM-SHA-256"},
                                  {"sasl.password", "hunter2"}}),
                            KafkaRole::kConsumer, &context);
  ASSERT_TRUE(conf);
  const auto client = MakeKafkaClient(std::move(*conf), KafkaRole::kConsumer, context);
  ASSERT_FALSE(client);
  EXPECT_THAT(client.error().message, AllOf(HasSubstr("sasl.username"), Not(HasSubstr("hunter2"))));
}

}  // namespace
}  // namespace tacit::stream
