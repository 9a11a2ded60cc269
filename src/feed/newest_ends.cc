#include "feed/newest_ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/files/log.h"

namespace tacit::feed {
namespace {

// A version's end is the last record of a partition, except where records of aborted transactions
// follow, which may be many.
constexpr std::array<uint64_t, 3> kLooks = {16, 4096, ~uint64_t{0}};

}  // namespace

Result<Record> DecodeTopicRecord(const std::string& topic, const stream::KafkaTopicRecord& record) {
  auto decoded = DecodeRecord(record.key.value_or(""), record.value.value_or(""));
  if (!decoded)
    return Fail(std::move(decoded.error())
                    .Context(fmt::format("topic '{}': partition {}, offset {}", topic,
                                         record.partition, record.offset)));
  return decoded;
}

Result<PlacedEnd> DecodeTopicEnd(const std::string& topic, const stream::KafkaTopicRecord& record,
                                 const Record& decoded) {
  auto end = DecodeVersionEnd(decoded.payload);
  const std::string place =
      fmt::format("topic '{}': partition {}, offset {}", topic, record.partition, record.offset);
  if (!end) return Fail(std::move(end.error()).Context(place));
  if (end->partition != static_cast<uint32_t>(record.partition) ||
      end->tip.seq != decoded.origin.version)
    return Fail(
        ErrorCode::kCorruption,
        fmt::format("{}: is a mark of partition {} and version {}, not of its place and "
                    "version {}: it was copied here",
                    place, end->partition, end->tip.seq.value, decoded.origin.version.value));
  return PlacedEnd{*std::move(end), decoded.origin, record.offset};
}

Result<NewestEnds> ReadNewestEnds(const stream::KafkaProperties& properties,
                                  const std::string& topic, std::chrono::milliseconds timeout) {
  NewestEnds newest;
  TACIT_ASSIGN(const auto reader, stream::KafkaTopicReader::Open(properties, topic));
  TACIT_ASSIGN(const auto spans, reader->Spans(timeout));
  newest.partitions = static_cast<uint32_t>(spans.size());
  const auto used = static_cast<size_t>(
      std::ranges::count_if(spans, [](const auto& span) { return span.begin < span.end; }));
  for (const uint64_t look : kLooks) {
    TACIT_RETURN_IF_ERROR(stream::ReadKafkaTail(
        properties, topic, look, timeout, [&](const stream::KafkaTopicRecord& record) -> Status {
          newest.has_records = true;
          TACIT_ASSIGN(const Record decoded, DecodeTopicRecord(topic, record));
          if (decoded.place.kind != RecordKind::kVersionEnd) return {};
          TACIT_ASSIGN(newest.by_partition[record.partition],
                       DecodeTopicEnd(topic, record, decoded));
          return {};
        }));
    if (newest.by_partition.size() == used) break;
  }
  return newest;
}

Status CheckCompacted(const stream::KafkaProperties& properties, const std::string& topic,
                      std::chrono::milliseconds timeout) {
  static const std::array<std::string, 1> kPolicy = {"cleanup.policy"};
  auto settings = stream::ReadTopicSettings(properties, topic, kPolicy, timeout);
  if (!settings && settings.error().code == ErrorCode::kRefused) {
    spdlog::warn("whether the feed's topic is compacted cannot be asked: {}",
                 settings.error().message);
    return {};
  }
  if (!settings) return Fail(std::move(settings.error()));
  const std::string& policy = (*settings)[kPolicy[0]];
  if (policy == "compact") return {};
  return Fail(ErrorCode::kRefused,
              fmt::format("topic '{}': its cleanup.policy is '{}' and must be compact alone: rows "
                          "that do not change for a while would be deleted. Alter the topic, or "
                          "make another: tools/kafka feed NAME PARTITIONS",
                          topic, policy));
}

}  // namespace tacit::feed
