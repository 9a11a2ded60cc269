// Questions to brokers about topics and groups, and requests of operators.
#include <algorithm>
#include <cstring>

#include "sim/brokers/client.h"

using tacit::sim::Cluster;
using tacit::sim::Error;
using tacit::sim::In;
using tacit::sim::Lock;
using tacit::sim::Request;
using tacit::sim::TheHub;

namespace {

// Asks any broker for the number of a topic's partitions.
Error AskPartitions(rd_kafka_t* client, Lock& lock, const std::string& topic,
                    tacit::sim::Moment until) {
  const int32_t broker = client->AnyBroker();
  return client->AskUntil(lock, Request::kMetadata, broker, until, [&] {
    client->partition_counts[topic] = client->cluster->Partitions(topic);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
  });
}

// The error of a partition that is asked about, as far as the client knows the topic.
Error Known(rd_kafka_t* client, const std::string& topic, int32_t partition) {
  const int32_t count = client->partition_counts[topic];
  if (count == 0) return RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  return partition < count ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

// Asks a partition's leader for the offset of a time.
Error AskOffset(rd_kafka_t* client, Lock& lock, const std::string& topic, int32_t partition,
                int64_t time_ms, tacit::sim::Moment until, int64_t* offset) {
  const bool committed_only = client->conf->Get("isolation.level") == "read_committed";
  const int32_t leader = client->LeaderOf(topic, partition);
  return client->AskUntil(lock, Request::kOffsets, leader, until, [&] {
    const auto found = client->cluster->OffsetAt(topic, partition, time_ms, committed_only);
    *offset = found.offset;
    return found.error;
  });
}

}  // namespace

struct rd_kafka_AdminOptions_s {
  int timeout_ms = 60'000;
};
struct rd_kafka_ConfigResource_s {
  std::string topic;
};
struct rd_kafka_DeleteRecords_s {
  rd_kafka_topic_partition_list_t* before;
};

// NOLINTBEGIN: librdkafka's names
extern "C" {

rd_kafka_resp_err_t rd_kafka_metadata(rd_kafka_t* client, int, rd_kafka_topic_t* topic,
                                      const struct rd_kafka_metadata** metadata, int timeout_ms) {
  Lock lock(TheHub().mutex);
  const Error error = AskPartitions(client, lock, topic->name, In(timeout_ms));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return error;
  *metadata = tacit::sim::MakeMetadata(topic->name, *client->cluster);
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t rd_kafka_query_watermark_offsets(rd_kafka_t* client, const char* topic,
                                                     int32_t partition, int64_t* low, int64_t* high,
                                                     int timeout_ms) {
  Lock lock(TheHub().mutex);
  const auto until = In(timeout_ms);
  Error error = AskPartitions(client, lock, topic, until);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) error = Known(client, topic, partition);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
    error = AskOffset(client, lock, topic, partition, RD_KAFKA_OFFSET_BEGINNING, until, low);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
    error = AskOffset(client, lock, topic, partition, RD_KAFKA_OFFSET_END, until, high);
  return error == RD_KAFKA_RESP_ERR__TRANSPORT ? RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN : error;
}

// One request for each partition; partitions whose leaders do not answer get an error each.
rd_kafka_resp_err_t rd_kafka_offsets_for_times(rd_kafka_t* client,
                                               rd_kafka_topic_partition_list_t* offsets,
                                               int timeout_ms) {
  if (timeout_ms == 0) return RD_KAFKA_RESP_ERR__TIMED_OUT;
  Lock lock(TheHub().mutex);
  const auto until = In(timeout_ms);
  Error error = offsets->cnt == 0 ? RD_KAFKA_RESP_ERR_NO_ERROR
                                  : AskPartitions(client, lock, offsets->elems[0].topic, until);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    return error == RD_KAFKA_RESP_ERR__TRANSPORT ? RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN : error;
  for (int i = 0; i < offsets->cnt; ++i) {
    rd_kafka_topic_partition_t& one = offsets->elems[i];
    one.err = Known(client, one.topic, one.partition);
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    int64_t offset = -1;
    one.err = AskOffset(client, lock, one.topic, one.partition, one.offset, until, &offset);
    if (one.err == RD_KAFKA_RESP_ERR__TRANSPORT || one.err == RD_KAFKA_RESP_ERR__TIMED_OUT)
      return RD_KAFKA_RESP_ERR__TIMED_OUT;
    one.offset = offset;
  }
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t rd_kafka_committed(rd_kafka_t* client, rd_kafka_topic_partition_list_t* list,
                                       int timeout_ms) {
  Lock lock(TheHub().mutex);
  const std::string group = client->conf->Get("group.id");
  if (group.empty()) return RD_KAFKA_RESP_ERR__UNKNOWN_GROUP;
  const int32_t coordinator = client->CoordinatorOf(group);
  const Error error =
      client->AskUntil(lock, Request::kGroupOffsets, coordinator, In(timeout_ms), [&] {
        for (int i = 0; i < list->cnt; ++i) {
          rd_kafka_topic_partition_t& one = list->elems[i];
          const auto found = client->cluster->CommittedOffset(group, one.topic, one.partition);
          one.offset = found ? found->offset : RD_KAFKA_OFFSET_INVALID;
          one.err = RD_KAFKA_RESP_ERR_NO_ERROR;
          tacit::sim::SetMetadata(&one, found ? found->metadata : "");
        }
        return RD_KAFKA_RESP_ERR_NO_ERROR;
      });
  return error == RD_KAFKA_RESP_ERR__TRANSPORT ? RD_KAFKA_RESP_ERR__TIMED_OUT : error;
}

rd_kafka_AdminOptions_t* rd_kafka_AdminOptions_new(rd_kafka_t*, rd_kafka_admin_op_t) {
  return new rd_kafka_AdminOptions_s;
}
void rd_kafka_AdminOptions_destroy(rd_kafka_AdminOptions_t* options) { delete options; }
rd_kafka_resp_err_t rd_kafka_AdminOptions_set_request_timeout(rd_kafka_AdminOptions_t* options,
                                                              int timeout_ms, char*, size_t) {
  options->timeout_ms = timeout_ms;
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}
rd_kafka_ConfigResource_t* rd_kafka_ConfigResource_new(rd_kafka_ResourceType_t, const char* name) {
  return new rd_kafka_ConfigResource_s{name};
}
void rd_kafka_ConfigResource_destroy(rd_kafka_ConfigResource_t* resource) { delete resource; }
rd_kafka_DeleteRecords_t* rd_kafka_DeleteRecords_new(
    const rd_kafka_topic_partition_list_t* before) {
  return new rd_kafka_DeleteRecords_s{tacit::sim::Copy(*before)};
}
void rd_kafka_DeleteRecords_destroy(rd_kafka_DeleteRecords_t* request) {
  rd_kafka_topic_partition_list_destroy(request->before);
  delete request;
}

// The call waits for the answer itself, which then lies in the queue.
void rd_kafka_DescribeConfigs(rd_kafka_t* client, rd_kafka_ConfigResource_t** resources, size_t,
                              const rd_kafka_AdminOptions_t* options, rd_kafka_queue_t* queue) {
  Lock lock(TheHub().mutex);
  auto* event = new rd_kafka_op_s;
  event->error =
      client->AskUntil(lock, Request::kSettings, client->AnyBroker(), In(options->timeout_ms), [&] {
        auto settings = client->cluster->SettingsOf(resources[0]->topic);
        if (settings)
          event->settings = *std::move(settings);
        else
          event->settings_error = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
        return RD_KAFKA_RESP_ERR_NO_ERROR;
      });
  for (const auto& one : event->settings)
    event->entries.push_back(reinterpret_cast<const rd_kafka_ConfigEntry_t*>(&one));
  client->Push(*queue->queue, {.event = event});
}
void rd_kafka_DeleteRecords(rd_kafka_t* client, rd_kafka_DeleteRecords_t** requests, size_t,
                            const rd_kafka_AdminOptions_t* options, rd_kafka_queue_t* queue) {
  Lock lock(TheHub().mutex);
  auto* event = new rd_kafka_op_s;
  event->deleted = tacit::sim::Copy(*requests[0]->before);
  for (int i = 0; i < event->deleted->cnt; ++i) {
    rd_kafka_topic_partition_t& one = event->deleted->elems[i];
    const int32_t leader = client->LeaderOf(one.topic, one.partition);
    one.err = client->AskUntil(lock, Request::kDelete, leader, In(options->timeout_ms), [&] {
      return client->cluster->DeleteBefore(one.topic, one.partition, one.offset);
    });
    if (one.err == RD_KAFKA_RESP_ERR__TRANSPORT || one.err == RD_KAFKA_RESP_ERR__TIMED_OUT)
      event->error = RD_KAFKA_RESP_ERR__TIMED_OUT;
  }
  client->Push(*queue->queue, {.event = event});
}

rd_kafka_resp_err_t rd_kafka_event_error(rd_kafka_event_t* event) { return event->error; }
void rd_kafka_event_destroy(rd_kafka_event_t* event) {
  if (event->deleted != nullptr) rd_kafka_topic_partition_list_destroy(event->deleted);
  delete event;
}
const rd_kafka_DescribeConfigs_result_t* rd_kafka_event_DescribeConfigs_result(
    rd_kafka_event_t* event) {
  event->resource = reinterpret_cast<const rd_kafka_ConfigResource_t*>(event);
  return reinterpret_cast<const rd_kafka_DescribeConfigs_result_t*>(event);
}
const rd_kafka_ConfigResource_t** rd_kafka_DescribeConfigs_result_resources(
    const rd_kafka_DescribeConfigs_result_t* result, size_t* count) {
  *count = 1;
  const auto* event = reinterpret_cast<const rd_kafka_op_s*>(result);
  return const_cast<const rd_kafka_ConfigResource_t**>(&event->resource);
}
rd_kafka_resp_err_t rd_kafka_ConfigResource_error(const rd_kafka_ConfigResource_t* resource) {
  return reinterpret_cast<const rd_kafka_op_s*>(resource)->settings_error;
}
const rd_kafka_ConfigEntry_t** rd_kafka_ConfigResource_configs(
    const rd_kafka_ConfigResource_t* resource, size_t* count) {
  const auto* event = reinterpret_cast<const rd_kafka_op_s*>(resource);
  *count = event->entries.size();
  return const_cast<const rd_kafka_ConfigEntry_t**>(event->entries.data());
}
const char* rd_kafka_ConfigEntry_name(const rd_kafka_ConfigEntry_t* entry) {
  return reinterpret_cast<const Cluster::Settings::value_type*>(entry)->first.c_str();
}
const char* rd_kafka_ConfigEntry_value(const rd_kafka_ConfigEntry_t* entry) {
  return reinterpret_cast<const Cluster::Settings::value_type*>(entry)->second.c_str();
}
const rd_kafka_DeleteRecords_result_t* rd_kafka_event_DeleteRecords_result(
    rd_kafka_event_t* event) {
  return reinterpret_cast<const rd_kafka_DeleteRecords_result_t*>(event);
}
const rd_kafka_topic_partition_list_t* rd_kafka_DeleteRecords_result_offsets(
    const rd_kafka_DeleteRecords_result_t* result) {
  return reinterpret_cast<const rd_kafka_op_s*>(result)->deleted;
}

}  // extern "C"
// NOLINTEND
