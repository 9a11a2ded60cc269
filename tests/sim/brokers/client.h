#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sim/brokers/cluster.h"

// A client as librdkafka has one, of simulated brokers. Its parts: conf.cc (settings), values.cc
// (lists, messages, errors), client.cc (threads and queues), questions.cc, consumer.cc, producer.cc
// and transactions.cc.
struct rd_kafka_conf_s {
  std::map<std::string, std::string, std::less<>> given;
  void* opaque = nullptr;
  void (*on_error)(rd_kafka_t*, int, const char*, void*) = nullptr;
  void (*on_delivery)(rd_kafka_t*, const rd_kafka_message_t*, void*) = nullptr;
  void (*on_commit)(rd_kafka_t*, rd_kafka_resp_err_t, rd_kafka_topic_partition_list_t*,
                    void*) = nullptr;

  std::string Get(std::string_view name) const;
  int64_t Number(std::string_view name) const { return std::stoll(Get(name)); }
  bool Flag(std::string_view name) const { return Get(name) == "true"; }
};

struct rd_kafka_error_s {
  rd_kafka_resp_err_t code;
  std::string text;
  bool retriable;
};

struct rd_kafka_headers_s {
  std::vector<std::pair<std::string, std::optional<std::string>>> list;
};

struct rd_kafka_topic_s {
  rd_kafka_t* client;
  std::string name;
};

namespace tacit::sim {

using Moment = std::chrono::steady_clock::time_point;
using Millis = std::chrono::milliseconds;
using Lock = std::unique_lock<std::mutex>;
using Error = rd_kafka_resp_err_t;

// The clusters and clients of this process. One mutex guards all of them.
struct Hub {
  std::mutex mutex;
  std::map<std::string, Cluster*> clusters;  // by address
  std::vector<rd_kafka_t*> clients;

  // Tells the threads of all clients that a cluster has changed.
  void TellAll();
};
Hub& TheHub();
// As librdkafka's timeouts: below 0, as long as it takes.
Moment In(int timeout_ms);

struct OwnMessage : rd_kafka_message_t {
  OwnMessage() : rd_kafka_message_t{} {}
  ClusterRecord record;
  rd_kafka_headers_s headers;
};
rd_kafka_message_t* MakeMessage(int32_t partition, ClusterRecord record);
// A message that tells of an error, with its words.
rd_kafka_message_t* MakeEvent(int32_t partition, int64_t offset, Error error);
rd_kafka_metadata_t* MakeMetadata(const std::string& topic, const Cluster& cluster);
rd_kafka_error_t* MakeError(Error code, std::string text, bool retriable = false);
rd_kafka_topic_partition_list_t* Copy(const rd_kafka_topic_partition_list_t& list);
void SetMetadata(rd_kafka_topic_partition_t* to, std::string_view text);

struct PartitionState;

// An entry of a queue: a message, an event, or a call that is due.
struct Entry {
  rd_kafka_message_t* message = nullptr;
  rd_kafka_event_t* event = nullptr;
  std::function<void()> call = nullptr;
  PartitionState* of = nullptr;  // a fetched message's
};
struct Queue {
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();
  std::deque<Entry> entries;
  Queue* forward = nullptr;  // gets the entries instead
};
inline std::shared_ptr<Queue> Borrow(Queue* queue) { return {std::shared_ptr<void>(), queue}; }

// A partition that a consumer reads, or has a queue of.
struct PartitionState {
  Queue queue;
  bool assigned = false, failed = false;
  bool full = false;        // it has no room for more
  uint64_t assignment = 0;  // messages of earlier ones are dropped
  int64_t next = 0;         // where the next fetch begins
  int64_t told_end = -1;    // the end that was told last
  int64_t low = RD_KAFKA_OFFSET_INVALID, high = RD_KAFKA_OFFSET_INVALID;
  Moment pause_until{};
  size_t queued = 0, queued_bytes = 0;
};

struct Outgoing {
  ClusterRecord record;
  int32_t partition = RD_KAFKA_PARTITION_UA;
  void* opaque = nullptr;
  Moment at{};
};
// A producer's messages for a partition.
struct Lane {
  std::deque<Outgoing> waiting;
  std::vector<Outgoing> batch;  // sent, and not answered yet
  int32_t sequence = 0;         // of the batch
  bool in_transaction = false;  // the coordinator knows
  Moment pause_until{};
};

enum class TransactionState { kNone, kReady, kOpen, kEnding };

}  // namespace tacit::sim

struct rd_kafka_queue_s {
  rd_kafka_t* client;
  std::shared_ptr<tacit::sim::Queue> queue;  // a client's is only borrowed
};

struct rd_kafka_op_s {
  tacit::sim::Error error = RD_KAFKA_RESP_ERR_NO_ERROR;
  rd_kafka_topic_partition_list_t* deleted = nullptr;
  tacit::sim::Error settings_error = RD_KAFKA_RESP_ERR_NO_ERROR;
  tacit::sim::Cluster::Settings settings;
  std::vector<const rd_kafka_ConfigEntry_t*> entries;
  const rd_kafka_ConfigResource_t* resource = nullptr;  // this event itself
};

