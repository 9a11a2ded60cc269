#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/message.h"
#include "stream/kafka/plan.h"
#include "stream/kafka/properties.h"
#include "stream/source.h"

namespace tacit::stream {

// A record as it lies in a topic. The call that hands it over says how long views are valid.
struct KafkaTopicRecord {
  int32_t partition = 0;
  uint64_t offset = 0;
  int64_t timestamp_ms = 0;
  bool appended = false;  // the time is the broker's (LogAppendTime), and not the producer's
  std::optional<std::string_view> key = {}, value = {};  // none: null
  std::span<const event::MessageHeader> headers = {};
};

// Reads a topic that no group reads, from positions that the caller has, of transactions what was
// committed. For topics that hold a state, not interactions. One thread at a time.
class KafkaTopicReader {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using Show = std::function<Status(const KafkaTopicRecord&)>;

  // kInvalidArgument: a setting is wrong. Asks no broker for anything yet.
  static Result<std::unique_ptr<KafkaTopicReader>> Open(KafkaProperties properties,
                                                        std::string topic);
  virtual ~KafkaTopicReader() = default;

  // Asks for all partitions, ascending. kUnavailable: no answer in time. kNotFound: there is no
  // such topic. kIo: the brokers refuse us.
  virtual Result<std::vector<PartitionSpan>> Spans(Milliseconds timeout) = 0;
  // Begins to read there. Partitions that are not among these are not read.
  virtual Status Seek(std::span<const PartitionOffset> from) = 0;
  // Shows records, each partition's in the order of offsets, until `timeout` has passed or, after
  // something has come, all partitions that are read have reached their ends. Views are valid
  // during the call of `show`, whose failure ends Read. kNotFound: the position of a partition is
  // not there any more (or not yet). kIo: the brokers refuse us. Brokers that are away are waited
  // for.
  virtual Status Read(Milliseconds timeout, const Show& show) = 0;
  // Deletes all records below these offsets, for everybody. kUnavailable: no answer in time.
  // kRefused: this client may not.
  virtual Status DeleteBefore(std::span<const PartitionOffset> until, Milliseconds timeout) = 0;
  // The offset up to which a partition was read, markers of transactions included.
  virtual uint64_t Position(int32_t partition) const = 0;
  // True if all partitions that are read were read to the ends that they had when last asked.
  virtual bool at_end() const = 0;
  // Says why nothing comes at present; empty if no trouble.
  virtual std::string trouble() const = 0;
};

// Shows the last `records_max` records of each partition, up to the ends that it has now.
// kUnavailable: they were not reached in time. kNotFound: there is no such topic.
Status ReadKafkaTail(const KafkaProperties& properties, const std::string& topic,
                     uint64_t records_max, std::chrono::milliseconds timeout,
                     const KafkaTopicReader::Show& show);

// A topic's settings under these names, as the brokers have them. kUnavailable: no answer in time.
// kNotFound: there is no such topic. kRefused: this client may not ask, or the broker cannot be
// asked.
Result<std::map<std::string, std::string>> ReadTopicSettings(const KafkaProperties& properties,
                                                             const std::string& topic,
                                                             std::span<const std::string> names,
                                                             std::chrono::milliseconds timeout);

}  // namespace tacit::stream
