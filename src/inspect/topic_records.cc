#include "inspect/topic_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "console/exit_code.h"
#include "event/avro/codec.h"
#include "event/envelope.h"
#include "event/schema_books.h"
#include "inspect/shape.h"
#include "stream/kafka/schema_registry.h"
#include "wiring/plans/kafka.h"

namespace tacit::inspect {
namespace {

constexpr uint64_t kHeldBytesMost = uint64_t{4} << 30;
// Partitions whose offsets are listed for people.
constexpr size_t kListedMost = 16;

struct HeldRecord {
  std::string text = {}, fault = {};
  uint64_t offset = 0;
  int64_t timestamp_ms = 0;
  uint32_t key_code = 0, partition = 0;  // its place in origins()
  bool is_null = false;
};

std::string_view Unquoted(std::string_view key) {
  if (key.size() >= 2 && key.front() == '"' && key.back() == '"')
    return key.substr(1, key.size() - 2);
  return key;
}

std::string_view SchemaHeader(const stream::KafkaTopicRecord& record) {
  for (const event::MessageHeader& header : record.headers)
    if (header.name == event::kSchemaIdHeader) return header.value;
  return {};
}

// True if a value begins as Confluent's framing does. Text never has a zero byte.
bool LooksFramed(const stream::KafkaTopicRecord& record) {
  event::Unframed out;
  return record.value && (record.value->starts_with('\0') || !SchemaHeader(record).empty()) &&
         !event::Unframe(*record.value, SchemaHeader(record), event::PayloadKind::kJson, &out);
}

class TopicSample final : public Records {
 public:
  explicit TopicSample(TopicFound found) : found_(std::move(found)) {
    parts_ = {found_.topic};
    uint64_t chosen = 0;
    for (const OffsetRange& stretch : found_.looked_at) {
      chosen += stretch.size();
      if (by_partition_.contains(stretch.partition)) continue;
      by_partition_.emplace(stretch.partition, origins_.size());
      origins_.push_back(fmt::format("{}[{}]", found_.topic, stretch.partition));
    }
    share_ = static_cast<double>(chosen) /
             static_cast<double>(std::max<uint64_t>(1, found_.facts.retained()));
    beyond_ = found_.facts.retained() - std::min(chosen, found_.facts.retained());
  }

  Status Read(const stream::KafkaProperties& properties, const TopicAsked& asked) {
    std::vector<std::vector<HeldRecord>> held(origins_.size());
    TACIT_RETURN_IF_ERROR(
        stream::ReadStretches(properties, found_.topic, found_.looked_at, asked.wait,
                              [&](const stream::KafkaTopicRecord& record) -> Status {
                                if (!envelope_) StartEnvelope(asked, record);
                                const size_t origin = by_partition_.at(record.partition);
                                held[origin].push_back(Hold(record, static_cast<uint32_t>(origin)));
                                return {};
                              }));
    Merge(held);
    if (records_.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("topic '{}': has offsets but no record to look at: they belong to "
                              "transactions that were not committed",
                              found_.topic));
    return {};
  }

  const std::vector<std::string>& origins() const override { return origins_; }
  const std::vector<std::string>& parts() const override { return parts_; }
  bool may_have_headers() const override { return false; }
  bool are_avro() const override { return avro_ != nullptr; }
  uint64_t places_beyond() const override { return beyond_; }
  const TopicFound* topic() const override { return &found_; }

  Status ForEach(size_t, const Use& use, double* share_read) const override {
    size_t shown = 0;
    for (const HeldRecord& held : records_) {
      const Record record{.text = held.text,
                          .fault = held.fault,
                          .is_null = held.is_null,
                          .origin = origins_[held.partition],
                          .number = held.offset,
                          .origin_index = held.partition,
                          .timestamp_ms = held.timestamp_ms,
                          .key_code = held.key_code};
      if (!use(record)) break;
      ++shown;
    }
    if (share_read != nullptr)
      *share_read = std::clamp(
          share_ * static_cast<double>(shown) / static_cast<double>(records_.size()), 1e-6, 1.0);
    return {};
  }

 private:
  void StartEnvelope(const TopicAsked& asked, const stream::KafkaTopicRecord& first) {
    std::unique_ptr<event::SchemaBook> book;
    if (asked.registry.empty()) {
      book = event::MakeEverySchema();
    } else {
      avro_ = event::AvroSchemas::Make("", nullptr).value_or(nullptr);
      book = stream::MakeSchemaRegistry({.url = asked.registry,
                                         .wait = asked.wait,
                                         .kind = event::PayloadKind::kAvro,
                                         .avro = avro_},
                                        clock_);
    }
    found_.framed = are_avro() || asked.framed.value_or(LooksFramed(first));
    envelope_ = std::make_unique<event::Envelope>(
        event::EnvelopeOptions{
            .framed = found_.framed,
            .kind = are_avro() ? event::PayloadKind::kAvro : event::PayloadKind::kJson},
        std::move(book));
  }

