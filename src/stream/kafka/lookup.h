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
  // kInvalidArgument: a setting is wrong. Asks no broker for anything yet.
  Status Open(KafkaProperties properties, std::string topic);

  // Returns the record with err RD_KAFKA_RESP_ERR_NO_ERROR, or a message with another err if it is
  // gone: retention or compaction took it, or the partition ends before it. Null: not found in
  // time, ask again.
  KafkaMessage Find(int32_t partition, uint64_t offset, std::chrono::milliseconds timeout);
  // Stops fetching ahead until the next Find.
  void Rest();

 private:
  bool Seek(int32_t partition, uint64_t offset);

  std::string topic_;
  KafkaContext context_;
  KafkaClient client_;
  int32_t partition_ = -1;  // assigned; -1: none
  uint64_t next_ = 0;       // the lowest offset that can come next
};

}  // namespace tacit::stream
