#include "app/kafka.h"

#include <map>
#include <utility>

#include "event/schema_books.h"
#include "stream/dead_letter_topic.h"
#include "stream/kafka_source.h"
#include "stream/schema_registry.h"

namespace tacit::app {
namespace {

// A daemon that is asked to stop while it looks for its brokers has to be gone within 5 s.
constexpr std::chrono::milliseconds kOpenTimeout(2000);

Result<std::unique_ptr<event::SchemaBook>> MakeSchemaBook(const config::SchemaRegistry& registry,
                                                          event::PayloadKind kind,
                                                          const Clock& clock) {
  std::map<event::SchemaKey, bool> pinned;
  for (const config::Property& schema : registry.schemas) {
    TACIT_ASSIGN(const event::SchemaKey key, event::ParseSchemaKey(schema.name));
    pinned[key] = schema.value.text == "accept";
  }
  std::unique_ptr<event::SchemaBook> asked;
  if (!registry.url.empty()) {
    stream::SchemaRegistryOptions options{.url = registry.url,
                                          .username = registry.username,
                                          .password = "",
                                          .ca_file = registry.ca_file,
                                          .timeout = std::chrono::milliseconds(registry.timeout_ms),
                                          .kind = kind};
    if (!registry.username.empty()) {
      TACIT_ASSIGN(options.password, config::ReadSecret(registry.password));
    }
    asked = stream::MakeSchemaRegistry(std::move(options), clock);
  }
  return event::MakePinnedSchemas(std::move(pinned), std::move(asked));
}

}  // namespace

Result<std::unique_ptr<event::Envelope>> MakeEnvelope(const config::Source& source,
                                                      const Clock& clock) {
  const event::EnvelopeOptions options{
      .framed = source.framing == config::Source::Framing::kConfluent,
      .kind =
          source.format == "protobuf" ? event::PayloadKind::kProtobuf : event::PayloadKind::kJson};
  std::unique_ptr<event::SchemaBook> book;
  if (options.framed) {
    TACIT_ASSIGN(book, MakeSchemaBook(source.registry, options.kind, clock));
  }
  return std::make_unique<event::Envelope>(options, std::move(book));
}

Result<std::unique_ptr<stream::Source>> OpenKafka(const config::Config& config, bool until_end,
                                                  const Clock& clock, metrics::Registry& registry) {
  const config::Source& source = config.source;
  stream::KafkaSourceOptions options;
  TACIT_ASSIGN(options.properties.values, config::ReadKafkaProperties(config.kafka));
  options.properties.hidden = config::KeptElsewhere(config.kafka);
  options.topic = source.topic;
  options.max_record_bytes = source.max_record_bytes;
  options.tick = std::chrono::milliseconds(source.tick_ms);
  options.go_on_when_lost = source.on_period_lost == config::Source::OnPeriodLost::kClose;
  options.until_end = until_end;
  options.open_timeout = kOpenTimeout;
  options.clock = &clock;
  options.metrics = &registry;
  TACIT_ASSIGN(auto envelope, MakeEnvelope(source, clock));
  return stream::OpenKafkaSource(std::move(options), std::move(envelope));
}

Result<std::unique_ptr<event::DeadLetterSink>> OpenDeadLetters(const config::Config& config,
                                                               const std::string& lineage) {
  if (config.kafka.dead_letter_topic.empty()) return event::OpenDeadLetterFile(config.dead_letters);
  stream::DeadLetterTopicOptions options{.topic = config.kafka.dead_letter_topic,
                                         .source_topic = config.source.topic,
                                         .connector = "tacitd",
                                         .lineage = lineage};
  TACIT_ASSIGN(options.properties.values, config::ReadKafkaProperties(config.kafka));
  options.properties.hidden = config::KeptElsewhere(config.kafka);
  if (const std::string* group = options.properties.Find("group.id")) options.connector = *group;
  return stream::OpenDeadLetterTopic(std::move(options));
}

const std::string& PlaceOfDeadLetters(const config::Config& config) {
  return config.kafka.dead_letter_topic.empty() ? config.dead_letters
                                                : config.kafka.dead_letter_topic;
}

}  // namespace tacit::app
