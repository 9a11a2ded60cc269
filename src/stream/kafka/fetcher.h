#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "stream/kafka/client.h"
#include "stream/kafka/identity.h"

namespace tacit::stream {

// A fetched message, or the fact that there is none before `offset`. The views are valid as long as
// it lives.
struct FetchedMessage {
  uint64_t offset = 0;
  int64_t timestamp_ms = 0;  // the record's, kept by its topic: public, with any content
  std::string_view value = {};
  bool null = false;    // a tombstone
  bool at_end = false;  // no message: the partition ended here when it was last asked
  // The message that owns value and headers; null if it never came from a broker.
  KafkaMessage message = nullptr;
};

LastRecord LastRecordOf(const FetchedMessage& message);

// A source of messages by partition: librdkafka, or a script in a test. One thread at a time.
// Private to the room.
class MessageFetcher {
 public:
  virtual ~MessageFetcher() = default;
  // Appends at most `max` messages of one partition, in the order of their offsets. Waits for the
  // first of them; appends nothing if none comes in time. Fails if the client has to be opened
  // anew.
  virtual Status Fetch(int32_t partition, size_t max, std::chrono::milliseconds timeout,
                       std::vector<FetchedMessage>* messages) = 0;
  // Begins to read a new partition at its first offset, and returns that offset.
  virtual Result<uint64_t> Add(int32_t partition) = 0;
  // Continues a partition at another offset: no message from before comes after that.
  virtual Status Seek(int32_t partition, uint64_t offset) = 0;
};

}  // namespace tacit::stream
