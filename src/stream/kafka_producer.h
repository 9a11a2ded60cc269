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
#include "stream/kafka_properties.h"

namespace tacit::stream {

struct KafkaProducerOptions {
  KafkaProperties properties = {};
  std::string topic = {};
  uint32_t queued_bytes_max = 32 << 20;  // waiting for the broker's word
  uint32_t record_bytes_max = 1 << 20;   // of key, value and headers
};

// A record on its way out. Everything is copied when it is sent.
struct KafkaRecord {
  static constexpr int32_t kByKey = -1;

  int32_t partition = kByKey;  // as PartitionOfKey says; any one for a record without a key
  std::optional<std::string_view> key = {}, value = {};  // none: null
  std::span<const event::MessageHeader> headers = {};
  int64_t timestamp_ms = 0;  // 0: when it is sent
  uint64_t tag = 0;          // the caller's own, to know a failed one by
};

// A record that is not in the topic.
struct FailedDelivery {
  uint64_t tag = 0;
  bool too_large = false;  // for the broker's liking: it never will be
  std::string reason;      // names topic and partition
};

// Writes to one topic: each record once and, within a partition, in the order they were sent in,
// whatever connections and brokers do in between (enable.idempotence, acks=all; a record waits for
// as long as it takes). Not thread-safe. What is not acknowledged when it goes may or may not be in
// the topic.
class KafkaProducer {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // kInvalidArgument for a setting that is wrong, or would take away what is said above. No broker
  // is asked for anything yet.
  static Result<std::unique_ptr<KafkaProducer>> Open(KafkaProducerOptions options);
  virtual ~KafkaProducer() = default;

  // Partitions of the topic. kUnavailable: no broker has answered in time. kNotFound: there is no
  // such topic. kIo: the brokers will not have us.
  virtual Result<int32_t> CountPartitions(Milliseconds timeout) = 0;
  // The partition that Java's clients choose for this key. REQUIRES partitions > 0.
  static int32_t PartitionOfKey(std::string_view key, int32_t partitions);

  // Takes the record on. kUnavailable: the queue was full for that long. kIo: the producer cannot
  // go on, and a new one has to begin. A record too large to be sent is a failed delivery.
  virtual Status Send(const KafkaRecord& record, Milliseconds timeout) = 0;
  // Waits until every record sent is in the topic or has failed. kUnavailable: some still wait.
  virtual Status Flush(Milliseconds timeout) = 0;
  // Hears what brokers have to say for so long.
  virtual void Wait(Milliseconds timeout) = 0;

  virtual uint64_t records_acked() const = 0;
  virtual uint64_t records_waiting() const = 0;
  // Those that came to light since the last time.
  virtual std::vector<FailedDelivery> TakeFailures() = 0;
  // Why nothing gets through at present: no broker, no authentication. Empty: nothing is wrong.
  virtual std::string trouble() const = 0;
};

}  // namespace tacit::stream
