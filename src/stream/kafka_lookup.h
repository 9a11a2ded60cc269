#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "stream/kafka_client.h"

namespace tacit::stream {

// Fetches single records of a topic by their offsets, through a client of its own. Ascending
// offsets of a partition are read in one go. Private to the room, not thread-safe.
class KafkaLookup {
 public:
  // kInvalidArgument for a setting that is wrong; no broker is asked for anything yet.
  Status Open(KafkaProperties properties, std::string topic);

  // The record, with err RD_KAFKA_RESP_ERR__NO_ERROR; or one with another err where it is gone:
  // retention or compaction took it, or the partition ends before it. Null: not within the time,
  // ask again.
  KafkaMessage Find(int32_t partition, uint64_t offset, std::chrono::milliseconds timeout);
  // Fetches nothing ahead until it is asked again.
  void Rest();

 private:
  bool Seek(int32_t partition, uint64_t offset);

  std::string topic_;
  KafkaContext context_;
  KafkaClient client_;
  int32_t partition_ = -1;  // assigned; -1: none
  uint64_t next_ = 0;       // the offset that comes next, at the least
};

}  // namespace tacit::stream
