// librdkafka's values: lists, headers, messages, errors and answers about topics.
#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "sim/brokers/client.h"

namespace tacit::sim {
namespace {

// The words of librdkafka 2.0.2.
constexpr std::pair<rd_kafka_resp_err_t, const char*> kWords[] = {
    {RD_KAFKA_RESP_ERR__TRANSPORT, "Local: Broker transport failure"},
    {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, "Local: Message timed out"},
    {RD_KAFKA_RESP_ERR__PARTITION_EOF, "Broker: No more messages"},
    {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, "Local: Unknown partition"},
    {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, "Local: Unknown topic"},
    {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "Local: All broker connections are down"},
    {RD_KAFKA_RESP_ERR__INVALID_ARG, "Local: Invalid argument or configuration"},
    {RD_KAFKA_RESP_ERR__TIMED_OUT, "Local: Timed out"},
    {RD_KAFKA_RESP_ERR__QUEUE_FULL, "Local: Queue full"},
    {RD_KAFKA_RESP_ERR__UNKNOWN_GROUP, "Local: Unknown group"},
    {RD_KAFKA_RESP_ERR__STATE, "Local: Erroneous state"},
    {RD_KAFKA_RESP_ERR__NO_OFFSET, "Local: No offset stored"},
    {RD_KAFKA_RESP_ERR__PURGE_QUEUE, "Local: Purged in queue"},
    {RD_KAFKA_RESP_ERR__FATAL, "Local: Fatal error"},
    {RD_KAFKA_RESP_ERR__NOT_CONFIGURED, "Local: Functionality not configured"},
    {RD_KAFKA_RESP_ERR__FENCED, "Local: This instance has been fenced by a newer instance"},
    {RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, "Local: No offset to automatically reset to"},
    {RD_KAFKA_RESP_ERR_UNKNOWN, "Unknown broker error"},
    {RD_KAFKA_RESP_ERR_NO_ERROR, "Success"},
    {RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE, "Broker: Offset out of range"},
    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "Broker: Unknown topic or partition"},
    {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, "Broker: Not leader for partition"},
    {RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, "Broker: Request timed out"},
    {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, "Broker: Message size too large"},
    {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, "Broker: Not enough in-sync replicas"},
    {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, "Broker: Cluster authorization failed"},
    {RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
     "Broker: Producer attempted an operation with an old epoch"},
    {RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT,
     "Broker: Transaction timeout is larger than the maximum value allowed by the broker's "
     "max.transaction.timeout.ms"},
    {RD_KAFKA_RESP_ERR_PRODUCER_FENCED,
     "Broker: There is a newer producer with the same transactionalId which fences the current "
     "one"},
};

// An answer about one topic, which owns all that it points to.
struct OwnMetadata : rd_kafka_metadata_t {
  rd_kafka_metadata_topic_t topic{};
  std::string name;
  std::vector<rd_kafka_metadata_partition_t> of;
  std::vector<int32_t> leaders;
};

}  // namespace

rd_kafka_message_t* MakeMessage(int32_t partition, ClusterRecord record) {
  auto* message = new OwnMessage;
  message->record = std::move(record);
  const auto bytes = [](std::optional<std::string>& text) { return text ? text->data() : nullptr; };
  message->partition = partition;
  message->offset = message->record.offset;
  message->payload = bytes(message->record.value);
  message->len = message->record.value ? message->record.value->size() : 0;
  message->key = bytes(message->record.key);
  message->key_len = message->record.key ? message->record.key->size() : 0;
  message->headers.list = message->record.headers;
  return message;
}

rd_kafka_message_t* MakeEvent(int32_t partition, int64_t offset, rd_kafka_resp_err_t error) {
  ClusterRecord words{.value = rd_kafka_err2str(error), .offset = offset};
  rd_kafka_message_t* const message = MakeMessage(partition, std::move(words));
  message->err = error;
  return message;
}

