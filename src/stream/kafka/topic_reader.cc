#include "stream/kafka/topic_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "stream/kafka/client.h"
#include "stream/kafka/topic.h"
#include "stream/kafka/waker.h"

namespace tacit::stream {
namespace {

using Steady = std::chrono::steady_clock;
constexpr Milliseconds kPollSlice(100);
constexpr size_t kBetweenWakes = 1024;  // messages, between two looks at what is left in the queue

using AdminOptions =
    std::unique_ptr<rd_kafka_AdminOptions_t, KafkaDeleter<rd_kafka_AdminOptions_destroy>>;
using AdminResource =
    std::unique_ptr<rd_kafka_ConfigResource_t, KafkaDeleter<rd_kafka_ConfigResource_destroy>>;
using DeletedRecords =
    std::unique_ptr<rd_kafka_DeleteRecords_t, KafkaDeleter<rd_kafka_DeleteRecords_destroy>>;
using AdminAnswer = std::unique_ptr<rd_kafka_event_t, KafkaDeleter<rd_kafka_event_destroy>>;

class TopicReader final : public KafkaTopicReader {
 public:
  explicit TopicReader(std::string topic)
      : topic_(std::move(topic)), context_(std::make_shared<KafkaContext>()) {}
  ~TopicReader() override {
    queue_.reset();
    EndKafkaClient(std::move(client_), context_);
  }

  Status Start(KafkaProperties properties) {
    // The client gets its positions from us and joins no group; librdkafka merely requires a name.
    if (properties.Find("group.id") == nullptr) properties.values.push_back({"group.id", "tacit"});
    TACIT_ASSIGN(KafkaConf conf, MakeKafkaConf(properties, KafkaRole::kConsumer, context_.get()));
    TACIT_ASSIGN(client_, MakeKafkaClient(std::move(conf), KafkaRole::kConsumer, *context_));
    rd_kafka_poll_set_consumer(client_.get());
    queue_.reset(rd_kafka_queue_get_consumer(client_.get()));
    waker_.emplace(client_.get());
    return {};
  }

  Result<std::vector<PartitionSpan>> Spans(Milliseconds timeout) override {
    const auto deadline = Steady::now() + timeout;
    const auto left = [&] {
      return std::max(kPollSlice,
                      std::chrono::duration_cast<Milliseconds>(deadline - Steady::now()));
    };
    for (;;) {
      auto spans = AskSpans(std::min(left(), Milliseconds(1000)));
      if (spans || spans.error().code != ErrorCode::kUnavailable) return spans;
      if (assigned_.empty()) {
        const KafkaMessage none(rd_kafka_consumer_poll(client_.get(), 0));  // serves errors
      }
      TACIT_RETURN_IF_ERROR(NoteEvents());
      if (Steady::now() >= deadline) return spans;
    }
  }

  Status Seek(std::span<const PartitionOffset> from) override {
    assigned_.clear();
    for (const PartitionOffset& one : from) assigned_[one.partition] = {one.offset, false};
    const auto assigned = rd_kafka_assign(client_.get(), MakePartitions(topic_, from).get());
    if (assigned == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
    return Fail(ErrorCode::kIo, About(rd_kafka_err2str(assigned)));
  }

  Status Read(Milliseconds timeout, const Show& show) override {
    const auto deadline = Steady::now() + timeout;
    bool moved = false;  // an end that was known before may not be the end any more
    while (!assigned_.empty() && !(moved && at_end())) {
      const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Steady::now());
      const Milliseconds slice =
          waker_->asleep() ? std::chrono::ceil<Milliseconds>(FetchWaker::kPause) : kPollSlice;
      const KafkaMessage message(rd_kafka_consumer_poll(
          client_.get(), static_cast<int>(std::clamp(left, Milliseconds(0), slice).count())));
      TACIT_RETURN_IF_ERROR(NoteEvents());
      KeepAwake(message.get());
      if (message != nullptr) TACIT_RETURN_IF_ERROR(Take(*message, show));
      moved = moved || message != nullptr;
      if (Steady::now() >= deadline) return {};
    }
    return {};
  }

