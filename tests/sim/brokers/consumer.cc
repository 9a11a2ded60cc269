// A client that reads partitions and commits offsets.
#include <algorithm>

#include "sim/brokers/client.h"

using tacit::sim::Cluster;
using tacit::sim::Entry;
using tacit::sim::Lock;
using tacit::sim::Millis;
using tacit::sim::PartitionState;
using tacit::sim::Request;
using tacit::sim::TheHub;
using Steady = std::chrono::steady_clock;

PartitionState& rd_kafka_s::PartitionOf(const std::string& topic, int32_t partition) {
  const auto [at, fresh] = partitions.try_emplace({topic, partition});
  if (fresh) at->second.queue.forward = &consumer;
  return at->second;
}

void rd_kafka_s::Assign(const std::string& topic, int32_t partition, int64_t offset) {
  PartitionState& state = PartitionOf(topic, partition);
  Unassign(state);
  state.assigned = true;
  state.next = offset;
  // The thread of its leader looks at once.
  std::ranges::fill(next_fetch, Moment());
  work.notify_all();
}

void rd_kafka_s::Unassign(PartitionState& partition) {
  for (tacit::sim::Queue* queue : {&partition.queue, &consumer})
    std::erase_if(queue->entries, [&](const Entry& entry) {
      if (entry.of != &partition) return false;
      rd_kafka_message_destroy(entry.message);
      return true;
    });
  partition.assigned = partition.failed = false;
  ++partition.assignment;
  partition.told_end = -1;
  partition.pause_until = Moment();
  partition.queued = partition.queued_bytes = 0;
  partition.full = false;
}

// A broker holds a fetch back while it has no news, as long as fetch.wait.max.ms.
bool rd_kafka_s::FetchSome(Lock& lock, int32_t broker) {
  struct Wanted {
    const std::string& topic;
    int32_t number;
    PartitionState& state;
    uint64_t assignment;
    Cluster::Fetched fetched;
  };
  const auto messages = static_cast<size_t>(conf->Number("queued.min.messages"));
  const auto bytes = static_cast<size_t>(conf->Number("queued.max.messages.kbytes")) << 10;
  const bool committed_only = conf->Get("isolation.level") == "read_committed";
  const Moment now = Steady::now();
  std::vector<Wanted> wanted;
  bool news = cluster == nullptr;
  for (auto& [name, state] : partitions) {
    state.full = state.queued >= messages || state.queued_bytes >= bytes;
    if (!state.assigned || state.failed || state.full || now < state.pause_until) continue;
    if (cluster != nullptr && cluster->Leader(name.first, name.second) != broker) continue;
    wanted.push_back({name.first, name.second, state, state.assignment, {}});
    if (cluster == nullptr) continue;
    const auto there = cluster->Fetch(name.first, name.second, state.next, 0, committed_only);
    const int64_t limit = committed_only ? there.stable : there.end;
    news = news || there.error != RD_KAFKA_RESP_ERR_NO_ERROR || state.next < limit ||
           state.told_end != state.next || state.high != there.end || state.low != there.start;
  }
  Moment& next = next_fetch[static_cast<size_t>(broker)];
  if (wanted.empty() || (!news && now < next)) return false;
  const auto answer_bytes = static_cast<size_t>(conf->Number("fetch.message.max.bytes"));
  const Error error = Ask(lock, Request::kFetch, broker, Moment::max(), [&] {
    for (Wanted& one : wanted)
      if (one.state.assignment == one.assignment)
        one.fetched =
            cluster->Fetch(one.topic, one.number, one.state.next, answer_bytes, committed_only);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
  });
  const bool answered = error == RD_KAFKA_RESP_ERR_NO_ERROR;
  next =
      Steady::now() + Millis(conf->Number(answered ? "fetch.wait.max.ms" : "reconnect.backoff.ms"));
  for (Wanted& one : wanted) {
    if (one.state.assignment != one.assignment) continue;
    if (error == RD_KAFKA_RESP_ERR__TRANSPORT || error == RD_KAFKA_RESP_ERR__TIMED_OUT) {
      one.state.pause_until = next;
      continue;
    }
    if (!answered) one.fetched.error = error;
    Deliver(one.number, one.state, std::move(one.fetched));
  }
  return true;
}

void rd_kafka_s::Deliver(int32_t number, PartitionState& partition, Cluster::Fetched fetched) {
  const auto tell = [&](Error error) {
    Push(partition.queue,
         {.message = tacit::sim::MakeEvent(number, partition.next, error), .of = &partition});
  };
  const auto back_off = [&] {
    partition.pause_until = Steady::now() + Millis(conf->Number("fetch.error.backoff.ms"));
  };
  switch (fetched.error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      break;
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      partition.failed = true;
      return tell(RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET);
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:  // librdkafka 2.0 tells no reader
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
      return back_off();
    default:
      back_off();
      return tell(fetched.error);
  }
  partition.low = fetched.start;
  partition.high = fetched.end;
  for (tacit::sim::ClusterRecord& record : fetched.records) {
    ++partition.queued;
    partition.queued_bytes += record.bytes();
    Push(partition.queue,
         {.message = tacit::sim::MakeMessage(number, std::move(record)), .of = &partition});
  }
  partition.next = fetched.next;
  const bool at_end =
      partition.next ==
      (conf->Get("isolation.level") == "read_committed" ? fetched.stable : fetched.end);
  if (!fetched.records.empty() || !at_end || partition.told_end == partition.next) return;
  partition.told_end = partition.next;
  if (conf->Flag("enable.partition.eof")) tell(RD_KAFKA_RESP_ERR__PARTITION_EOF);
}