rd_kafka_metadata_t* MakeMetadata(const std::string& topic, const Cluster& cluster) {
  auto* made = new OwnMetadata{};
  const int32_t count = cluster.Partitions(topic);
  made->name = topic;
  made->of.resize(static_cast<size_t>(count));
  made->leaders.resize(made->of.size());
  for (int32_t id = 0; id < count; ++id) {
    auto& leader = made->leaders[static_cast<size_t>(id)];
    leader = cluster.Leader(topic, id);
    made->of[static_cast<size_t>(id)] = {.id = id,
                                         .err = RD_KAFKA_RESP_ERR_NO_ERROR,
                                         .leader = leader,
                                         .replica_cnt = 1,
                                         .replicas = &leader,
                                         .isr_cnt = 1,
                                         .isrs = &leader};
  }
  made->topic = {
      .topic = made->name.data(),
      .partition_cnt = count,
      .partitions = made->of.data(),
      .err = count > 0 ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART};
  made->topic_cnt = 1;
  made->topics = &made->topic;
  return made;
}

rd_kafka_error_t* MakeError(rd_kafka_resp_err_t code, std::string text, bool retriable) {
  return new rd_kafka_error_s{code, std::move(text), retriable};
}

rd_kafka_topic_partition_list_t* Copy(const rd_kafka_topic_partition_list_t& list) {
  rd_kafka_topic_partition_list_t* const copy = rd_kafka_topic_partition_list_new(list.cnt);
  for (int i = 0; i < list.cnt; ++i) {
    const rd_kafka_topic_partition_t& from = list.elems[i];
    auto* const to = rd_kafka_topic_partition_list_add(copy, from.topic, from.partition);
    to->offset = from.offset;
    to->err = from.err;
    if (from.metadata == nullptr) continue;
    SetMetadata(to, {static_cast<const char*>(from.metadata), from.metadata_size});
  }
  return copy;
}

void SetMetadata(rd_kafka_topic_partition_t* to, std::string_view text) {
  free(to->metadata);
  to->metadata = strndup(text.data(), text.size());
  to->metadata_size = text.size();
}

}  // namespace tacit::sim

using tacit::sim::OwnMessage;

// NOLINTBEGIN: librdkafka's names
extern "C" {

int rd_kafka_version() { return 0x020002ff; }
const char* rd_kafka_version_str() { return "2.0.2"; }

const char* rd_kafka_err2str(rd_kafka_resp_err_t error) {
  for (const auto& [code, words] : tacit::sim::kWords)
    if (code == error) return words;
  return "an error that the simulated brokers have no words for";
}

rd_kafka_error_t* rd_kafka_error_new(rd_kafka_resp_err_t code, const char* format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof(text), format, list);
  va_end(list);
  return tacit::sim::MakeError(code, text, false);
}
rd_kafka_resp_err_t rd_kafka_error_code(const rd_kafka_error_t* error) {
  return error == nullptr ? RD_KAFKA_RESP_ERR_NO_ERROR : error->code;
}
const char* rd_kafka_error_string(const rd_kafka_error_t* error) { return error->text.c_str(); }
int rd_kafka_error_is_retriable(const rd_kafka_error_t* error) { return error->retriable ? 1 : 0; }
void rd_kafka_error_destroy(rd_kafka_error_t* error) { delete error; }

rd_kafka_topic_partition_list_t* rd_kafka_topic_partition_list_new(int size) {
  auto* list = static_cast<rd_kafka_topic_partition_list_t*>(
      calloc(1, sizeof(rd_kafka_topic_partition_list_t)));
  list->size = std::max(size, 1);
  list->elems = static_cast<rd_kafka_topic_partition_t*>(
      calloc(static_cast<size_t>(list->size), sizeof(*list->elems)));
  return list;
}
rd_kafka_topic_partition_t* rd_kafka_topic_partition_list_add(rd_kafka_topic_partition_list_t* list,
                                                              const char* topic,
                                                              int32_t partition) {
  if (list->cnt == list->size) {
    list->size *= 2;
    list->elems = static_cast<rd_kafka_topic_partition_t*>(
        realloc(list->elems, static_cast<size_t>(list->size) * sizeof(*list->elems)));
  }
  rd_kafka_topic_partition_t& one = list->elems[list->cnt++];
  one = {};
  one.topic = strdup(topic);
  one.partition = partition;
  one.offset = RD_KAFKA_OFFSET_INVALID;
  return &one;
}
void rd_kafka_topic_partition_list_destroy(rd_kafka_topic_partition_list_t* list) {
  for (int i = 0; i < list->cnt; ++i) {
    free(list->elems[i].topic);
    free(list->elems[i].metadata);
  }
  free(list->elems);
  free(list);
}