  Status DeleteBefore(std::span<const PartitionOffset> until, Milliseconds timeout) override {
    const DeletedRecords request(rd_kafka_DeleteRecords_new(MakePartitions(topic_, until).get()));
    const AdminOptions options(
        rd_kafka_AdminOptions_new(client_.get(), RD_KAFKA_ADMIN_OP_DELETERECORDS));
    rd_kafka_AdminOptions_set_request_timeout(options.get(), static_cast<int>(timeout.count()),
                                              nullptr, 0);
    const KafkaQueue queue(rd_kafka_queue_new(client_.get()));
    rd_kafka_DeleteRecords_t* asked = request.get();
    rd_kafka_DeleteRecords(client_.get(), &asked, 1, options.get(), queue.get());
    const AdminAnswer answer(
        rd_kafka_queue_poll(queue.get(), static_cast<int>((timeout + kPollSlice).count())));
    const std::string question = About("deleting records");
    if (answer == nullptr) return Unanswered(question, RD_KAFKA_RESP_ERR__TIMED_OUT);
    auto error = rd_kafka_event_error(answer.get());
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
      const rd_kafka_topic_partition_list_t* done =
          rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(answer.get()));
      for (int i = 0; i < done->cnt && error == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
        error = done->elems[i].err;
    }
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
    if (error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
        error == RD_KAFKA_RESP_ERR_POLICY_VIOLATION)
      return Fail(ErrorCode::kRefused, fmt::format("{}: {}", question, rd_kafka_err2str(error)));
    return Unanswered(question, error);
  }

  uint64_t Position(int32_t partition) const override {
    const auto found = assigned_.find(partition);
    return found == assigned_.end() ? 0 : found->second.next;
  }
  bool at_end() const override {
    return std::ranges::all_of(assigned_, [](const auto& one) { return one.second.at_end; });
  }
  std::string trouble() const override { return trouble_; }

 private:
  struct Place {
    uint64_t next = 0;
    bool at_end = false;
  };

  // Has the fetcher go on once half of what it has fetched is used up. All partitions have one
  // queue here.
  void KeepAwake(const rd_kafka_message_t* message) {
    if (message != nullptr) {
      taken_ += 1;
      taken_bytes_ += message->len;
      if (taken_ < kBetweenWakes) return;
    }
    const bool due = waker_->IsDue(std::exchange(taken_, 0), std::exchange(taken_bytes_, 0),
                                   rd_kafka_queue_length(queue_.get()), Steady::now());
    if (!due) return;
    std::vector<int32_t> partitions;
    for (const auto& [partition, place] : assigned_) partitions.push_back(partition);
    FetchWaker::Wake(client_.get(), topic_, partitions);
  }

  Result<std::vector<PartitionSpan>> AskSpans(Milliseconds timeout) {
    TACIT_ASSIGN(const std::vector<int32_t> partitions,
                 ReadPartitions(client_.get(), topic_, timeout));
    return ReadSpans(client_.get(), topic_, partitions, timeout);
  }

  Status Take(const rd_kafka_message_t& message, const Show& show) {
    const auto found = assigned_.find(message.partition);
    if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR ||
        message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      trouble_.clear();
      if (found == assigned_.end()) return {};
      found->second.at_end = message.err != RD_KAFKA_RESP_ERR_NO_ERROR;
      if (!found->second.at_end) TACIT_RETURN_IF_ERROR(ShowMessage(message, show));
      found->second.next = static_cast<uint64_t>(message.offset) + (found->second.at_end ? 0 : 1);
      return {};
    }
    if (IsTransientFetch(message.err)) {
      trouble_ = rd_kafka_err2str(message.err);
      return {};
    }
    const bool gone = message.err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
                      message.err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
    if (gone)
      return Fail(ErrorCode::kNotFound,
                  About(fmt::format("partition {}: offset {} is not there any more, or not yet",
                                    message.partition, Position(message.partition))));
    return Unanswered(About(fmt::format("partition {}", message.partition)), message.err);
  }

  Status ShowMessage(const rd_kafka_message_t& message, const Show& show) {
    const auto text = [](const void* bytes, size_t size) {
      return bytes == nullptr
                 ? std::optional<std::string_view>()
                 : std::optional(std::string_view(static_cast<const char*>(bytes), size));
    };
    rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    ReadHeaders(message, &headers_);
    const int64_t timestamp_ms = rd_kafka_message_timestamp(&message, &type);
    return show({.partition = message.partition,
                 .offset = static_cast<uint64_t>(message.offset),
                 .timestamp_ms = timestamp_ms,
                 .appended = type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME,
                 .key = text(message.key, message.key_len),
                 .value = text(message.payload, message.len),
                 .headers = headers_});
  }

  Status NoteEvents() {
    const KafkaContext::Events events = context_->TakeEvents();
    if (events.all_brokers_down) trouble_ = "no broker answers";
    if (events.unauthenticated.empty()) return {};
    trouble_ = events.unauthenticated;
    if (events.outdated) return {};
    return Fail(ErrorCode::kIo, About(events.unauthenticated));
  }

  std::string About(std::string_view what) const {
    return fmt::format("topic '{}': {}", topic_, what);
  }

  const std::string topic_;
  const std::shared_ptr<KafkaContext> context_;
  KafkaClient client_;
  KafkaQueue queue_;  // of what was fetched; it goes before the client does
  std::optional<FetchWaker> waker_;
  size_t taken_ = 0, taken_bytes_ = 0;  // since the queue was last looked at
  std::map<int32_t, Place> assigned_;
  std::vector<event::MessageHeader> headers_;
  std::string trouble_;
};

