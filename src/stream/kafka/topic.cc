#include "stream/kafka/topic.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/check.h"
#include "base/hash.h"

namespace tacit::stream {
namespace {

using Steady = std::chrono::steady_clock;

int MillisLeft(Steady::time_point deadline) {
  const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Steady::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 1));
}

// Makes a client that fetches as little as possible.
Result<KafkaClient> MakeLooker(const KafkaProperties& properties, KafkaContext* context) {
  TACIT_ASSIGN(KafkaConf conf, MakeKafkaConf(properties, KafkaRole::kConsumer, context));
  TACIT_CHECK(rd_kafka_conf_set(conf.get(), "queued.min.messages", "1", nullptr, 0) ==
              RD_KAFKA_CONF_OK);
  return MakeKafkaClient(std::move(conf), KafkaRole::kConsumer, *context);
}

Result<std::map<int32_t, LastRecord>> ReadRecordsAt(rd_kafka_t* client, const std::string& topic,
                                                    std::span<const PartitionOffset> offsets,
                                                    Steady::time_point deadline) {
  std::map<int32_t, LastRecord> found;
  rd_kafka_poll_set_consumer(client);
  const KafkaPartitions list = MakePartitions(topic, offsets);
  const auto assigned = rd_kafka_assign(client, list.get());
  if (assigned != RD_KAFKA_RESP_ERR_NO_ERROR) return Unanswered("assigning", assigned);
  std::map<int32_t, uint64_t> asked;
  for (const PartitionOffset& offset : offsets) asked[offset.partition] = offset.offset;
  // Partitions that ended without a record. An end may be told again, and a record may follow it.
  std::set<int32_t> ended;
  while (found.size() + ended.size() < offsets.size()) {
    if (Steady::now() >= deadline)
      return Unanswered(fmt::format("topic '{}': the last records read", topic),
                        RD_KAFKA_RESP_ERR__TIMED_OUT);
    KafkaMessage message(rd_kafka_consumer_poll(client, MillisLeft(deadline)));
    if (message == nullptr) continue;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      const int32_t partition = message->partition;
      ended.erase(partition);
      found.emplace(partition, LastRecordOf(TakeOver(message.release())));
    } else if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      // A new leader tells an end of before at first: one that does not lie behind the record says
      // nothing about it.
      const bool behind = static_cast<uint64_t>(message->offset) > asked[message->partition];
      if (behind && !found.contains(message->partition)) ended.insert(message->partition);
    } else if (!IsTransientFetch(message->err)) {
      return Unanswered(
          fmt::format("topic '{}' partition {}: the last record read", topic, message->partition),
          message->err);
    }
  }
  return found;
}

}  // namespace

Result<KafkaClient> MakeAsker(KafkaProperties properties, KafkaContext* context) {
  std::erase_if(properties.values, [](const auto& value) { return value.first == "group.id"; });
  TACIT_ASSIGN(KafkaConf conf, MakeKafkaConf(properties, KafkaRole::kConsumer, context));
  // The reader beside it reports what is wrong with the brokers.
  context->Silence();
  return MakeKafkaClient(std::move(conf), KafkaRole::kConsumer, *context);
}

tl::unexpected<Error> Unanswered(const std::string& question, rd_kafka_resp_err_t error) {
  ErrorCode code = ErrorCode::kIo;
  if (IsTransient(error)) code = ErrorCode::kUnavailable;
  if (error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
      error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC || error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION)
    code = ErrorCode::kNotFound;
  return Fail(code, fmt::format("{}: {}", question, rd_kafka_err2str(error)));
}

