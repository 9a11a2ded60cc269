#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "stream/kafka/properties.h"

namespace tacit::stream {

// The way in which a loop around librdkafka takes its messages.
enum class BareLoop {
  kOneByOne,  // rd_kafka_consumer_poll, as most programs have it
  kBatches,   // rd_kafka_consume_batch_queue
};

struct BareReading {
  uint64_t records = 0, bytes = 0;
  double seconds = 0;  // since the partitions were assigned
};

// Reads all records that are in a topic now and looks only at their lengths. This measures what
// librdkafka can deliver under a source's settings (CRCs checked), as the limit to compare a source
// with; nothing in the product uses it.
Result<BareReading> ReadBare(const KafkaProperties& properties, const std::string& topic,
                             BareLoop loop);

}  // namespace tacit::stream
