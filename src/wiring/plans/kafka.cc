#include "wiring/plans/kafka.h"

#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "event/envelope.h"
#include "event/schema_books.h"
#include "stream/kafka/schema_registry.h"
#include "stream/kafka/source.h"

namespace tacit::wiring {
namespace {

// Keeps the opening short, since a daemon that is stopped while it looks for its brokers must exit
// within 5 s.
constexpr std::chrono::milliseconds kOpenTimeout(2000);

Result<std::unique_ptr<event::SchemaBook>> MakeSchemaBook(
    const config::Source& source, event::PayloadKind kind,
    std::optional<std::chrono::milliseconds> wait, const Clock& clock) {
  const config::SchemaRegistry& registry = source.registry;
  if (registry.url.empty() && registry.schemas.empty()) return event::MakeEverySchema();
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
                                          .wait = wait,
                                          .kind = kind,
                                          .avro = source.avro_schemas};
    if (!registry.username.empty()) {
      TACIT_ASSIGN(options.password, config::ReadSecret(registry.password));
    }
    asked = stream::MakeSchemaRegistry(std::move(options), clock);
  }
  return event::MakePinnedSchemas(std::move(pinned), std::move(asked));
}

// Takes off what producers put around a record. Without a registry and schemas, which no
// configuration lacks, it takes records of every schema.
Result<std::unique_ptr<event::Envelope>> MakeEnvelope(
    const config::Source& source, std::optional<std::chrono::milliseconds> schema_wait,
    const Clock& clock) {
  const event::EnvelopeOptions options{
      .framed = source.framing == config::Source::Framing::kConfluent,
      .kind = source.format == config::Source::Format::kProtobuf ? event::PayloadKind::kProtobuf
              : source.format == config::Source::Format::kAvro   ? event::PayloadKind::kAvro
                                                                 : event::PayloadKind::kJson};
  std::unique_ptr<event::SchemaBook> book;
  if (options.framed) {
    TACIT_ASSIGN(book, MakeSchemaBook(source, options.kind, schema_wait, clock));
  }
  return std::make_unique<event::Envelope>(options, std::move(book));
}

Result<stream::KafkaSourceOptions> OptionsOf(const config::Source& source, const LiveParts& live) {
  stream::KafkaSourceOptions options;
  TACIT_ASSIGN(options.properties, KafkaPropertiesOf(live.kafka));
  options.topic = source.topic;
  options.max_record_bytes = source.max_record_bytes;
  options.clock = &live.clock;
  options.metrics = &live.registry;
  return options;
}

}  // namespace

Result<stream::KafkaProperties> KafkaPropertiesOf(const config::Kafka& kafka) {
  stream::KafkaProperties properties;
  TACIT_ASSIGN(properties.values, config::ReadKafkaProperties(kafka));
  properties.hidden = config::KeptElsewhere(kafka);
  return properties;
}

Result<std::unique_ptr<stream::Source>> OpenKafka(const config::Source& source,
                                                  const LiveParts& live) {
  TACIT_ASSIGN(stream::KafkaSourceOptions options, OptionsOf(source, live));
  options.round = std::chrono::milliseconds(source.round_ms);
  options.tick = std::chrono::milliseconds(source.tick_ms);
  options.go_on_when_lost = source.on_period_lost == config::Source::OnPeriodLost::kClose;
  options.until_end = live.until_end;
  options.open_timeout = kOpenTimeout;
  options.share = live.share;
  TACIT_ASSIGN(auto envelope,
               MakeEnvelope(source, std::chrono::milliseconds(source.schema_wait_ms), live.clock));
  return stream::OpenKafkaSource(std::move(options), std::move(envelope));
}

Result<std::unique_ptr<stream::RangeSource>> OpenRanges(const config::Source& source,
                                                        const LiveParts& live) {
  TACIT_ASSIGN(stream::KafkaSourceOptions options, OptionsOf(source, live));
  // Dead letters count: a registry that this process cannot reach, and others can, makes none.
  TACIT_ASSIGN(auto envelope, MakeEnvelope(source, std::nullopt, live.clock));
  return stream::OpenKafkaRanges(std::move(options), std::move(envelope));
}

}  // namespace tacit::wiring
