// A client that writes records.
#include <algorithm>
#include <cstdarg>

#include "sim/brokers/client.h"

using tacit::sim::ClusterRecord;
using tacit::sim::Lane;
using tacit::sim::Lock;
using tacit::sim::Millis;
using tacit::sim::Outgoing;
using tacit::sim::Request;
using tacit::sim::TheHub;
using tacit::sim::TransactionState;
using Steady = std::chrono::steady_clock;

namespace {

thread_local rd_kafka_resp_err_t last_error = RD_KAFKA_RESP_ERR_NO_ERROR;

bool IsLost(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR__TRANSPORT || error == RD_KAFKA_RESP_ERR__TIMED_OUT ||
         error == RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT ||
         error == RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS ||
         error == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
}

bool IsFenced(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
         error == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
}

int64_t ClockMs() {
  return std::chrono::duration_cast<Millis>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::optional<std::string> Text(const void* bytes, size_t size) {
  if (bytes == nullptr) return std::nullopt;
  return std::string(static_cast<const char*>(bytes), size);
}

}  // namespace

rd_kafka_s::Error rd_kafka_s::Enqueue(Lock& lock, const std::string& topic, Outgoing message,
                                      bool block) {
  const size_t bytes = message.record.bytes();
  if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR) return RD_KAFKA_RESP_ERR__FATAL;
  if (!conf->Get("transactional.id").empty() && transaction != TransactionState::kOpen)
    return RD_KAFKA_RESP_ERR__STATE;
  if (bytes > static_cast<size_t>(conf->Number("message.max.bytes")))
    return RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
  const auto known = partition_counts.find(topic);
  const int32_t count = known == partition_counts.end() ? 0 : known->second;
  if (count > 0 && message.partition >= count) return RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
  const auto full = [&] {
    return unreported >= static_cast<size_t>(conf->Number("queue.buffering.max.messages")) ||
           unreported_bytes + bytes >
               static_cast<size_t>(conf->Number("queue.buffering.max.kbytes")) << 10;
  };
  while (full()) {
    if (!block) return RD_KAFKA_RESP_ERR__QUEUE_FULL;
    ready.wait(lock);
  }
  ++unreported;
  unreported_bytes += bytes;
  message.at = Steady::now();
  if (message.record.timestamp_ms == 0) message.record.timestamp_ms = ClockMs();
  without_partition[topic].push_back(std::move(message));
  work.notify_all();
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

// Moves messages to their partitions once the number of these is known.
bool rd_kafka_s::FindPartitions(Lock& lock, int32_t broker) {
  for (auto& [topic, messages] : without_partition) {
    if (messages.empty()) continue;
    if (partition_counts[topic] == 0) {
      const Error asked = Ask(lock, Request::kMetadata, broker, Moment::max(), [&] {
        partition_counts[topic] = cluster->Partitions(topic);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
      });
      const Moment patience =
          Steady::now() - Millis(conf->Number("topic.metadata.propagation.max.ms"));
      const bool unknown = asked == RD_KAFKA_RESP_ERR_NO_ERROR && partition_counts[topic] == 0;
      while (unknown && !messages.empty() && messages.front().at < patience) {
        Report(std::move(messages.front()), RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        messages.pop_front();
      }
      if (partition_counts[topic] == 0) continue;
    }
    const int32_t count = partition_counts[topic];
    while (!messages.empty()) {
      Outgoing message = std::move(messages.front());
      messages.pop_front();
      const auto& key = message.record.key;
      if (message.partition == RD_KAFKA_PARTITION_UA)
        message.partition = key ? rd_kafka_msg_partitioner_murmur2(
                                      nullptr, key->data(), key->size(), count, nullptr, nullptr)
                                : static_cast<int32_t>(keyless++ % static_cast<uint64_t>(count));
      if (message.partition >= count) {
        Report(std::move(message), RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
        continue;
      }
      const std::pair place(topic, message.partition);
      lanes[place].waiting.push_back(std::move(message));
    }
    return true;
  }
  return false;
}

bool rd_kafka_s::SendSome(Lock& lock, int32_t broker) {
  const bool transactional = !conf->Get("transactional.id").empty();
  if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
  if (FindPartitions(lock, broker)) return true;
  const Moment now = Steady::now();
  const Millis linger(conf->Number("queue.buffering.max.ms"));
  const auto batch_most = static_cast<size_t>(conf->Number("batch.num.messages"));
  for (auto& [name, lane] : lanes) {
    if (cluster == nullptr || cluster->Leader(name.first, name.second) != broker ||
        now < lane.pause_until)
      continue;
    const bool due = !lane.waiting.empty() && (flushing > 0 || lane.waiting.size() >= batch_most ||
                                               now - lane.waiting.front().at >= linger);
    if (lane.batch.empty() && !due) continue;
    if (conf->Flag("enable.idempotence") && !transactional && producer.id < 0) {
      if (std::exchange(asks_producer, true)) return false;
      const Error error = Ask(lock, Request::kInitProducer, broker, Moment::max(), [&] {
        const auto [refused, id] = cluster->InitProducer("", 0);
        producer = id;
        return refused;
      });
      asks_producer = false;
      if (error != RD_KAFKA_RESP_ERR_NO_ERROR && !IsLost(error))
        FailForGood(error,
                    std::string("Failed to acquire a producer id: ") + rd_kafka_err2str(error));
      return error == RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    return SendBatch(lock, name.first, name.second, lane, broker);
  }
  return false;
}

bool rd_kafka_s::SendBatch(Lock& lock, const std::string& topic, int32_t partition, Lane& lane,
                           int32_t broker) {
  const std::string transactional_id = conf->Get("transactional.id");
  const bool transactional = !transactional_id.empty();
  if (lane.batch.empty()) {
    const auto batch_most = static_cast<size_t>(conf->Number("batch.num.messages"));
    const auto bytes_most = static_cast<size_t>(conf->Number("message.max.bytes"));
    for (size_t bytes = 0; !lane.waiting.empty() && lane.batch.size() < batch_most;) {
      bytes += lane.waiting.front().record.bytes();
      if (!lane.batch.empty() && bytes > bytes_most) break;
      lane.batch.push_back(std::move(lane.waiting.front()));
      lane.waiting.pop_front();
    }
  }
  Error error = RD_KAFKA_RESP_ERR_NO_ERROR;
  if (transactional && !lane.in_transaction) {
    error =
        Ask(lock, Request::kAddPartition, cluster->Coordinator(transactional_id), Moment::max(),
            [&] { return cluster->AddPartition(transactional_id, producer, topic, partition); });
    lane.in_transaction = error == RD_KAFKA_RESP_ERR_NO_ERROR;
  }
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    std::vector<ClusterRecord> records;
    for (const Outgoing& one : lane.batch) records.push_back(one.record);
    error = Ask(lock, Request::kProduce, broker, Moment::max(), [&] {
      const auto written =
          cluster->Append(topic, partition, producer, lane.sequence, transactional, records);
      for (size_t i = 0; i < lane.batch.size(); ++i)
        lane.batch[i].record.offset = written.offset + static_cast<int64_t>(i);
      return written.error;
    });
  }
  if (IsLost(error)) {
    lane.pause_until = Steady::now() + Millis(conf->Number("retry.backoff.ms"));
    return true;
  }
  if (IsFenced(error) || error == RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER) {
    FailForGood(IsFenced(error) ? RD_KAFKA_RESP_ERR__FENCED : error, rd_kafka_err2str(error));
    return true;
  }
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
    lane.sequence += static_cast<int32_t>(lane.batch.size());
  else if (transactional)
    transaction_error = error;
  for (Outgoing& one : std::exchange(lane.batch, {})) Report(std::move(one), error);
  return true;
}

// The message counts as waiting until its report has been made.
void rd_kafka_s::Report(Outgoing message, Error error) {
  const auto told = [this](size_t bytes) {
    --unreported;
    unreported_bytes -= bytes;
    ready.notify_all();
  };
  const size_t bytes = message.record.bytes();
  if (conf->on_delivery == nullptr) return told(bytes);
  auto shared = std::make_shared<Outgoing>(std::move(message));
  Push(main, {.call = [this, shared, error, bytes, told] {
         const std::unique_ptr<rd_kafka_message_t, void (*)(rd_kafka_message_t*)> report(
             tacit::sim::MakeMessage(shared->partition, std::move(shared->record)),
             rd_kafka_message_destroy);
         report->err = error;
         report->_private = shared->opaque;
         conf->on_delivery(this, report.get(), conf->opaque);
         const Lock lock(TheHub().mutex);
         told(bytes);
       }});
}

void rd_kafka_s::FailForGood(Error error, std::string why) {
  if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  fatal = error;
  fatal_words = std::move(why);
  for (auto& [name, lane] : lanes)
    for (Outgoing& one : std::exchange(lane.batch, {})) Report(std::move(one), error);
  DropWaiting(RD_KAFKA_RESP_ERR__FATAL);
  ready.notify_all();
}

void rd_kafka_s::DropWaiting(Error error) {
  for (auto& [topic, messages] : without_partition)
    for (Outgoing& one : std::exchange(messages, {})) Report(std::move(one), error);
  for (auto& [name, lane] : lanes)
    for (Outgoing& one : std::exchange(lane.waiting, {})) Report(std::move(one), error);
}

rd_kafka_s::Error rd_kafka_s::Flush(Lock& lock, Moment until) {
  ++flushing;
  work.notify_all();
  while (unreported > 0 && Steady::now() < until) {
    if (Serve(lock, main, 0) > 0) continue;
    if (unreported > 0) ready.wait_until(lock, until);
  }
  --flushing;
  return unreported > 0 ? RD_KAFKA_RESP_ERR__TIMED_OUT : RD_KAFKA_RESP_ERR_NO_ERROR;
}

// NOLINTBEGIN: librdkafka's names
extern "C" {

rd_kafka_resp_err_t rd_kafka_last_error() { return last_error; }

int rd_kafka_produce(rd_kafka_topic_t* topic, int32_t partition, int flags, void* value,
                     size_t value_size, const void* key, size_t key_size, void* opaque) {
  Lock lock(TheHub().mutex);
  Outgoing message{.record = {.key = Text(key, key_size), .value = Text(value, value_size)},
                   .partition = partition,
                   .opaque = opaque};
  last_error = topic->client->Enqueue(lock, topic->name, std::move(message),
                                      (flags & RD_KAFKA_MSG_F_BLOCK) != 0);
  return last_error == RD_KAFKA_RESP_ERR_NO_ERROR ? 0 : -1;
}

rd_kafka_resp_err_t rd_kafka_producev(rd_kafka_t* client, ...) {
  Outgoing message;
  std::string topic;
  int flags = 0;
  rd_kafka_headers_t* headers = nullptr;
  va_list list;
  va_start(list, client);
  const auto take_text = [&list] {
    const void* const bytes = va_arg(list, void*);
    return Text(bytes, va_arg(list, size_t));
  };
  for (bool more = true; more;) {
    switch (static_cast<rd_kafka_vtype_t>(va_arg(list, int))) {
      case RD_KAFKA_VTYPE_TOPIC:
        topic = va_arg(list, const char*);
        break;
      case RD_KAFKA_VTYPE_RKT:
        topic = va_arg(list, rd_kafka_topic_t*)->name;
        break;
      case RD_KAFKA_VTYPE_PARTITION:
        message.partition = va_arg(list, int32_t);
        break;
      case RD_KAFKA_VTYPE_VALUE:
        message.record.value = take_text();
        break;
      case RD_KAFKA_VTYPE_KEY:
        message.record.key = take_text();
        break;
      case RD_KAFKA_VTYPE_OPAQUE:
        message.opaque = va_arg(list, void*);
        break;
      case RD_KAFKA_VTYPE_MSGFLAGS:
        flags = va_arg(list, int);
        break;
      case RD_KAFKA_VTYPE_TIMESTAMP:
        message.record.timestamp_ms = va_arg(list, int64_t);
        break;
      case RD_KAFKA_VTYPE_HEADERS:
        headers = va_arg(list, rd_kafka_headers_t*);
        break;
      default:
        more = false;
    }
  }
  va_end(list);
  if (headers != nullptr) message.record.headers = headers->list;
  Lock lock(TheHub().mutex);
  const auto error =
      client->Enqueue(lock, topic, std::move(message), (flags & RD_KAFKA_MSG_F_BLOCK) != 0);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) delete headers;
  return error;
}

rd_kafka_resp_err_t rd_kafka_flush(rd_kafka_t* client, int timeout_ms) {
  Lock lock(TheHub().mutex);
  return client->Flush(lock, tacit::sim::In(timeout_ms));
}

rd_kafka_resp_err_t rd_kafka_fatal_error(rd_kafka_t* client, char* why, size_t size) {
  const Lock lock(TheHub().mutex);
  if (client->fatal != RD_KAFKA_RESP_ERR_NO_ERROR && size > 0)
    snprintf(why, size, "%s", client->fatal_words.c_str());
  return client->fatal;
}

}  // extern "C"
// NOLINTEND