  HeldRecord Hold(const stream::KafkaTopicRecord& record, uint32_t origin) {
    HeldRecord held{.offset = record.offset,
                    .timestamp_ms = record.timestamp_ms,
                    .partition = origin,
                    .is_null = !record.value};
    if (record.key) held.key_code = CodeOfValue(Unquoted(*record.key));
    Note(record, origin);
    const std::string_view value = record.value.value_or("");
    if (value.size() > found_.record_bytes_most) {
      held.fault = fmt::format("{} bytes are more than the {} that are looked at", value.size(),
                               found_.record_bytes_most);
      return held;
    }
    const event::Message message{value, !record.value, record.headers};
    std::string_view payload;
    event::Envelope::Outcome outcome = envelope_->Open(message, &payload, &held.fault);
    // A registry that does not answer is given up after a while.
    while (outcome == event::Envelope::Outcome::kWait) {
      envelope_->Await(std::chrono::milliseconds(100));
      outcome = envelope_->Open(message, &payload, &held.fault);
    }
    if (outcome != event::Envelope::Outcome::kPayload) {
      if (held.fault.empty()) held.fault = "null value";
      return held;
    }
    held.fault.clear();
    if (are_avro())
      held.fault = AvroToJson(*avro_, payload, &held.text);
    else
      held.text = payload;
    return held;
  }

  void Note(const stream::KafkaTopicRecord& record, uint32_t origin) {
    TopicFound::Raw& raw = found_.raw;
    ++raw.records;
    raw.tombstones += record.value ? 0 : 1;
    raw.keyless += record.key ? 0 : 1;
    raw.appended += record.appended ? 1 : 0;
    if (record.timestamp_ms > 0) {
      raw.from_ms =
          raw.from_ms == 0 ? record.timestamp_ms : std::min(raw.from_ms, record.timestamp_ms);
      raw.to_ms = std::max(raw.to_ms, record.timestamp_ms);
    }
    if (!found_.framed || !record.value) return;
    event::Unframed out;
    if (event::Unframe(*record.value, SchemaHeader(record), event::PayloadKind::kJson, &out))
      return;
    auto& [count, first] = raw.schemas[event::Text(out.schema)];
    if (count++ == 0) first = fmt::format("{}:{}", origins_[origin], record.offset);
  }

  // The partition whose next record is the oldest is next.
  void Merge(std::vector<std::vector<HeldRecord>>& held) {
    std::vector<size_t> at(held.size(), 0);
    size_t all = 0;
    for (const auto& one : held) all += one.size();
    records_.reserve(all);
    while (records_.size() < all) {
      size_t next = held.size();
      for (size_t i = 0; i < held.size(); ++i) {
        if (at[i] == held[i].size()) continue;
        if (next == held.size() || held[i][at[i]].timestamp_ms < held[next][at[next]].timestamp_ms)
          next = i;
      }
      records_.push_back(std::move(held[next][at[next]++]));
    }
  }

  TopicFound found_;
  const SystemClock clock_;
  std::shared_ptr<event::AvroSchemas> avro_;
  std::vector<std::string> origins_, parts_;
  std::map<int32_t, size_t> by_partition_;
  std::unique_ptr<event::Envelope> envelope_;
  std::vector<HeldRecord> records_;
  double share_ = 1;
  uint64_t beyond_ = 0;
};

}  // namespace

size_t TopicRecordBytesMost(uint64_t rows_most) {
  return std::clamp<uint64_t>(kHeldBytesMost / std::max<uint64_t>(1, rows_most), 256,
                              kRecordBytesMost);
}

Result<TopicFound> FindTopic(const TopicAsked& asked) {
  TACIT_ASSIGN(const stream::KafkaProperties properties, wiring::KafkaPropertiesOf(asked.kafka));
  TopicFound found{.topic = asked.topic,
                   .kafka = asked.kafka,
                   .spread = asked.spread,
                   .framed = asked.framed.value_or(false),
                   .registry = asked.registry,
                   .record_bytes_most = TopicRecordBytesMost(asked.rows_most)};
  auto facts = stream::AskTopic(properties, asked.topic, asked.wait);
  if (!facts && facts.error().code == ErrorCode::kNotFound)
    return Fail(
        ErrorCode::kNotFound,
        fmt::format("topic '{}': its brokers know no such topic: is it spelt right, and are "
                    "they the brokers that have it? It was not made",
                    asked.topic));
  if (!facts) return console::FailOfBrokers(std::move(facts.error()));
  found.facts = *std::move(facts);
  if (found.facts.retained() == 0)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("topic '{}': is empty: there is no record to look at in {}",
                            asked.topic, Counted(found.facts.partitions.size(), "partition")));
  found.looked_at = stream::ChooseStretches(found.facts.partitions, asked.rows_most, asked.spread);
  return found;
}

Result<std::shared_ptr<const Records>> ReadTopic(const TopicAsked& asked, TopicFound found) {
  TACIT_ASSIGN(const stream::KafkaProperties properties, wiring::KafkaPropertiesOf(asked.kafka));
  auto sample = std::make_shared<TopicSample>(std::move(found));
  if (Status all = sample->Read(properties, asked); !all)
    return console::FailOfBrokers(std::move(all.error()));
  return std::shared_ptr<const Records>(std::move(sample));
}

std::string OffsetsText(const std::vector<OffsetRange>& stretches) {
  std::map<int32_t, std::string> by_partition;
  for (const OffsetRange& stretch : stretches) {
    std::string& text = by_partition[stretch.partition];
    text += fmt::format("{}{} to {}", text.empty() ? "" : ", ", WithThousands(stretch.begin),
                        WithThousands(stretch.end - 1));
  }
  std::string all;
  size_t listed = 0;
  for (const auto& [partition, text] : by_partition) {
    if (listed++ == kListedMost)
      return all + fmt::format("; and {} more", by_partition.size() - kListedMost);
    all += fmt::format("{}partition {}: {}", all.empty() ? "" : "; ", partition, text);
  }
  return all;
}

}  // namespace tacit::inspect