// The settings in librdkafka's answer.
std::map<std::string, std::string> SettingsOf(const rd_kafka_ConfigResource_t& resource,
                                              std::span<const std::string> names) {
  std::map<std::string, std::string> settings;
  size_t count = 0;
  const rd_kafka_ConfigEntry_t** entries = rd_kafka_ConfigResource_configs(&resource, &count);
  for (size_t i = 0; i < count; ++i) {
    const char* value = rd_kafka_ConfigEntry_value(entries[i]);
    const std::string name = rd_kafka_ConfigEntry_name(entries[i]);
    if (std::ranges::find(names, name) != names.end()) settings[name] = value ? value : "";
  }
  return settings;
}

}  // namespace

Result<std::unique_ptr<KafkaTopicReader>> KafkaTopicReader::Open(KafkaProperties properties,
                                                                 std::string topic) {
  auto reader = std::make_unique<TopicReader>(std::move(topic));
  TACIT_RETURN_IF_ERROR(reader->Start(std::move(properties)));
  return reader;
}

Status ReadKafkaTail(const KafkaProperties& properties, const std::string& topic,
                     uint64_t records_max, Milliseconds timeout,
                     const KafkaTopicReader::Show& show) {
  const auto deadline = Steady::now() + timeout;
  TACIT_ASSIGN(const auto reader, KafkaTopicReader::Open(properties, topic));
  TACIT_ASSIGN(const std::vector<PartitionSpan> spans, reader->Spans(timeout));
  std::vector<PartitionOffset> starts;
  std::map<int32_t, uint64_t> ends;
  for (const PartitionSpan& span : spans) {
    if (span.begin >= span.end) continue;
    const uint64_t wanted = std::min(records_max, span.end - span.begin);
    starts.push_back({.partition = span.partition, .offset = span.end - wanted});
    ends[span.partition] = span.end;
  }
  TACIT_RETURN_IF_ERROR(reader->Seek(starts));
  const auto reached = [&] {
    return reader->at_end() || std::ranges::all_of(ends, [&](const auto& end) {
             return reader->Position(end.first) >= end.second;
           });
  };
  while (!reached()) {
    TACIT_RETURN_IF_ERROR(reader->Read(kPollSlice, [&](const KafkaTopicRecord& record) -> Status {
      return record.offset < ends.at(record.partition) ? show(record) : Status();
    }));
    if (Steady::now() >= deadline && !reached())
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("topic '{}': its end was not reached in time", topic));
  }
  return {};
}

Result<std::map<std::string, std::string>> ReadTopicSettings(const KafkaProperties& properties,
                                                             const std::string& topic,
                                                             std::span<const std::string> names,
                                                             Milliseconds timeout) {
  const auto context = std::make_shared<KafkaContext>();
  TACIT_ASSIGN(KafkaConf conf, MakeKafkaConf(properties, KafkaRole::kProducer, context.get()));
  TACIT_ASSIGN(KafkaClient client,
               MakeKafkaClient(std::move(conf), KafkaRole::kProducer, *context));
  return AskSettings(client.get(), topic, names, timeout);
}

Result<std::map<std::string, std::string>> AskSettings(rd_kafka_t* client, const std::string& topic,
                                                       std::span<const std::string> names,
                                                       Milliseconds timeout) {
  const AdminOptions options(rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS));
  rd_kafka_AdminOptions_set_request_timeout(options.get(), static_cast<int>(timeout.count()),
                                            nullptr, 0);
  const AdminResource resource(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  const KafkaQueue queue(rd_kafka_queue_new(client));
  rd_kafka_ConfigResource_t* asked = resource.get();
  rd_kafka_DescribeConfigs(client, &asked, 1, options.get(), queue.get());
  const AdminAnswer answer(
      rd_kafka_queue_poll(queue.get(), static_cast<int>(timeout.count() + kPollSlice.count())));
  const std::string question = fmt::format("topic '{}': its settings", topic);
  if (answer == nullptr) return Unanswered(question, RD_KAFKA_RESP_ERR__TIMED_OUT);
  auto error = rd_kafka_event_error(answer.get());
  size_t count = 0;
  const rd_kafka_ConfigResource_t** found = nullptr;
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    found = rd_kafka_DescribeConfigs_result_resources(
        rd_kafka_event_DescribeConfigs_result(answer.get()), &count);
    if (count == 1) error = rd_kafka_ConfigResource_error(found[0]);
  }
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR && count == 1) return SettingsOf(*found[0], names);
  if (error == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE ||
      error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
      error == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED)
    return Fail(ErrorCode::kRefused, fmt::format("{}: {}", question, rd_kafka_err2str(error)));
  return Unanswered(question, error);
}

}  // namespace tacit::stream
