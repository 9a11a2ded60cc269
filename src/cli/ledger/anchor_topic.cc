#include "cli/ledger/anchor_topic.h"

#include <fmt/format.h>

#include <string_view>
#include <thread>

#include "stream/kafka/producer.h"
#include "stream/kafka/topic_reader.h"

namespace tacit::cli {
namespace {

using AnchorClock = std::chrono::steady_clock;

// The name that a signer takes over from those who signed into the topic before.
std::string TransactionsOfAnchors(const std::string& topic) { return "tacit-anchors-" + topic; }

struct AnchorRecords {
  std::vector<std::string> lines, places;
};

Result<AnchorRecords> ReadAnchorRecords(const AnchorTopic& topic) {
  AnchorRecords records;
  const Status read = stream::ReadKafkaTail(
      topic.properties, topic.topic, ~uint64_t{0}, topic.timeout,
      [&](const stream::KafkaTopicRecord& record) -> Status {
        if (record.partition != 0)
          return Fail(ErrorCode::kRefused,
                      fmt::format("topic '{}' has several partitions; anchors are in one, for "
                                  "their order counts",
                                  topic.topic));
        records.lines.emplace_back(record.value.value_or(""));
        records.places.push_back(fmt::format("offset {}", record.offset));
        return {};
      });
  if (!read) return Fail(read.error());
  return records;
}

struct AnchorsThere {
  std::vector<privacy::Anchor> anchors;
  Digest last_line{};  // all zero where there is none
};

Result<AnchorsThere> DecodeAnchorRecords(const AnchorTopic& topic) {
  TACIT_ASSIGN(const AnchorRecords records, ReadAnchorRecords(topic));
  const std::vector<std::string_view> lines(records.lines.begin(), records.lines.end());
  auto anchors = privacy::DecodeAnchors(lines, records.places);
  if (!anchors)
    return Fail(std::move(anchors.error()).Context(fmt::format("anchors topic:{}", topic.topic)));
  AnchorsThere there{.anchors = *std::move(anchors)};
  if (!lines.empty()) there.last_line = Sha256().Update(lines.back()).Finish();
  return there;
}

// Calls an operation of a transaction again until the brokers have answered.
template <class Operation>
Status Insist(AnchorClock::time_point deadline, const Operation& operation) {
  for (;;) {
    Status done = operation();
    if (done || done.error().code != ErrorCode::kUnavailable || AnchorClock::now() >= deadline)
      return done;
  }
}

Status SendLine(stream::KafkaProducer& producer, const std::string& line,
                const AnchorTopic& topic) {
  const auto deadline = AnchorClock::now() + topic.timeout;
  TACIT_RETURN_IF_ERROR(producer.BeginTransaction());
  TACIT_RETURN_IF_ERROR(producer.Send({.partition = 0, .value = line}, topic.timeout));
  return Insist(deadline, [&] { return producer.CommitTransaction(topic.timeout); });
}

// Waits until a reader of committed records sees this anchor, and says where it lies.
Result<privacy::Anchor> SeeAnchor(const AnchorTopic& topic, const privacy::Anchor& anchor) {
  const auto deadline = AnchorClock::now() + topic.timeout;
  for (;;) {
    TACIT_ASSIGN(AnchorsThere there, DecodeAnchorRecords(topic));
    if (there.anchors.size() > anchor.number &&
        there.anchors[anchor.number].Line() == anchor.Line())
      return std::move(there.anchors[anchor.number]);
    if (AnchorClock::now() >= deadline)
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("topic '{}': anchor {} was written, and is not seen yet", topic.topic,
                              anchor.number));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

Result<std::vector<privacy::Anchor>> ReadAnchorTopic(const AnchorTopic& topic) {
  TACIT_ASSIGN(AnchorsThere there, DecodeAnchorRecords(topic));
  return std::move(there.anchors);
}

Result<privacy::Anchor> AppendAnchorToTopic(
    const AnchorTopic& topic, privacy::Anchor anchor, const privacy::AnchorSigner& signer,
    const std::function<Status(std::span<const privacy::Anchor>)>& check) {
  const auto deadline = AnchorClock::now() + topic.timeout;
  TACIT_ASSIGN(const auto producer, stream::KafkaProducer::Open(
                                        {.properties = topic.properties,
                                         .topic = topic.topic,
                                         .transactional_id = TransactionsOfAnchors(topic.topic)}));
  TACIT_ASSIGN(const int32_t partitions, producer->CountPartitions(topic.timeout));
  if (partitions != 1)
    return Fail(ErrorCode::kRefused,
                fmt::format("topic '{}' has {} partitions; anchors are in one, for their order "
                            "counts",
                            topic.topic, partitions));
  TACIT_RETURN_IF_ERROR(Insist(
      deadline, [&] { return producer->InitTransactions(std::chrono::milliseconds(1000)); }));
  // From now on nobody who began before us can add one, so that what is there stays the last.
  TACIT_ASSIGN(const AnchorsThere there, DecodeAnchorRecords(topic));
  TACIT_RETURN_IF_ERROR(check(there.anchors));
  anchor.number = there.anchors.size();
  anchor.previous = there.last_line;
  signer.Sign(&anchor);
  TACIT_RETURN_IF_ERROR(SendLine(*producer, anchor.Line(), topic));
  return SeeAnchor(topic, anchor);
}

}  // namespace tacit::cli