Result<std::vector<int32_t>> ReadPartitions(rd_kafka_t* client, const std::string& topic,
                                            Milliseconds timeout) {
  const std::string question = fmt::format("topic '{}'", topic);
  const KafkaTopic handle(rd_kafka_topic_new(client, topic.c_str(), nullptr));
  if (handle == nullptr) return Unanswered(question, rd_kafka_last_error());
  const rd_kafka_metadata_t* answer = nullptr;
  const auto asked =
      rd_kafka_metadata(client, 0, handle.get(), &answer, static_cast<int>(timeout.count()));
  if (asked != RD_KAFKA_RESP_ERR_NO_ERROR) return Unanswered(question, asked);
  const KafkaMetadata metadata(answer);
  if (metadata->topic_cnt != 1)
    return Unanswered(question, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  const rd_kafka_metadata_topic_t& found = metadata->topics[0];
  if (found.err != RD_KAFKA_RESP_ERR_NO_ERROR) return Unanswered(question, found.err);
  std::vector<int32_t> partitions;
  for (int i = 0; i < found.partition_cnt; ++i) partitions.push_back(found.partitions[i].id);
  std::ranges::sort(partitions);
  if (partitions.empty()) return Unanswered(question, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  return partitions;
}

Result<std::vector<PartitionSpan>> ReadSpans(rd_kafka_t* client, const std::string& topic,
                                             std::span<const int32_t> partitions,
                                             Milliseconds timeout) {
  const auto deadline = Steady::now() + timeout;
  std::vector<PartitionSpan> spans;
  for (const int32_t partition : partitions) {
    int64_t low = 0, high = 0;
    const auto asked = rd_kafka_query_watermark_offsets(client, topic.c_str(), partition, &low,
                                                        &high, MillisLeft(deadline));
    if (asked != RD_KAFKA_RESP_ERR_NO_ERROR)
      return Unanswered(fmt::format("topic '{}' partition {}", topic, partition), asked);
    spans.push_back({partition, static_cast<uint64_t>(std::max<int64_t>(low, 0)),
                     static_cast<uint64_t>(std::max<int64_t>(high, 0))});
  }
  return spans;
}

namespace {

// Asks for the offsets of a time, with one request to each broker; shows those that came.
Status AskByTime(rd_kafka_t* client, const std::string& topic, std::span<const int32_t> partitions,
                 int64_t time, const std::string& what, Milliseconds timeout,
                 const std::function<void(int32_t, int64_t)>& show) {
  const KafkaPartitions list(
      rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const int32_t partition : partitions)
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = time;
  const auto asked =
      rd_kafka_offsets_for_times(client, list.get(), static_cast<int>(timeout.count()));
  if (asked != RD_KAFKA_RESP_ERR_NO_ERROR)
    return Unanswered(fmt::format("topic '{}': {}", topic, what), asked);
  for (int i = 0; i < list->cnt; ++i)
    if (list->elems[i].err == RD_KAFKA_RESP_ERR_NO_ERROR)
      show(list->elems[i].partition, list->elems[i].offset);
  return {};
}

}  // namespace

// For a read_committed client a partition ends where its first open transaction begins, which is as
// far as it can be read.
Result<std::vector<PartitionEnd>> ReadEnds(rd_kafka_t* client, const std::string& topic,
                                           std::span<const int32_t> partitions,
                                           Milliseconds timeout) {
  std::vector<PartitionEnd> ends;
  TACIT_RETURN_IF_ERROR(AskByTime(client, topic, partitions, RD_KAFKA_OFFSET_END, "where it ends",
                                  timeout, [&](int32_t partition, int64_t offset) {
                                    if (offset < 0) return;
                                    ends.push_back({partition, static_cast<uint64_t>(offset)});
                                  }));
  return ends;
}

Result<std::map<int32_t, std::optional<uint64_t>>> ReadOffsetsAt(
    rd_kafka_t* client, const std::string& topic, std::span<const int32_t> partitions,
    int64_t time_ms, Milliseconds timeout) {
  std::map<int32_t, std::optional<uint64_t>> found;
  TACIT_RETURN_IF_ERROR(AskByTime(client, topic, partitions, time_ms, "where a time begins",
                                  timeout, [&](int32_t partition, int64_t offset) {
                                    found[partition] = std::nullopt;
                                    if (offset >= 0)
                                      found[partition] = static_cast<uint64_t>(offset);
                                  }));
  return found;
}

Result<std::vector<GroupOffset>> ReadGroup(rd_kafka_t* client, const std::string& topic,
                                           std::span<const int32_t> partitions,
                                           Milliseconds timeout) {
  const std::string question = fmt::format("the group's offsets of topic '{}'", topic);
  const KafkaPartitions list(
      rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const int32_t partition : partitions)
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition);
  const auto asked = rd_kafka_committed(client, list.get(), static_cast<int>(timeout.count()));
  if (asked != RD_KAFKA_RESP_ERR_NO_ERROR) return Unanswered(question, asked);
  std::vector<GroupOffset> offsets;
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = list->elems[i];
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) return Unanswered(question, one.err);
    if (one.offset < 0) continue;
    offsets.push_back({one.partition, static_cast<uint64_t>(one.offset),
                       std::string(static_cast<const char*>(one.metadata), one.metadata_size)});
  }
  return offsets;
}

FetchedMessage TakeOver(rd_kafka_message_t* message) {
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const bool null = message->payload == nullptr;
  return {.offset = static_cast<uint64_t>(message->offset),
          .timestamp_ms = rd_kafka_message_timestamp(message, &type),
          .value = {static_cast<const char*>(message->payload), null ? 0 : message->len},
          .null = null,
          .at_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF,
          .message = KafkaMessage(message)};
}

LastRecord LastRecordOf(const FetchedMessage& message) {
  return {.offset = message.offset,
          .timestamp_ms = message.timestamp_ms,
          .hash = BucketHash(message.value, message.null)};
}

KafkaPartitions MakePartitions(const std::string& topic, std::span<const PartitionOffset> offsets) {
  KafkaPartitions list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())));
  for (const PartitionOffset& offset : offsets)
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), offset.partition)->offset =
        static_cast<int64_t>(offset.offset);
  return list;
}

Result<std::map<int32_t, LastRecord>> ReadRecordsAt(const KafkaProperties& properties,
                                                    const std::string& topic,
                                                    std::span<const PartitionOffset> offsets,
                                                    Milliseconds timeout) {
  if (offsets.empty()) return std::map<int32_t, LastRecord>();
  const auto deadline = Steady::now() + timeout;
  const auto context = std::make_shared<KafkaContext>();
  TACIT_ASSIGN(KafkaClient client, MakeLooker(properties, context.get()));
  auto found = ReadRecordsAt(client.get(), topic, offsets, deadline);
  EndKafkaClient(std::move(client), context);
  return found;
}

}  // namespace tacit::stream
