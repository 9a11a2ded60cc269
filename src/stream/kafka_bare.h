#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "stream/kafka_properties.h"

namespace tacit::stream {

// How a loop around librdkafka takes its messages.
enum class BareLoop {
  kOneByOne,  // rd_kafka_consumer_poll, as most programs have it
  kBatches,   // rd_kafka_consume_batch_queue
};

struct BareReading {
  uint64_t records = 0, bytes = 0;
  double seconds = 0;  // since the partitions were assigned
};

// Reads all that is in a topic now and looks at nothing but lengths: what librdkafka can deliver,
// under the settings that a source has (CRCs checked). The limit beside which a source is measured;
// nothing in the product goes this way.
Result<BareReading> ReadBare(const KafkaProperties& properties, const std::string& topic,
                             BareLoop loop);

}  // namespace tacit::stream
