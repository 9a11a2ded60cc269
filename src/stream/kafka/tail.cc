#include "stream/kafka/tail.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "stream/kafka/client.h"
#include "stream/kafka/topic.h"

namespace tacit::stream {
namespace {

using Steady = std::chrono::steady_clock;
constexpr Milliseconds kAnswer(1000);

class Tail {
 public:
  Tail(const std::string& topic, Milliseconds timeout)
      : topic_(topic), deadline_(Steady::now() + timeout) {}

  Status Open(KafkaProperties properties) {
    // The client gets its positions from us and joins no group; librdkafka merely requires a name.
    if (properties.Find("group.id") == nullptr) properties.values.push_back({"group.id", "tacit"});
    TACIT_ASSIGN(KafkaConf conf, MakeKafkaConf(properties, KafkaRole::kConsumer, &context_));
    TACIT_ASSIGN(client_, MakeKafkaClient(std::move(conf), KafkaRole::kConsumer, context_));
    rd_kafka_poll_set_consumer(client_.get());
    return {};
  }

  // Assigns the partitions that have records, `records_max` before their ends.
  Status Assign(uint64_t records_max) {
    TACIT_ASSIGN(const std::vector<int32_t> partitions,
                 Ask([&] { return ReadPartitions(client_.get(), topic_, kAnswer); }));
    TACIT_ASSIGN(const std::vector<PartitionSpan> spans,
                 Ask([&] { return ReadSpans(client_.get(), topic_, partitions, kAnswer); }));
    std::vector<PartitionOffset> starts;
    for (const PartitionSpan& span : spans) {
      if (span.begin >= span.end) continue;
      const uint64_t wanted = std::min(records_max, span.end - span.begin);
      starts.push_back({.partition = span.partition, .offset = span.end - wanted});
      end_[span.partition] = span.end;
    }
    const auto assigned = rd_kafka_assign(client_.get(), MakePartitions(topic_, starts).get());
    if (assigned == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
    return Fail(ErrorCode::kIo, About(rd_kafka_err2str(assigned)));
  }

  Status Read(const ShowTail& show) {
    while (!end_.empty()) {
      const KafkaMessage message(
          rd_kafka_consumer_poll(client_.get(), static_cast<int>(kAnswer.count())));
      if (message == nullptr) {
        if (Steady::now() >= deadline_)
          return Fail(ErrorCode::kUnavailable, About("its end was not reached in time"));
        continue;
      }
      if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        end_.erase(message->partition);
      } else if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        Show(*message, show);
      } else if (!IsTransient(message->err)) {
        return Fail(ErrorCode::kIo, About(rd_kafka_message_errstr(message.get())));
      }
    }
    return {};
  }

 private:
  // Repeats the question while the answer is kUnavailable.
  template <class Question>
  auto Ask(const Question& question) -> decltype(question()) {
    for (;;) {
      auto answer = question();
      if (answer || answer.error().code != ErrorCode::kUnavailable) return answer;
      const KafkaMessage none(rd_kafka_consumer_poll(client_.get(), 0));  // serves errors
      const KafkaContext::Events events = context_.TakeEvents();
      if (!events.unauthenticated.empty())
        return Fail(events.outdated ? ErrorCode::kUnavailable : ErrorCode::kIo,
                    About(events.unauthenticated));
      if (Steady::now() >= deadline_) return answer;
    }
  }

  void Show(const rd_kafka_message_t& message, const ShowTail& show) {
    const auto end = end_.find(message.partition);
    if (end == end_.end()) return;
    ReadHeaders(message, &headers_);
    show(message.partition, static_cast<uint64_t>(message.offset), headers_);
    if (static_cast<uint64_t>(message.offset) + 1 >= end->second) end_.erase(end);
  }

  std::string About(std::string_view what) const {
    return fmt::format("topic '{}': {}", topic_, what);
  }

  const std::string topic_;
  const Steady::time_point deadline_;
  KafkaContext context_;
  KafkaClient client_;
  std::map<int32_t, uint64_t> end_;  // ends of the partitions not yet read to them
  std::vector<event::MessageHeader> headers_;
};

}  // namespace

Status ReadKafkaTail(const KafkaProperties& properties, const std::string& topic,
                     uint64_t records_max, Milliseconds timeout, const ShowTail& show) {
  Tail tail(topic, timeout);
  TACIT_RETURN_IF_ERROR(tail.Open(properties));
  TACIT_RETURN_IF_ERROR(tail.Assign(records_max));
  return tail.Read(show);
}

}  // namespace tacit::stream
