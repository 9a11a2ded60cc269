#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "stream/kafka_producer.h"
#include "stream/kafka_properties.h"

namespace tacit::stream {

// Shows the last `records_max` records of each partition of a topic, in the order of their offsets,
// with their headers: what somebody who begins again has written before. Views end with the call.
// kUnavailable: not to the end within the time. kNotFound: there is no such topic.
using ShowTail = std::function<void(int32_t partition, uint64_t offset,
                                    std::span<const event::MessageHeader> headers)>;
Status ReadKafkaTail(const KafkaProperties& properties, const std::string& topic,
                     uint64_t records_max, std::chrono::milliseconds timeout, const ShowTail& show);

}  // namespace tacit::stream