namespace {

struct CommitCall {
  void (*call)(rd_kafka_t*, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t*, void*);
  void* opaque;
  std::shared_ptr<tacit::sim::Queue> queue;
};

// Asks the group's coordinator on the thread of its broker, which makes the call due.
void CommitLater(rd_kafka_t* client, const rd_kafka_topic_partition_list_t& offsets,
                 CommitCall then) {
  const std::string group = client->conf->Get("group.id");
  const int32_t coordinator = client->CoordinatorOf(group);
  const std::shared_ptr<rd_kafka_topic_partition_list_t> list(
      tacit::sim::Copy(offsets), rd_kafka_topic_partition_list_destroy);
  client->tasks.push_back(
      {coordinator, [=](Lock& lock) {
         const auto until =
             tacit::sim::In(static_cast<int>(client->conf->Number("socket.timeout.ms")));
         const auto error =
             client->AskUntil(lock, Request::kCommitOffsets, coordinator, until, [&] {
               for (int i = 0; i < list->cnt; ++i) {
                 rd_kafka_topic_partition_t& one = list->elems[i];
                 one.err = client->cluster->CommitOffset(
                     group, one.topic, one.partition,
                     {.offset = one.offset,
                      .metadata =
                          std::string(static_cast<const char*>(one.metadata), one.metadata_size)});
               }
               return RD_KAFKA_RESP_ERR_NO_ERROR;
             });
         client->Push(*then.queue, {.call = [=] {
           if (then.call != nullptr) then.call(client, error, list.get(), then.opaque);
         }});
       }});
  client->work.notify_all();
}

// Assigns partitions that are not, or takes away those that are.
rd_kafka_error_t* Change(rd_kafka_t* client, const rd_kafka_topic_partition_list_t& list,
                         bool assigns) {
  const Lock lock(TheHub().mutex);
  for (int i = 0; i < list.cnt; ++i) {
    const rd_kafka_topic_partition_t& one = list.elems[i];
    PartitionState& partition = client->PartitionOf(one.topic, one.partition);
    if (partition.assigned == assigns)
      return tacit::sim::MakeError(
          assigns ? RD_KAFKA_RESP_ERR__CONFLICT : RD_KAFKA_RESP_ERR__INVALID_ARG,
          assigns ? "the partition is assigned already" : "the partition is not assigned");
    assigns ? client->Assign(one.topic, one.partition, one.offset) : client->Unassign(partition);
  }
  return nullptr;
}

}  // namespace

// NOLINTBEGIN: librdkafka's names
extern "C" {

rd_kafka_resp_err_t rd_kafka_poll_set_consumer(rd_kafka_t* client) {
  const Lock lock(TheHub().mutex);
  client->main.forward = &client->consumer;
  for (Entry& entry : client->main.entries) client->consumer.entries.push_back(std::move(entry));
  client->main.entries.clear();
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}
rd_kafka_message_t* rd_kafka_consumer_poll(rd_kafka_t* client, int timeout_ms) {
  Lock lock(TheHub().mutex);
  const auto entry = client->Take(lock, client->consumer, tacit::sim::In(timeout_ms));
  return entry ? entry->message : nullptr;
}

rd_kafka_resp_err_t rd_kafka_assign(rd_kafka_t* client,
                                    const rd_kafka_topic_partition_list_t* list) {
  if (client->conf->Get("group.id").empty()) return RD_KAFKA_RESP_ERR__UNKNOWN_GROUP;
  const Lock lock(TheHub().mutex);
  for (auto& [name, partition] : client->partitions) client->Unassign(partition);
  for (int i = 0; list != nullptr && i < list->cnt; ++i)
    client->Assign(list->elems[i].topic, list->elems[i].partition, list->elems[i].offset);
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}
rd_kafka_error_t* rd_kafka_incremental_assign(rd_kafka_t* client,
                                              const rd_kafka_topic_partition_list_t* list) {
  return Change(client, *list, true);
}
rd_kafka_error_t* rd_kafka_incremental_unassign(rd_kafka_t* client,
                                                const rd_kafka_topic_partition_list_t* list) {
  return Change(client, *list, false);
}

rd_kafka_resp_err_t rd_kafka_get_watermark_offsets(rd_kafka_t* client, const char* topic,
                                                   int32_t partition, int64_t* low, int64_t* high) {
  const Lock lock(TheHub().mutex);
  const PartitionState& state = client->PartitionOf(topic, partition);
  *low = state.low;
  *high = state.high;
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

rd_kafka_resp_err_t rd_kafka_commit(rd_kafka_t* client,
                                    const rd_kafka_topic_partition_list_t* offsets, int) {
  const Lock lock(TheHub().mutex);
  CommitLater(client, *offsets,
              {client->conf->on_commit, client->conf->opaque, tacit::sim::Borrow(&client->main)});
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}
rd_kafka_resp_err_t rd_kafka_commit_queue(
    rd_kafka_t* client, const rd_kafka_topic_partition_list_t* offsets, rd_kafka_queue_t* queue,
    void (*call)(rd_kafka_t*, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t*, void*),
    void* opaque) {
  const Lock lock(TheHub().mutex);
  CommitLater(client, *offsets, {call, opaque, queue->queue});
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

}  // extern "C"
// NOLINTEND
