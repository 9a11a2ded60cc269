#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "stream/kafka/client.h"

namespace tacit::stream {

// Fetches single records of a topic by their offsets, through a client of its own. Reads ascending
// offsets of a partition in one go. Private to the room, not thread-safe.
class KafkaLookup {
 public:
  // `end_patience`: how long a partition must have ended before a record that is asked for. A new
  // leader tells an end of before at first, until its replicas have told it how far they are.
  explicit KafkaLookup(std::chrono::milliseconds end_patience = std::chrono::seconds(10))
      : end_patience_(end_patience) {}
  // kInvalidArgument: a setting is wrong. Asks no broker for anything yet.
  Status Open(KafkaProperties properties, std::string topic);

  // Returns the record with err RD_KAFKA_RESP_ERR_NO_ERROR, or a message with another err if it is
  // gone: retention or compaction took it, or the partition keeps ending before it. Null if
  // it was not found in time: ask again.
  KafkaMessage Find(int32_t partition, uint64_t offset, std::chrono::milliseconds timeout);
  // Stops fetching ahead until the next Find.
  void Rest();

 private:
  bool Seek(int32_t partition, uint64_t offset);

  const std::chrono::milliseconds end_patience_;
  std::string topic_;
  KafkaContext context_;
  KafkaClient client_;
  int32_t partition_ = -1;  // assigned; -1: none
  uint64_t next_ = 0;       // the lowest offset that can come next
  KafkaMessage end_;        // the partition's end, told at ended_at_, if that is before the record
  std::chrono::steady_clock::time_point ended_at_;
};

}  // namespace tacit::stream
