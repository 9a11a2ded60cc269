#include "inspect/topic_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "base/words.h"
#include "inspect/report.h"
#include "inspect/source_yaml.h"

namespace tacit::inspect {
namespace {

namespace json = boost::json;
using config::QuotedYaml;

// Keys of this share of records have to be the field's value.
constexpr double kKeysAgree = 0.999;
constexpr double kDayInMs = 86'400'000;

bool IsCompacted(const TopicFound& topic) {
  return topic.facts.Setting("cleanup.policy").find("compact") != std::string::npos;
}
bool IsDeleted(const TopicFound& topic) {
  const std::string policy = topic.facts.Setting("cleanup.policy");
  return policy.empty() || policy.find("delete") != std::string::npos;
}

// A setting that is a whole number of at least 0; nothing where it is not known, or unbounded.
std::optional<double> NumberSetting(const TopicFound& topic, const std::string& name) {
  const std::string text = topic.facts.Setting(name);
  if (text.empty()) return std::nullopt;
  const double number = std::atof(text.c_str());
  return number < 0 ? std::nullopt : std::optional(number);
}

std::string RetentionText(const TopicFound& topic) {
  if (!topic.facts.no_settings.empty()) return fmt::format("not told: {}", topic.facts.no_settings);
  const auto time = NumberSetting(topic, "retention.ms");
  const auto bytes = NumberSetting(topic, "retention.bytes");
  if (!IsDeleted(topic) || (!time && !bytes)) return "for ever";
  std::string text;
  if (time)
    text = fmt::format("a record that was not read {} after it came is lost", DurationText(*time));
  if (bytes)
    text += fmt::format("{}beyond {} bytes a partition the oldest are lost",
                        text.empty() ? "" : "; ", WithThousands(static_cast<uint64_t>(*bytes)));
  return text;
}

uint64_t RecordsLost(const TopicFound& topic) {
  uint64_t lost = 0;
  for (const stream::PartitionSpan& span : topic.facts.partitions) lost += span.begin;
  return lost;
}

uint64_t OffsetsLookedAt(const TopicFound& topic) {
  uint64_t offsets = 0;
  for (const OffsetRange& stretch : topic.looked_at) offsets += stretch.size();
  return offsets;
}

std::string TimesText(const TopicFound& topic) {
  const TopicFound::Raw& raw = topic.raw;
  if (raw.to_ms == 0) return "the records have no times of their own";
  const std::string_view whose = raw.appended == raw.records
                                     ? "LogAppendTime, by the brokers' clock"
                                 : raw.appended == 0 ? "CreateTime, by the producers' clocks"
                                                     : "CreateTime and LogAppendTime, mixed";
  return fmt::format("{}: from {} to {} UTC", whose, UtcText(static_cast<double>(raw.from_ms)),
                     UtcText(static_cast<double>(raw.to_ms)));
}

std::string KeyText(const Sample& sample, const Roles& roles) {
  const TopicFound::Raw& raw = sample.topic()->raw;
  if (raw.keyless == raw.records) return "none: records go to any partition";
  const std::string field = FieldOfKeys(sample);
  std::string text = "no field of the records";
  if (!field.empty()) {
    const std::string_view part =
        roles.user && sample.columns[*roles.user].place == field   ? "the user"
        : roles.item && sample.columns[*roles.item].place == field ? "the item"
                                                                   : "a field";
    text = fmt::format("{}, '{}'", part, field);
  }
  if (raw.keyless > 0)
    text += fmt::format("; {} {} none", Counted(raw.keyless, "record"),
                        WordFor(raw.keyless, "has", "have"));
  return text;
}

void WarnOfKeys(const Sample& sample, const Roles& roles, std::vector<std::string>* warnings) {
  const TopicFound& topic = *sample.topic();
  const bool keyed = topic.raw.keyless < topic.raw.records;
  if (!roles.user) {
    const std::string field = FieldOfKeys(sample);
    if (keyed && !field.empty())
      warnings->push_back(fmt::format(
          "records are keyed by '{}': if that names the user, say so (--user), so that a promise "
          "to users can be kept",
          field));
    if (keyed && field.empty())
      warnings->emplace_back(
          "records have keys, which are in no field: a key is not read. If it is the user, unit "
          "user needs it in the record too");
    return;
  }
  if (topic.facts.partitions.size() < 2) return;
  if (FieldOfKeys(sample) == sample.columns[*roles.user].place) return;
  warnings->push_back(fmt::format(
      "the key is not the user: one user's records lie in several of {} partitions, so that their "
      "order is not kept and copies in another partition are learnt from as events of their own. "
      "An allowance holds over all of them; have producers key by '{}'",
      topic.facts.partitions.size(), sample.columns[*roles.user].place));
}

void WarnOfRawThings(const Sample& sample, const Roles& roles, std::vector<std::string>* warnings) {
  const TopicFound& topic = *sample.topic();
  const TopicFound::Raw& raw = topic.raw;
  WarnOfKeys(sample, roles, warnings);
  if (raw.tombstones > 0)
    warnings->push_back(
        fmt::format("{} without a value: each becomes a dead letter, and takes nothing back that "
                    "was learnt",
                    Counted(raw.tombstones, "tombstone")));
  if (raw.schemas.size() > 1) {
    std::string list;
    for (const auto& [schema, seen] : raw.schemas)
      list += fmt::format("{}{}: {}, first {}", list.empty() ? "" : "; ", schema,
                          Counted(seen.first, "record"), seen.second);
    warnings->push_back("the records are of several schemas: " + list);
  }
  if (raw.appended > 0 && raw.appended < raw.records)
    warnings->emplace_back(
        "message.timestamp.type was changed: some times are of producers, some "
        "of brokers");
  if (const uint64_t offsets = OffsetsLookedAt(topic); raw.records * 20 < offsets * 19)
    warnings->push_back(fmt::format(
        "{} {} {}: transactions, or compaction. Steps are cut by offsets, and are shorter than "
        "they seem",
        Counted(offsets, "offset"), WordFor(offsets, "has", "have"),
        Counted(raw.records, "record")));
  if (topic.spread == stream::KafkaSpread::kEvenly && !sample.whole && roles.user)
    warnings->emplace_back(
        "the sample is of short stretches: users seem to come back less than they do, and so do "
        "events a day. For unit user, look at the first records (without --evenly) before "
        "max_participations is believed");
}

// The schemas that may be told: a private look tells none, whether records have them or not.
bool HasSchemas(const Sample& sample) {
  return sample.noised.empty() && !sample.topic()->raw.schemas.empty();
}

}  // namespace

std::string DurationText(double milliseconds) {
  static constexpr std::pair<double, std::string_view> kUnits[] = {
      {kDayInMs, "day"}, {3'600'000, "hour"}, {60'000, "minute"}, {1000, "second"}};
  for (const auto& [unit, name] : kUnits) {
    if (milliseconds < unit) continue;
    const double count = std::round(10 * milliseconds / unit) / 10;
    return fmt::format("{} {}{}", count, name, count == 1 ? "" : "s");
  }
  return fmt::format("{} ms", milliseconds);
}

std::string FieldOfKeys(const Sample& sample) {
  std::string best;
  double best_share = kKeysAgree;
  for (const Column& column : sample.columns) {
    uint64_t both = 0, equal = 0;
    for (size_t row = 0; row < sample.key_of_row.size() && row < column.code.size(); ++row) {
      if (sample.key_of_row[row] == 0 || column.code[row] == 0) continue;
      ++both;
      equal += sample.key_of_row[row] == column.code[row] ? 1 : 0;
    }
    // A field that is hardly there says nothing about keys.
    if (both * 2 < sample.rows || both == 0) continue;
    const double share = static_cast<double>(equal) / static_cast<double>(both);
    if (share < best_share) continue;
    best_share = share;
    best = column.place;
  }
  return best;
}

std::vector<std::pair<std::string, std::string>> TopicLines(const Sample& sample,
                                                            const Roles& roles) {
  const TopicFound& topic = *sample.topic();
  std::vector<std::pair<std::string, std::string>> lines;
  lines.emplace_back("topic",
                     fmt::format("'{}': {}, {} each ({} in sync), {} offsets in all", topic.topic,
                                 Counted(topic.facts.partitions.size(), "partition"),
                                 Counted(topic.facts.replicas, "replica"), topic.facts.in_sync,
                                 WithThousands(topic.facts.retained())));
  lines.emplace_back("looked at", OffsetsText(topic.looked_at));
  lines.emplace_back("retention", RetentionText(topic));
  if (!sample.noised.empty()) return lines;
  lines.emplace_back("sent at", TimesText(topic));
  lines.emplace_back("key", KeyText(sample, roles));
  if (topic.framed)
    lines.emplace_back(
        "framing", fmt::format("confluent, of {}", Counted(topic.raw.schemas.size(), "schema")));
  return lines;
}

std::vector<std::string> TopicWarnings(const Sample& sample, const Roles& roles) {
  const TopicFound& topic = *sample.topic();
  std::vector<std::string> warnings;
  if (IsCompacted(topic))
    warnings.emplace_back(
        "the topic is compacted: of each key its brokers keep the newest record alone, so that "
        "interactions vanish, read or not. It is a table and no stream: have interactions written "
        "to a topic of cleanup.policy delete");
  const auto retention = NumberSetting(topic, "retention.ms");
  if (IsDeleted(topic) && retention && *retention < kDayInMs)
    warnings.push_back(fmt::format(
        "records are kept for {}: a daemon that is off for longer loses what it has not read, and "
        "does not start again until that is accepted",
        DurationText(*retention)));
  if (const uint64_t lost = RecordsLost(topic); lost > 0)
    warnings.push_back(fmt::format("{} before the first {} gone already", Counted(lost, "offset"),
                                   WordFor(lost, "is", "are")));
  if (sample.noised.empty()) WarnOfRawThings(sample, roles, &warnings);
  return warnings;
}

json::object TopicJson(const Sample& sample, const Roles& roles) {
  const TopicFound& topic = *sample.topic();
  json::array partitions, looked_at;
  for (const stream::PartitionSpan& span : topic.facts.partitions)
    partitions.push_back(
        json::object{{"partition", span.partition}, {"begin", span.begin}, {"end", span.end}});
  for (const OffsetRange& one : topic.looked_at)
    looked_at.push_back(
        json::object{{"partition", one.partition}, {"begin", one.begin}, {"end", one.end}});
  json::object settings;
  for (const auto& [name, value] : topic.facts.settings) settings[name] = value;
  json::object found{{"topic", topic.topic},
                     {"partitions", std::move(partitions)},
                     {"replicas", topic.facts.replicas},
                     {"in_sync", topic.facts.in_sync},
                     {"settings", std::move(settings)},
                     {"looked_at", std::move(looked_at)}};
  if (!sample.noised.empty()) return found;
  json::object schemas;
  for (const auto& [schema, seen] : topic.raw.schemas) schemas[schema] = seen.first;
  found["framing"] = topic.framed ? "confluent" : "none";
  found["schemas"] = std::move(schemas);
  found["times"] = TimesText(topic);
  found["key"] = KeyText(sample, roles);
  found["tombstones"] = topic.raw.tombstones;
  return found;
}

std::string TopicSourceYaml(const Sample& sample) {
  const TopicFound& topic = *sample.topic();
  std::string yaml = fmt::format(
      "source:\n  kind: kafka\n  topic: {}  # {} of {} when it was looked at\n  format: {}\n",
      QuotedYaml(topic.topic), Counted(topic.facts.partitions.size(), "partition"),
      Counted(topic.facts.replicas, "replica"), sample.format_name());
  if (!topic.framed) return yaml;
  yaml += "  framing: confluent\n  registry:\n";
  if (!topic.registry.empty())
    return yaml + fmt::format("    url: {}\n", QuotedYaml(topic.registry));
  if (HasSchemas(sample)) {
    yaml += CommentLines(4,
                         "The schemas that were seen: their records were read here. With the "
                         "registry's url, later ones are judged by it too.") +
            "    # url: http://HOST:8081\n    schemas:\n";
    for (const auto& [schema, seen] : topic.raw.schemas)
      yaml += fmt::format("      {}: accept\n", schema.substr(schema.find(' ') + 1));
    return yaml;
  }
  return yaml + "    url:  # to be filled in: http://HOST:8081\n";
}

namespace {

bool IsPlainSecret(const config::Property& property) {
  return property.value.kind == config::Secret::Kind::kText && config::IsSecret(property.name);
}

}  // namespace

std::string KafkaYaml(const TopicFound& topic) {
  std::string yaml = "kafka:\n";
  for (const config::Property& property : topic.kafka.properties) {
    // Those are of another stream, or of this inspection alone.
    if (property.name == "group.id" || property.name.starts_with("errors.")) continue;
    std::string value = QuotedYaml(property.value.text);
    if (property.value.kind == config::Secret::Kind::kFile)
      value = fmt::format("{{file: {}}}", value);
    if (property.value.kind == config::Secret::Kind::kCredential)
      value = fmt::format("{{credential: {}}}", value);
    if (IsPlainSecret(property)) value = " # to be filled in: {file: PATH}; a secret is not copied";
    yaml += fmt::format("  {}: {}\n", property.name, value);
  }
  return yaml +
         CommentLines(2,
                      "Offsets are committed under this name for tools that show lag; the store "
                      "knows where learning goes on. No other reader may have it.") +
         fmt::format("  group.id: {}\n\n", QuotedYaml("tacit-" + topic.topic));
}

std::vector<std::pair<std::string, std::string>> TopicOpenKeys(const Sample& sample) {
  const TopicFound& topic = *sample.topic();
  std::vector<std::pair<std::string, std::string>> open;
  for (const config::Property& property : topic.kafka.properties)
    if (IsPlainSecret(property)) open.emplace_back("kafka." + property.name, "x");
  if (topic.framed && !HasSchemas(sample))
    open.emplace_back("source.registry.url", "http://registry:8081");
  return open;
}

}  // namespace tacit::inspect
