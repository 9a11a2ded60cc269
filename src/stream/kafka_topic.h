#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "stream/kafka_client.h"
#include "stream/kafka_plan.h"

// Questions to the brokers about one topic; each waits for its answer. kUnavailable: none came
// within the time, ask again later. kNotFound: there is no such topic. Private to the room.
namespace tacit::stream {

using Milliseconds = std::chrono::milliseconds;

// Ascending.
Result<std::vector<int32_t>> ReadPartitions(rd_kafka_t* client, const std::string& topic,
                                            Milliseconds timeout);
Result<std::vector<PartitionSpan>> ReadSpans(rd_kafka_t* client, const std::string& topic,
                                             std::span<const int32_t> partitions,
                                             Milliseconds timeout);
// What the client's group has committed; partitions without a commit are left out.
Result<std::vector<GroupOffset>> ReadGroup(rd_kafka_t* client, const std::string& topic,
                                           std::span<const int32_t> partitions,
                                           Milliseconds timeout);
// The first record at or behind each of these offsets, through a client of its own that reads
// nothing else.
Result<std::map<int32_t, RecordMark>> ReadMarks(const KafkaProperties& properties,
                                                const std::string& topic,
                                                std::span<const PartitionOffset> offsets,
                                                Milliseconds timeout);

RecordMark MarkOf(const rd_kafka_message_t& message);

KafkaPartitions MakePartitions(const std::string& topic, std::span<const PartitionOffset> offsets);

// What went wrong with a question, as an Error of ours.
tl::unexpected<Error> Unanswered(const std::string& question, rd_kafka_resp_err_t error);

}  // namespace tacit::stream
