#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/message.h"
#include "stream/kafka/properties.h"

namespace tacit::stream {

struct KafkaProducerOptions {
  KafkaProperties properties = {};
  std::string topic = {};
  uint32_t queued_bytes_max = 32 << 20;  // waiting for acknowledgement
  uint32_t record_bytes_max = 1 << 20;   // key, value and headers
  // With a name, records are sent in transactions alone. A producer that begins under a name
  // ends the one that wrote under it before.
  std::string transactional_id = {};
};

// A record to send. Send copies everything.
struct KafkaRecord {
  static constexpr int32_t kByKey = -1;

  int32_t partition = kByKey;  // as PartitionOfKey; any partition for a record without a key
  std::optional<std::string_view> key = {}, value = {};  // none: null
  std::span<const event::MessageHeader> headers = {};
  int64_t timestamp_ms = 0;  // 0: the time of sending
  uint64_t tag = 0;          // the caller's own, to recognise a failed record
};

// A record that did not get into the topic.
struct FailedDelivery {
  uint64_t tag = 0;
  bool too_large = false;  // for the broker: it never will be accepted
  std::string reason;      // names topic and partition
};

// Writes to one topic: each record once and, within a partition, in the order of sending,
// through any failure of connections and brokers (enable.idempotence, acks=all; a record waits for
// as long as it takes). Not thread-safe. Records that are unacknowledged at destruction may be in
// the topic, or not.
class KafkaProducer {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // kInvalidArgument: a setting is wrong, or would break the above. Asks no broker for anything
  // yet.
  static Result<std::unique_ptr<KafkaProducer>> Open(KafkaProducerOptions options);
  virtual ~KafkaProducer() = default;

  // Returns the topic's number of partitions. kUnavailable: no broker has answered in time.
  // kNotFound: there is no such topic. kIo: the brokers refuse us.
  virtual Result<int32_t> CountPartitions(Milliseconds timeout) = 0;
  // Returns the partition that Java's clients choose for this key. REQUIRES partitions > 0.
  static int32_t PartitionOfKey(std::string_view key, int32_t partitions);

  // Queues the record. kUnavailable: the queue stayed full for `timeout`. kIo: this producer has
  // failed, and a new one is needed. A record too large to be sent is a failed delivery.
  virtual Status Send(const KafkaRecord& record, Milliseconds timeout) = 0;
  // Waits until every record sent is in the topic or has failed. kUnavailable: some still wait.
  virtual Status Flush(Milliseconds timeout) = 0;
  // Handles brokers' answers for `timeout`.
  virtual void Wait(Milliseconds timeout) = 0;

  // The rest is for producers with a transactional_id. After any failure but kUnavailable the
  // producer is of no more use: destroy it, and its open transaction is aborted by the next one's
  // Begin. kRefused: another producer has begun under this name, and this one may write no more.
  //
  // Takes the name over: earlier producers under it can write no more, and what they left open is
  // decided when it returns. kUnavailable: not done yet, call it again.
  virtual Status InitTransactions(Milliseconds timeout) = 0;
  virtual Status BeginTransaction() = 0;
  // Waits for all records sent, and then makes them visible together. kUnavailable: not known yet,
  // call it again. A failed record fails it.
  virtual Status CommitTransaction(Milliseconds timeout) = 0;

  virtual uint64_t records_acked() const = 0;
  virtual uint64_t records_waiting() const = 0;
  // Returns the failures since the last call.
  virtual std::vector<FailedDelivery> TakeFailures() = 0;
  // Returns why no record gets through at present (no broker, no authentication), or "".
  virtual std::string trouble() const = 0;
};

}  // namespace tacit::stream
