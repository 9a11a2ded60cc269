#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "config/config.h"
#include "config/environment.h"
#include "sample.h"
#include "support/scoped_variable.h"
#include "support/temp_dir.h"

namespace tacit::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

constexpr char kPassword[] = "hunter2";

std::string KafkaSample(const std::string& source = "", const std::string& kafka = "") {
  return Sample("kind: generator\n", "kind: kafka\n  topic: clicks\n" + source) +
         "kafka:\n  bootstrap.servers: localhost:9092\n" + kafka;
}

std::string ErrorOf(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const Result<Config> config = Parse(yaml, "c.yaml", overrides);
  return config ? "valid" : config.error().message;
}

// A file that holds a secret, for the life of this object.
class SecretFile {
 public:
  explicit SecretFile(const std::string& text) { std::ofstream(path(), std::ios::binary) << text; }

  const std::string& directory() const { return directory_.path(); }
  std::string path() const { return directory_ / "password"; }

 private:
  const test::TempDir directory_;
};

TEST(Kafka, SourceIsReadWithItsDefaults) {
  const Result<Config> config = Parse(KafkaSample(), "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  const Source& source = config->source;
  EXPECT_EQ(source.kind, Source::Kind::kKafka);
  EXPECT_EQ(source.topic, "clicks");
  EXPECT_EQ(source.format, Source::Format::kCriteoTsv);
  EXPECT_EQ(source.framing, Source::Framing::kNone);
  EXPECT_EQ(source.on_period_lost, Source::OnPeriodLost::kRefuse);
  EXPECT_EQ(source.tick_ms, 0u);
  EXPECT_EQ(source.round_ms, 250u);
  EXPECT_EQ(source.schema_wait_ms, 60000u);
  EXPECT_EQ(config->kafka.dead_letter_topic, "");
}

TEST(Kafka, EveryKeyIsReadAndDumped) {
  const std::string yaml = KafkaSample(
      "  format: protobuf\n  framing: confluent\n  missing: reject\n  ahead_max_hours: 48\n"
      "  tick_ms: 60000\n  on_period_lost: close\n"
      "  registry:\n    url: https://registry:8081/\n    username: me\n"
      "    password: {credential: registry}\n    ca_file: /etc/ca.pem\n    timeout_ms: 500\n"
      "    schemas: {7: accept, 5f0c9e00-1111-2222-3333-0123456789ab: reject}\n");
  const Result<Config> config = Parse(yaml, "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->source.framing, Source::Framing::kConfluent);
  EXPECT_EQ(config->source.missing, Source::Missing::kReject);
  EXPECT_EQ(config->source.ahead_max_hours, 48u);
  EXPECT_EQ(config->source.tick_ms, 60000u);
  EXPECT_EQ(config->source.on_period_lost, Source::OnPeriodLost::kClose);
  const SchemaRegistry& registry = config->source.registry;
  EXPECT_EQ(registry.url, "https://registry:8081");
  EXPECT_EQ(registry.password.kind, Secret::Kind::kCredential);
  EXPECT_EQ(registry.timeout_ms, 500u);
  ASSERT_EQ(registry.schemas.size(), 2u);
  EXPECT_EQ(registry.schemas[0].name, "7");
  EXPECT_EQ(registry.schemas[1].value.text, "reject");
  const std::string dump = Dump(*config);
  const Result<Config> again = Parse(dump, "dump", {});
  ASSERT_TRUE(again) << again.error().message << "\n" << dump;
  EXPECT_EQ(Dump(*again), dump);
  for (const char* word : {"48", "60000", "close", "reject", "{credential: \"registry\"}", "500"})
    EXPECT_THAT(dump, HasSubstr(word));
}

TEST(Kafka, SettingsAreVerbatim) {
  const Result<Config> config =
      Parse(KafkaSample("", "  fetch.min.bytes: 0100\n  client.rack: ''\n  enable.ssl: true\n"),
            "c.yaml", {"kafka.debug=broker,topic", "kafka.fetch.min.bytes=7"});
  ASSERT_TRUE(config) << config.error().message;
  const auto values = ReadKafkaProperties(config->kafka);
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_THAT(*values, ElementsAre(Pair("bootstrap.servers", "localhost:9092"),
                                   Pair("fetch.min.bytes", "7"), Pair("client.rack", ""),
                                   Pair("enable.ssl", "true"), Pair("debug", "broker,topic")));
  const Result<Config> again = Parse(Dump(*config), "dump", {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*ReadKafkaProperties(again->kafka), *values);
}

TEST(Kafka, EnvironmentWritesDotsAsUnderscores) {
  const test::ScopedVariable servers("TACIT_KAFKA_BOOTSTRAP_SERVERS", "other:9092");
  const test::ScopedVariable password("TACIT_KAFKA_SASL_PASSWORD", "{credential: sasl}");
  const test::ScopedVariable schema("TACIT_SOURCE_REGISTRY_SCHEMAS_7", "accept");
  const Result<Config> config =
      Parse(KafkaSample("  format: json\n  framing: confluent\n"), "c.yaml", {"kafka.group.id=me"});
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->kafka.properties.size(), 3u);
  EXPECT_EQ(config->kafka.properties[0].value.text, "other:9092");
  EXPECT_EQ(config->kafka.properties[1].name, "sasl.password");
  EXPECT_EQ(config->kafka.properties[1].value.kind, Secret::Kind::kCredential);
  EXPECT_EQ(config->kafka.properties[1].value.place,
            "environment TACIT_KAFKA_SASL_PASSWORD: kafka.sasl.password");
  EXPECT_EQ(config->kafka.properties[2].name, "group.id");
  EXPECT_EQ(config->source.registry.schemas.at(0).name, "7");
}

TEST(Kafka, ConnectsNamesSayWhereDeadLettersGo) {
  const Result<Config> config =
      Parse(KafkaSample("",
                        "  errors.tolerance: all\n"
                        "  errors.deadletterqueue.topic.name: clicks.dead\n"),
            "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->kafka.dead_letter_topic, "clicks.dead");
  EXPECT_THAT(*ReadKafkaProperties(config->kafka),
              ElementsAre(Pair("bootstrap.servers", "localhost:9092")));
  EXPECT_EQ(Parse(Dump(*config), "dump", {})->kafka.dead_letter_topic, "clicks.dead");
}

TEST(Kafka, WhatCannotBeIsRefused) {
  EXPECT_EQ(ErrorOf(Sample("kind: generator", "kind: kafka\n  topic: clicks")),
            "c.yaml:1: kafka.bootstrap.servers: required, and has no default");
  EXPECT_EQ(ErrorOf(Sample("kind: generator", "kind: kafka")),
            "c.yaml:1: source.topic: required, and has no default");
  EXPECT_EQ(ErrorOf(KafkaSample(), {"source.topic=a/b"}),
            "override 'source.topic=a/b': source.topic: 'a/b' is no topic's name");
  EXPECT_THAT(ErrorOf(KafkaSample("  format: avro\n")),
              HasSubstr("source.avro.schema_file: is needed in a topic without framing"));
  EXPECT_THAT(
      ErrorOf(KafkaSample("  format: avro\n  framing: confluent\n"
                          "  registry: {schemas: {7: accept}}\n")),
      HasSubstr("source.avro.schema_file: is needed where source.registry.schemas accepts"));
  EXPECT_THAT(ErrorOf(KafkaSample("  format: avro\n  avro: {label: what, schema_file: a.avsc}\n")),
              HasSubstr("source.avro.label: 'what' "));
  EXPECT_EQ(ErrorOf(KafkaSample("  format: jsn\n")),
            "c.yaml:4: source.format: must be one of criteo_tsv, json, csv, protobuf, avro, is "
            "'jsn' (did you "
            "mean 'json'?)");
  EXPECT_THAT(
      ErrorOf(Sample("kind: generator", "kind: log\n  format: protobuf\n  files: /dev/null")),
      HasSubstr("c.yaml:3: source.format: a log file has one record a line"));
  EXPECT_EQ(ErrorOf(KafkaSample("  framing: confluent\n  registry: {url: http://r}\n")),
            "c.yaml:1: source.format: source.framing confluent goes with json, protobuf and avro, "
            "is 'criteo_tsv'");
  const std::string framed = "  format: json\n  framing: confluent\n";
  EXPECT_THAT(ErrorOf(KafkaSample(framed)), HasSubstr("source.registry: no schema could ever be"));
  EXPECT_EQ(ErrorOf(KafkaSample(framed + "  registry: {url: registry:8081}\n")),
            "c.yaml:6: source.registry.url: must begin with http:// or https://");
  EXPECT_EQ(ErrorOf(KafkaSample(framed + "  registry: {url: 'http://me:hunter2@r'}\n")),
            "c.yaml:6: source.registry.url: names a user; give username and password, which are "
            "not shown");
  EXPECT_EQ(ErrorOf(KafkaSample(framed + "  registry: {schemas: {seven: accept}}\n")),
            "c.yaml:6: source.registry.schemas.seven: is neither a schema's id nor its GUID");
  EXPECT_THAT(ErrorOf(KafkaSample(framed + "  registry: {schemas: {7: avro}}\n")),
              HasSubstr("c.yaml:6: source.registry.schemas.7: must be accept"));
  EXPECT_EQ(ErrorOf(KafkaSample("", "  Group.Id: x\n")),
            "c.yaml:28: kafka.Group.Id: is no name: those are of a-z, 0-9, '.', '-' and '_'");
  EXPECT_THAT(ErrorOf(KafkaSample("", "  errors.tolerance: none\n")),
              HasSubstr("c.yaml:28: kafka.errors.tolerance: must be all, is 'none'"));
  EXPECT_EQ(ErrorOf(KafkaSample("", "  errors.deadletterqueue.topic: x\n")),
            "c.yaml:28: kafka.errors.deadletterqueue.topic: unknown key (did you mean "
            "'errors.deadletterqueue.topic.name'?)");
  EXPECT_THAT(ErrorOf(KafkaSample("", "  errors.deadletterqueue.topic.name: clicks\n")),
              HasSubstr("its letters would be read as interactions"));
  EXPECT_THAT(ErrorOf(KafkaSample(), {"learners.0.participation={mode: poisson, batch: 9, "
                                      "sampling_rate: 0.1, steps_per_period: 3, period_files: 1}"}),
              HasSubstr("required where records come from kafka"));
  EXPECT_THAT(ErrorOf(KafkaSample(), {"learners.0.participation={mode: once, step_files: 2}"}),
              HasSubstr("learners[0].participation.step_files: is 2, and records come from kafka, "
                        "which has no files: leave it out"));
}

// The keys of another kind are checked, but not used.
TEST(Kafka, BelongsToItsOwnKindOfSource) {
  const Result<Config> config =
      Parse(std::string(kSample) + "kafka: {sasl.password: hunter2}\n", "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(Dump(*config), Not(HasSubstr("kafka")));
  EXPECT_TRUE(config->kafka.passed_over);
  EXPECT_FALSE(Parse(std::string(kSample), "c.yaml", {})->kafka.passed_over);
  EXPECT_FALSE(Parse(std::string(kSample) + "kafka:\n", "c.yaml", {})->kafka.passed_over)
      << "nothing is in it";
  EXPECT_FALSE(Parse(KafkaSample(), "c.yaml", {})->kafka.passed_over);
}

TEST(Secrets, ComeFromAFileOrACredentialWithoutTheLastNewline) {
  const SecretFile file("  two\nlines \n\n");
  const test::ScopedVariable directory("CREDENTIALS_DIRECTORY", file.directory());
  for (const std::string& place :
       {"{file: " + file.path() + "}", std::string("{credential: password}")}) {
    const Result<Config> config =
        Parse(KafkaSample("", "  sasl.password: " + place + "\n"), "c.yaml", {});
    ASSERT_TRUE(config) << config.error().message;
    const auto values = ReadKafkaProperties(config->kafka);
    ASSERT_TRUE(values) << values.error().message;
    EXPECT_THAT(*values, testing::Contains(Pair("sasl.password", "  two\nlines \n")));
    EXPECT_THAT(KeptElsewhere(config->kafka), ElementsAre("sasl.password"));
    EXPECT_THAT(Dump(*config), Not(HasSubstr("lines")));
    EXPECT_THAT(SecretsInTheOpen(*config), IsEmpty());
    // A dump says where the secret is, so that it starts the same daemon.
    EXPECT_EQ(*ReadKafkaProperties(Parse(Dump(*config), "dump", {})->kafka), *values);
  }
}

TEST(Secrets, ThatCannotBeReadAreNamed) {
  const auto error_of = [](const std::string& place) {
    const Result<Config> config =
        Parse(KafkaSample("", "  sasl.password: " + place + "\n"), "c.yaml", {});
    if (!config) return config.error().message;
    const auto values = ReadKafkaProperties(config->kafka);
    return values ? "valid" : values.error().message;
  };
  EXPECT_EQ(error_of("{file: /nowhere/x}"),
            "c.yaml:28: kafka.sasl.password: /nowhere/x: cannot be read: No such file or "
            "directory");
  EXPECT_EQ(error_of("{credential: sasl}"),
            "c.yaml:28: kafka.sasl.password: credential 'sasl': $CREDENTIALS_DIRECTORY is not set; "
            "systemd sets it for a unit with LoadCredential=sasl:PATH");
  EXPECT_EQ(error_of("{credential: ../sasl}"),
            "c.yaml:28: kafka.sasl.password: '../sasl' is no credential's name");
  for (const std::string bad :
       {"[hunter2]", "{hunter2: x}", "{file: hunter2, credential: x}", ""}) {
    EXPECT_EQ(error_of(bad),
              "c.yaml:28: kafka.sasl.password: expected a text (\"\" for an empty one), {file: "
              "PATH} or {credential: NAME}");
  }
  const SecretFile zero(std::string("hun\0ter2", 8));
  EXPECT_EQ(error_of("{file: " + zero.path() + "}"),
            "c.yaml:28: kafka.sasl.password: " + zero.path() + " holds a zero byte");
  const SecretFile empty("\n");
  EXPECT_EQ(error_of("{file: " + empty.path() + "}"),
            "c.yaml:28: kafka.sasl.password: " + empty.path() + " is empty");
}

// Written in the open, it is still in no dump; the daemon warns of it.
TEST(Secrets, AreInNoDump) {
  const std::string source =
      "  format: json\n  framing: confluent\n"
      "  registry: {url: http://r, username: me, password: hunter2}\n";
  std::string kafka;
  for (const char* key :
       {"sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem",
        "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "sasl.jaas.config",
        "some.access.token", "ssl.private.key", "aws.credentials"})
    kafka += std::string("  ") + key + ": " + kPassword + "\n";
  kafka += "  sasl.username: me\n";
  const Result<Config> config = Parse(KafkaSample(source, kafka), "c.yaml", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(Dump(*config), Not(HasSubstr(kPassword)));
  EXPECT_THAT(Dump(*config), HasSubstr("sasl.username: \"me\""));
  const std::vector<std::string> open = SecretsInTheOpen(*config);
  EXPECT_EQ(open.size(), 11u);
  EXPECT_EQ(open.at(0), "c.yaml:6: source.registry.password");
  for (const std::string& place : open) EXPECT_THAT(place, Not(HasSubstr(kPassword)));
}

TEST(Secrets, AreInNoMessage) {
  const auto kafka = [](const std::string& line) { return KafkaSample("", "  " + line + "\n"); };
  // A misplaced, misspelt or damaged one, and one that YAML takes for something else.
  for (const std::string line :
       {"sasl.password: !hunter2", "sasl.password: *hunter2", "sasl.password: &hunter2 x",
        "sasl.password: [hunter2", "sasl.password: {hunter2}", "sasl.password: \"hunter2\\0\"",
        "sasl.password: @hunter2", "sasl.password: `hunter2",
        "sasl.password: %hunter2\n  sasl.password: x", "Sasl.Password: hunter2",
        "sasl.password: hunter2\n  bootstrap.servers: x"}) {
    const std::string error = ErrorOf(kafka(line));
    EXPECT_NE(error, "valid") << line;
    EXPECT_THAT(error, Not(HasSubstr(kPassword)));
  }
  for (const std::string text :
       {"kafka.sasl.password=[hunter2, x]", "kafka.sasl.password:hunter2",
        "kafka={sasl.password: [hunter2]}", "source.registry={password: [hunter2]}",
        "source={kind: log, registry: {password: [hunter2]}}"}) {
    const std::string error = ErrorOf(KafkaSample(), {text});
    EXPECT_NE(error, "valid") << text;
    EXPECT_THAT(error, Not(HasSubstr(kPassword)));
  }
  const test::ScopedVariable password("TACIT_KAFKA_SASL_PASSWORD", "[hunter2]");
  EXPECT_THAT(ErrorOf(KafkaSample()), Not(HasSubstr(kPassword)));
  EXPECT_THAT(ErrorOf(KafkaSample()), HasSubstr("environment TACIT_KAFKA_SASL_PASSWORD"));
}

// Only one of our own keys is a secret: no other is hidden by chance.
TEST(Secrets, OfOurOwnKeysThereIsOne) {
  std::vector<std::string> secret;
  for (const std::string& pattern : KeyPatterns())
    if (IsSecret(pattern)) secret.push_back(pattern);
  EXPECT_THAT(secret, ElementsAre("source.registry.password"));
}

// A look at a topic needs no configuration, only the section of its brokers.
TEST(LoadKafkaTest, TakesTheSectionAloneAndTheBrokersThatAreNamed) {
  test::TempDir dir;
  const std::string file = dir / "kafka.yaml";
  std::ofstream(file) << "source: {kind: nonsense}\n"
                         "kafka:\n  bootstrap.servers: h:1\n  sasl.username: anna\n";
  const auto taken = LoadKafka(file, "");
  ASSERT_TRUE(taken) << taken.error().message;
  ASSERT_EQ(taken->properties.size(), 2u);
  EXPECT_EQ(taken->properties[0].value.text, "h:1");
  const auto named = LoadKafka(file, "other:2");
  ASSERT_TRUE(named) << named.error().message;
  ASSERT_EQ(named->properties.size(), 2u);
  EXPECT_EQ(named->properties[0].value.text, "other:2");
  EXPECT_EQ(named->properties[1].value.text, "anna");
  EXPECT_EQ(LoadKafka("", "b:3")->properties.size(), 1u);
  EXPECT_TRUE(LoadKafka("", "")->properties.empty());
  std::ofstream(file) << "source: {kind: log}\n";
  const auto without = LoadKafka(file, "");
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message.find("has no section kafka"), std::string::npos);
}

}  // namespace
}  // namespace tacit::config
