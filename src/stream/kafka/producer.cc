#include "stream/kafka/producer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "stream/kafka/client.h"

namespace tacit::stream {
namespace {

using Steady = std::chrono::steady_clock;
using Milliseconds = KafkaProducer::Milliseconds;

constexpr Milliseconds kFlushSlice(100);  // between polls for brokers' answers
// Records that are sent between polls, and the time, in a long run of them: a poll costs as much as
// a record.
constexpr uint64_t kRecordsBetweenPolls = 64;
constexpr Milliseconds kTimeBetweenPolls(1);
// The bytes that a request adds to a record.
constexpr uint32_t kOverheadBytes = 64 << 10;

struct MessageHeadersDeleter {
  void operator()(rd_kafka_headers_t* headers) const { rd_kafka_headers_destroy(headers); }
};
using Headers = std::unique_ptr<rd_kafka_headers_t, MessageHeadersDeleter>;

Headers MakeHeaders(std::span<const event::MessageHeader> headers) {
  Headers made(rd_kafka_headers_new(headers.size()));
  for (const event::MessageHeader& header : headers)
    rd_kafka_header_add(made.get(), header.name.data(), static_cast<ssize_t>(header.name.size()),
                        header.value.data(), static_cast<ssize_t>(header.value.size()));
  return made;
}

bool IsTooLarge(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
         error == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE;
}

class Producer final : public KafkaProducer, private KafkaContext {
 public:
  explicit Producer(KafkaProducerOptions options) : options_(std::move(options)) {}

  Status Start() {
    TACIT_ASSIGN(KafkaConf conf, MakeKafkaConf(options_.properties, KafkaRole::kProducer, this));
    SetUnlessGiven(conf.get(), "message.max.bytes",
                   std::to_string(options_.record_bytes_max + kOverheadBytes));
    SetUnlessGiven(
        conf.get(), "queue.buffering.max.kbytes",
        std::to_string(std::max(options_.queued_bytes_max, 2 * options_.record_bytes_max) >> 10));
    SetUnlessGiven(conf.get(), "partitioner", "murmur2_random");
    TACIT_RETURN_IF_ERROR(NameTransactions(conf.get()));
    rd_kafka_conf_set_dr_msg_cb(conf.get(), OnDelivery);
    TACIT_ASSIGN(client_, MakeKafkaClient(std::move(conf), KafkaRole::kProducer, *this));
    topic_.reset(rd_kafka_topic_new(client_.get(), options_.topic.c_str(), nullptr));
    if (topic_ == nullptr)
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("topic '{}': {}", options_.topic, rd_kafka_err2str(rd_kafka_last_error())));
    return {};
  }

  Result<int32_t> CountPartitions(Milliseconds timeout) override {
    const auto deadline = Steady::now() + timeout;
    std::string why = "no broker has answered";
    for (;;) {
      const rd_kafka_metadata_t* answer = nullptr;
      const auto asked = rd_kafka_metadata(client_.get(), 0, topic_.get(), &answer,
                                           static_cast<int>(10 * kFlushSlice.count()));
      const KafkaMetadata metadata(answer);
      rd_kafka_resp_err_t error = asked;
      if (asked == RD_KAFKA_RESP_ERR_NO_ERROR) error = metadata->topics[0].err;
      if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return metadata->topics[0].partition_cnt;
      if (!IsTransient(error)) return Refused(error);
      Wait(kFlushSlice);
      if (!unauthenticated_.empty()) return Fail(ErrorCode::kIo, AboutTopic(unauthenticated_));
      if (error != RD_KAFKA_RESP_ERR__TRANSPORT) why = rd_kafka_err2str(error);
      if (Steady::now() >= deadline) return Fail(ErrorCode::kUnavailable, AboutTopic(why));
    }
  }

