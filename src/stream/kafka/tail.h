#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "stream/kafka/producer.h"
#include "stream/kafka/properties.h"

namespace tacit::stream {

// Shows the last `records_max` records of each partition of a topic, in the order of their offsets,
// with their headers. A writer that restarts sees what it wrote before. Views are valid during the
// call. kUnavailable: the end was not reached in time. kNotFound: there is no such topic.
using ShowTail = std::function<void(int32_t partition, uint64_t offset,
                                    std::span<const event::MessageHeader> headers)>;
Status ReadKafkaTail(const KafkaProperties& properties, const std::string& topic,
                     uint64_t records_max, std::chrono::milliseconds timeout, const ShowTail& show);

}  // namespace tacit::stream