rd_kafka_headers_t* rd_kafka_headers_new(size_t) { return new rd_kafka_headers_s; }
void rd_kafka_headers_destroy(rd_kafka_headers_t* headers) { delete headers; }
rd_kafka_resp_err_t rd_kafka_header_add(rd_kafka_headers_t* headers, const char* name,
                                        ssize_t name_size, const void* value, ssize_t value_size) {
  const auto text = [](const void* bytes, ssize_t size) {
    const auto* from = static_cast<const char*>(bytes);
    return std::string(from, size < 0 ? strlen(from) : static_cast<size_t>(size));
  };
  headers->list.emplace_back(text(name, name_size), value == nullptr
                                                        ? std::nullopt
                                                        : std::optional(text(value, value_size)));
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}
rd_kafka_resp_err_t rd_kafka_header_get_all(const rd_kafka_headers_t* headers, size_t at,
                                            const char** name, const void** value, size_t* size) {
  if (at >= headers->list.size()) return RD_KAFKA_RESP_ERR__NOENT;
  const auto& [own_name, own_value] = headers->list[at];
  *name = own_name.c_str();
  *value = own_value ? own_value->c_str() : nullptr;
  *size = own_value ? own_value->size() : 0;
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

void rd_kafka_message_destroy(rd_kafka_message_t* message) {
  delete static_cast<OwnMessage*>(message);
}
const char* rd_kafka_message_errstr(const rd_kafka_message_t* message) {
  return rd_kafka_err2str(message->err);
}
int64_t rd_kafka_message_timestamp(const rd_kafka_message_t* message,
                                   rd_kafka_timestamp_type_t* type) {
  const auto& record = static_cast<const OwnMessage*>(message)->record;
  const bool there = message->err == RD_KAFKA_RESP_ERR_NO_ERROR;
  if (type != nullptr)
    *type = !there            ? RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
            : record.appended ? RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME
                              : RD_KAFKA_TIMESTAMP_CREATE_TIME;
  return there ? record.timestamp_ms : -1;
}
rd_kafka_resp_err_t rd_kafka_message_headers(const rd_kafka_message_t* message,
                                             rd_kafka_headers_t** headers) {
  const auto* own = static_cast<const OwnMessage*>(message);
  if (own->headers.list.empty()) return RD_KAFKA_RESP_ERR__NOENT;
  *headers = const_cast<rd_kafka_headers_t*>(&own->headers);
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

void rd_kafka_metadata_destroy(const struct rd_kafka_metadata* metadata) {
  delete static_cast<const tacit::sim::OwnMetadata*>(metadata);
}

// MurmurHash2 as org.apache.kafka.common.utils.Utils has it, without the sign.
int32_t rd_kafka_msg_partitioner_murmur2(const rd_kafka_topic_t*, const void* key, size_t size,
                                         int32_t partitions, void*, void*) {
  constexpr uint32_t kFactor = 0x5bd1e995;
  const auto* bytes = static_cast<const uint8_t*>(key);
  uint32_t hash = 0x9747b28c ^ static_cast<uint32_t>(size);
  size_t at = 0;
  for (; at + 4 <= size; at += 4) {
    uint32_t word = 0;
    memcpy(&word, bytes + at, sizeof(word));
    word *= kFactor;
    word ^= word >> 24;
    hash = (hash * kFactor) ^ (word * kFactor);
  }
  if (at < size) {
    for (size_t left = size - at; left > 0; --left)
      hash ^= static_cast<uint32_t>(bytes[at + left - 1]) << (8 * (left - 1));
    hash *= kFactor;
  }
  hash = (hash ^ (hash >> 13)) * kFactor;
  hash ^= hash >> 15;
  return static_cast<int32_t>(hash & 0x7fffffff) % partitions;
}

}  // extern "C"
// NOLINTEND