  Status Send(const KafkaRecord& record, Milliseconds timeout) override {
    const auto now = Steady::now();
    const auto deadline = now + timeout;
    for (;;) {
      const auto error = Produce(record);
      if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (++sent_ % kRecordsBetweenPolls != 0 && now - polled_ < kTimeBetweenPolls) return {};
        polled_ = now;
        Wait(Milliseconds(0));
        return {};
      }
      Wait(Milliseconds(0));
      if (IsTooLarge(error)) {
        failures_.push_back({record.tag, true, AboutTopic(rd_kafka_err2str(error))});
        return {};
      }
      if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) return Refused(error);
      if (Steady::now() >= deadline)
        return Fail(ErrorCode::kUnavailable, AboutTopic("the queue of records to be sent is full"));
      Wait(kFlushSlice);
    }
  }

  Status Flush(Milliseconds timeout) override {
    const auto deadline = Steady::now() + timeout;
    for (;;) {
      const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Steady::now());
      rd_kafka_flush(client_.get(),
                     static_cast<int>(std::clamp(left, Milliseconds(0), kFlushSlice).count()));
      NoteEvents();
      if (records_waiting() == 0) return {};
      if (rd_kafka_fatal_error(client_.get(), nullptr, 0) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return Refused(RD_KAFKA_RESP_ERR__FATAL);
      if (left <= Milliseconds(0))
        return Fail(ErrorCode::kUnavailable,
                    AboutTopic(fmt::format("{} records are not acknowledged", records_waiting())));
    }
  }

  void Wait(Milliseconds timeout) override {
    rd_kafka_poll(client_.get(), static_cast<int>(timeout.count()));
    NoteEvents();
  }

  Status InitTransactions(Milliseconds timeout) override {
    return Judge(rd_kafka_init_transactions(client_.get(), static_cast<int>(timeout.count())));
  }
  Status BeginTransaction() override { return Judge(rd_kafka_begin_transaction(client_.get())); }
  // A producer that is ended while its transaction ends may have no error from the call.
  Status CommitTransaction(Milliseconds timeout) override {
    TACIT_RETURN_IF_ERROR(
        Judge(rd_kafka_commit_transaction(client_.get(), static_cast<int>(timeout.count()))));
    std::array<char, 256> why{};
    const auto fatal = rd_kafka_fatal_error(client_.get(), why.data(), why.size());
    if (fatal == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
    return Judge(rd_kafka_error_new(fatal, "%s", why.data()));
  }

  uint64_t records_acked() const override { return acked_; }
  uint64_t records_waiting() const override { return sent_ - acked_ - failed_; }
  std::vector<FailedDelivery> TakeFailures() override { return std::exchange(failures_, {}); }
  std::string trouble() const override {
    if (!unauthenticated_.empty()) return unauthenticated_;
    return down_ ? "no broker answers" : "";
  }

 private:
  // Sets the room's own value, which is known to be valid, unless the user has set one.
  void SetUnlessGiven(rd_kafka_conf_t* conf, const char* name, const std::string& value) {
    if (options_.properties.Find(name) != nullptr) return;
    TACIT_CHECK(rd_kafka_conf_set(conf, name, value.c_str(), nullptr, 0) == RD_KAFKA_CONF_OK, name);
  }

  Status NameTransactions(rd_kafka_conf_t* conf) {
    if (options_.transactional_id.empty()) return {};
    const std::string* given = options_.properties.Find("transactional.id");
    if (given != nullptr)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("kafka.transactional.id: is '{}', and must not be set: it is made of "
                              "the topic's name, so that two who publish there end each other",
                              *given));
    const auto set =
        rd_kafka_conf_set(conf, "transactional.id", options_.transactional_id.c_str(), nullptr, 0);
    TACIT_CHECK(set == RD_KAFKA_CONF_OK, "transactional.id");
    // As long as brokers allow by default: a large version takes a while.
    SetUnlessGiven(conf, "transaction.timeout.ms", "900000");
    // Large requests: while records wait for an earlier request's answer, librdkafka's thread asks
    // over and over whether it has come. A commit sends what is there without waiting.
    SetUnlessGiven(conf, "linger.ms", "500");
    SetUnlessGiven(conf, "batch.num.messages", "1000000");
    return {};
  }

  // Takes over the error; null if there was none.
  Status Judge(rd_kafka_error_t* raw) {
    const KafkaError error(raw);
    NoteEvents();
    if (error == nullptr) return {};
    const auto code = rd_kafka_error_code(error.get());
    if (code == RD_KAFKA_RESP_ERR__FENCED || code == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
        code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH)
      return Fail(ErrorCode::kRefused,
                  AboutTopic(fmt::format("another producer has taken over '{}', and this one may "
                                         "write no more",
                                         options_.transactional_id)));
    const std::string why = AboutTopic(Redact(rd_kafka_error_string(error.get())));
    if (!unauthenticated_.empty()) return Fail(ErrorCode::kIo, AboutTopic(unauthenticated_));
    return Fail(
        rd_kafka_error_is_retriable(error.get()) != 0 ? ErrorCode::kUnavailable : ErrorCode::kIo,
        why);
  }

  rd_kafka_resp_err_t Produce(const KafkaRecord& record) {
    // An absent text is a null pointer; an empty view may hold a null pointer too.
    const auto bytes = [](const std::optional<std::string_view>& text) {
      static constexpr char kEmpty[] = "";
      if (!text) return static_cast<void*>(nullptr);
      return static_cast<void*>(const_cast<char*>(text->data() != nullptr ? text->data() : kEmpty));
    };
    const size_t key_size = record.key ? record.key->size() : 0;
    const size_t value_size = record.value ? record.value->size() : 0;
    if (record.headers.empty() && record.timestamp_ms == 0) {
      const int queued = rd_kafka_produce(topic_.get(), record.partition, RD_KAFKA_MSG_F_COPY,
                                          bytes(record.value), value_size, bytes(record.key),
                                          key_size, reinterpret_cast<void*>(record.tag));
      return queued == 0 ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_last_error();
    }
    Headers headers = MakeHeaders(record.headers);
    const auto error = rd_kafka_producev(
        client_.get(), RD_KAFKA_V_RKT(topic_.get()), RD_KAFKA_V_PARTITION(record.partition),
        RD_KAFKA_V_KEY(bytes(record.key), key_size),
        RD_KAFKA_V_VALUE(bytes(record.value), value_size),
        RD_KAFKA_V_TIMESTAMP(record.timestamp_ms), RD_KAFKA_V_HEADERS(headers.get()),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_OPAQUE(reinterpret_cast<void*>(record.tag)), RD_KAFKA_V_END);
    // The record owns the headers now.
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) static_cast<void>(headers.release());
    return error;
  }

  // Called from Wait and Flush. The client's opaque is its context.
  static void OnDelivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
    static_cast<Producer*>(static_cast<KafkaContext*>(opaque))->NoteDelivery(*message);
  }

  void NoteDelivery(const rd_kafka_message_t& message) {
    if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      ++acked_;
      down_ = false;
      unauthenticated_.clear();
      return;
    }
    ++failed_;
    failures_.push_back({reinterpret_cast<uint64_t>(message._private), IsTooLarge(message.err),
                         AboutTopic(fmt::format("partition {}: {}", message.partition,
                                                rd_kafka_err2str(message.err)))});
  }

  void NoteEvents() {
    Events events = TakeEvents();
    down_ = down_ || events.all_brokers_down;
    if (!events.unauthenticated.empty()) unauthenticated_ = std::move(events.unauthenticated);
  }

  std::string AboutTopic(std::string_view what) const {
    return fmt::format("topic '{}': {}", options_.topic, what);
  }

  tl::unexpected<Error> Refused(rd_kafka_resp_err_t error) const {
    char why[512] = "";
    const auto fatal = rd_kafka_fatal_error(client_.get(), why, sizeof(why));
    if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR) return Fail(ErrorCode::kIo, AboutTopic(why));
    const bool unknown = error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
                         error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
    return Fail(unknown ? ErrorCode::kNotFound : ErrorCode::kIo,
                AboutTopic(rd_kafka_err2str(error)));
  }

  const KafkaProducerOptions options_;
  KafkaClient client_;
  KafkaTopic topic_;  // destroyed before its client
  uint64_t sent_ = 0, acked_ = 0, failed_ = 0;
  Steady::time_point polled_{};  // by Send
  std::vector<FailedDelivery> failures_;
  bool down_ = false;
  std::string unauthenticated_;
};

}  // namespace

int32_t KafkaProducer::PartitionOfKey(std::string_view key, int32_t partitions) {
  TACIT_CHECK(partitions > 0);
  return rd_kafka_msg_partitioner_murmur2(nullptr, key.data(), key.size(), partitions, nullptr,
                                          nullptr);
}

Result<std::unique_ptr<KafkaProducer>> KafkaProducer::Open(KafkaProducerOptions options) {
  auto producer = std::make_unique<Producer>(std::move(options));
  TACIT_RETURN_IF_ERROR(producer->Start());
  return producer;
}

}  // namespace tacit::stream
