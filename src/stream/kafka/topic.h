#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "stream/kafka/client.h"
#include "stream/kafka/fetcher.h"
#include "stream/kafka/plan.h"
#include "stream/kafka/rounds.h"

// Requests to the brokers about one topic; each waits for its answer. kUnavailable: none came in
// time, ask again later. kNotFound: there is no such topic. Private to the room.
namespace tacit::stream {

using Milliseconds = std::chrono::milliseconds;

// Makes a silent client for such requests, which reads and commits nothing. On a client that reads,
// a leader answers them once the fetch before them is over.
Result<KafkaClient> MakeAsker(KafkaProperties properties, KafkaContext* context);

// Returns the partitions, ascending.
Result<std::vector<int32_t>> ReadPartitions(rd_kafka_t* client, const std::string& topic,
                                            Milliseconds timeout);
Result<std::vector<PartitionSpan>> ReadSpans(rd_kafka_t* client, const std::string& topic,
                                             std::span<const int32_t> partitions,
                                             Milliseconds timeout);
// Returns the ends of these partitions, with one request to each broker. Partitions whose leader
// does not answer are left out.
Result<std::vector<PartitionEnd>> ReadEnds(rd_kafka_t* client, const std::string& topic,
                                           std::span<const int32_t> partitions,
                                           Milliseconds timeout);
// Returns, for each of these partitions, the first offset whose record has a timestamp of at least
// `time_ms`; nullopt if no record has one. Partitions whose leader does not answer are left out.
Result<std::map<int32_t, std::optional<uint64_t>>> ReadOffsetsAt(
    rd_kafka_t* client, const std::string& topic, std::span<const int32_t> partitions,
    int64_t time_ms, Milliseconds timeout);
// Returns the group's committed offsets; partitions without a commit are left out.
Result<std::vector<GroupOffset>> ReadGroup(rd_kafka_t* client, const std::string& topic,
                                           std::span<const int32_t> partitions,
                                           Milliseconds timeout);
// Reads the first record at or after each of these offsets, through a client of its own that reads
// nothing else. Leaves out partitions that end behind the offset without one; an end before it is
// not believed.
Result<std::map<int32_t, LastRecord>> ReadRecordsAt(const KafkaProperties& properties,
                                                    const std::string& topic,
                                                    std::span<const PartitionOffset> offsets,
                                                    Milliseconds timeout);

// Asks the brokers for a topic's settings under these names, as ReadTopicSettings does.
Result<std::map<std::string, std::string>> AskSettings(rd_kafka_t* client, const std::string& topic,
                                                       std::span<const std::string> names,
                                                       Milliseconds timeout);

// Takes over a message, or the event of a partition's end.
FetchedMessage TakeOver(rd_kafka_message_t* message);

KafkaPartitions MakePartitions(const std::string& topic, std::span<const PartitionOffset> offsets);

// Converts librdkafka's error for a request into an Error.
tl::unexpected<Error> Unanswered(const std::string& question, rd_kafka_resp_err_t error);

}  // namespace tacit::stream