// One mutex, the hub's, guards all members. Each broker has a thread here, as in librdkafka.
struct rd_kafka_s {
  using Error = tacit::sim::Error;
  using Moment = tacit::sim::Moment;
  using Lock = tacit::sim::Lock;

  rd_kafka_s(rd_kafka_type_t type, std::unique_ptr<rd_kafka_conf_s> settings);
  ~rd_kafka_s();

  // client.cc
  void Run(int32_t broker);
  // Asks a broker; `serve` answers once the request has arrived. RD_KAFKA_RESP_ERR__TRANSPORT:
  // there is no connection. RD_KAFKA_RESP_ERR__TIMED_OUT: no answer has come in time; the request
  // may have been served.
  Error Ask(Lock& lock, tacit::sim::Request request, int32_t broker, Moment until,
            const std::function<Error()>& serve);
  // Asks again until there is an answer or the time is up.
  Error AskUntil(Lock& lock, tacit::sim::Request request, int32_t broker, Moment until,
                 const std::function<Error()>& serve);
  // Waits with the mutex given up, until then or until `done`; ends early with the client.
  void Pause(Lock& lock, Moment until, const std::function<bool()>& done = nullptr);
  void Push(tacit::sim::Queue& queue, tacit::sim::Entry entry);
  // Takes the next entry, waiting for one; nullopt if none has come. `calls_only` leaves others.
  std::optional<tacit::sim::Entry> Pop(Lock& lock, tacit::sim::Queue& queue, Moment until,
                                       bool calls_only);
  // Makes the calls that are due, and returns the first message or event, null if none has come.
  std::optional<tacit::sim::Entry> Take(Lock& lock, tacit::sim::Queue& queue, Moment until);
  int Serve(Lock& lock, tacit::sim::Queue& queue, int timeout_ms);
  void NoteDown(int32_t broker);
  // A broker that answers, as far as is known.
  int32_t AnyBroker() const;
  int32_t LeaderOf(const std::string& topic, int32_t partition) const {
    return cluster == nullptr ? 0 : cluster->Leader(topic, partition);
  }
  int32_t CoordinatorOf(const std::string& name) const {
    return cluster == nullptr ? 0 : cluster->Coordinator(name);
  }

  // consumer.cc
  tacit::sim::PartitionState& PartitionOf(const std::string& topic, int32_t partition);
  void Assign(const std::string& topic, int32_t partition, int64_t offset);
  void Unassign(tacit::sim::PartitionState& partition);
  bool FetchSome(Lock& lock, int32_t broker);
  void Deliver(int32_t number, tacit::sim::PartitionState& partition,
               tacit::sim::Cluster::Fetched fetched);

  // producer.cc
  Error Enqueue(Lock& lock, const std::string& topic, tacit::sim::Outgoing message, bool block);
  bool SendSome(Lock& lock, int32_t broker);
  bool FindPartitions(Lock& lock, int32_t broker);
  bool SendBatch(Lock& lock, const std::string& topic, int32_t partition, tacit::sim::Lane& lane,
                 int32_t broker);
  void Report(tacit::sim::Outgoing message, Error error);
  void DropWaiting(Error error);
  void FailForGood(Error error, std::string why);
  Error Flush(Lock& lock, Moment until);

  const rd_kafka_type_t type;
  const std::unique_ptr<rd_kafka_conf_s> conf;
  tacit::sim::Cluster* cluster = nullptr;  // null if no broker has this address
  std::vector<std::thread> threads;        // by broker
  std::vector<bool> down;                  // by broker
  bool ending = false, told_down = false;
  std::condition_variable work;   // for the threads, and for waits for answers
  std::condition_variable ready;  // entries have come
  tacit::sim::Queue main, consumer;

  std::map<std::pair<std::string, int32_t>, tacit::sim::PartitionState> partitions;
  std::vector<Moment> next_fetch;  // by broker
  struct Task {
    int32_t broker;
    std::function<void(Lock&)> run;
  };
  std::deque<Task> tasks;

  std::map<std::pair<std::string, int32_t>, tacit::sim::Lane> lanes;
  std::map<std::string, std::deque<tacit::sim::Outgoing>> without_partition;  // by topic
  std::map<std::string, int32_t> partition_counts;                            // as far as known
  size_t unreported = 0, unreported_bytes = 0;
  int flushing = 0;
  uint64_t keyless = 0;
  tacit::sim::ProducerId producer;
  bool asks_producer = false;  // a thread does
  Error fatal = RD_KAFKA_RESP_ERR_NO_ERROR;
  std::string fatal_words;
  tacit::sim::TransactionState transaction = tacit::sim::TransactionState::kNone;
  Error transaction_error = RD_KAFKA_RESP_ERR_NO_ERROR;  // it can only be aborted
};
