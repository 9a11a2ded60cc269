#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "config/sections.h"

namespace tacit::config {
namespace {

// The prefix of Kafka Connect's keys; no key of librdkafka's begins with it.
constexpr std::string_view kConnect = "errors.";
constexpr std::string_view kTolerance = "errors.tolerance";
constexpr std::string_view kDeadLetterTopic = "errors.deadletterqueue.topic.name";

const Property* Find(const Kafka& kafka, std::string_view name) {
  const auto found = std::ranges::find(kafka.properties, name, &Property::name);
  return found == kafka.properties.end() ? nullptr : &*found;
}

Status CheckConnect(const Place& place, const Property& property) {
  static constexpr std::string_view kKnown[] = {kTolerance, kDeadLetterTopic};
  if (std::ranges::find(kKnown, property.name) == std::end(kKnown)) {
    return place.Fail("unknown key" + DidYouMean(property.name, kKnown));
  }
  if (property.value.kind != Secret::Kind::kText) return place.Fail("must be a text");
  if (property.name == kTolerance && property.value.text != "all") {
    return place.Fail(
        fmt::format("must be all, is '{}': a record that cannot be learnt from becomes a dead "
                    "letter, and the stream continues",
                    property.value.text));
  }
  return {};
}

}  // namespace

bool GoodTopic(std::string_view name) {
  constexpr size_t kLengthMax = 249;
  return !name.empty() && name.size() <= kLengthMax && name != "." && name != ".." &&
         std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

void DescribeKafka(Fields& fields, Kafka& kafka, bool used) {
  fields.Verbatim(
      {"kafka",
       "librdkafka's settings by its names, dots included, as they are: docs/using/kafka.md. "
       "`bootstrap.servers` is required where records or the feed are in topics. Refused: "
       "`enable.auto.commit`, `auto.offset.reset` and settings that load code. In the environment "
       "each dot is `_`: `TACIT_KAFKA_SASL_USERNAME`. Each value may be kept elsewhere: `{file: "
       "PATH}` or `{credential: NAME}`. Two names are Kafka Connect's: "
       "`errors.deadletterqueue.topic.name`, a topic for dead letters, with Connect's headers, in "
       "place of the file of `dead_letters`; and `errors.tolerance`, which can only be `all`."},
      &kafka.properties, UsedIf(used));
}

bool UsesKafka(const Config& config) {
  return config.source.traits().keys.has("kafka") || !config.feed.topic.empty();
}

Status CheckKafka(const Place& place, const Config& config, Kafka* kafka) {
  const Source& source = config.source;
  const bool is_source = source.traits().keys.has("kafka");
  if (!UsesKafka(config)) {
    kafka->passed_over = place.tree() != nullptr && !place.tree()->children.empty();
    return {};
  }
  if (Find(*kafka, "bootstrap.servers") == nullptr &&
      Find(*kafka, "metadata.broker.list") == nullptr) {
    return place.Key("bootstrap.servers").Fail("required, and has no default");
  }
  for (const Property& property : kafka->properties) {
    if (!property.name.starts_with(kConnect)) continue;
    TACIT_RETURN_IF_ERROR(CheckConnect(place.Key(property.name), property));
    if (!is_source)
      return place.Key(property.name)
          .Fail("is for source.kind kafka: dead letters of another source go to a file");
  }
  const Property* topic = Find(*kafka, kDeadLetterTopic);
  if (topic == nullptr) return {};
  const Place at = place.Key(kDeadLetterTopic);
  kafka->dead_letter_topic = topic->value.text;
  if (!GoodTopic(kafka->dead_letter_topic)) return at.Fail("is no topic's name");
  if (kafka->dead_letter_topic == source.topic) {
    return at.Fail("is source.topic itself: its letters would be read as interactions");
  }
  return {};
}

Result<std::vector<std::pair<std::string, std::string>>> ReadKafkaProperties(const Kafka& kafka) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const Property& property : kafka.properties) {
    if (property.name.starts_with(kConnect)) continue;
    TACIT_ASSIGN(std::string value, ReadSecret(property.value));
    values.emplace_back(property.name, std::move(value));
  }
  return values;
}

std::vector<std::string> KeptElsewhere(const Kafka& kafka) {
  std::vector<std::string> names;
  for (const Property& property : kafka.properties)
    if (property.value.kind != Secret::Kind::kText) names.push_back(property.name);
  return names;
}

}  // namespace tacit::config
