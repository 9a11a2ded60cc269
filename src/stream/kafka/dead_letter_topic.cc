#include "stream/kafka/dead_letter_topic.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/threads/mutex.h"
#include "stream/kafka/lookup.h"
#include "stream/kafka/producer.h"
#include "stream/kafka/topic_reader.h"

namespace tacit::stream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Steady = std::chrono::steady_clock;

constexpr milliseconds kSlice(100);
constexpr seconds kLetterPatience(5);  // before waiting is called trouble
constexpr seconds kTellAgain(30);      // between reports that waiting goes on
constexpr seconds kBeforeRetry(1);     // after a failure other than the broker's silence
constexpr uint64_t kRecalled = 10'000;
constexpr seconds kRecallTime(15);

// Header names of Kafka Connect's DeadLetterQueueReporter.
constexpr std::string_view kTopic = "__connect.errors.topic";
constexpr std::string_view kPartition = "__connect.errors.partition";
constexpr std::string_view kOffset = "__connect.errors.offset";
constexpr std::string_view kConnector = "__connect.errors.connector.name";
constexpr std::string_view kTask = "__connect.errors.task.id";
constexpr std::string_view kStage = "__connect.errors.stage";
constexpr std::string_view kClass = "__connect.errors.class.name";
constexpr std::string_view kException = "__connect.errors.exception.class.name";
constexpr std::string_view kMessage = "__connect.errors.exception.message";
// Our own header names.
constexpr std::string_view kLineage = "tacit.lineage";
constexpr std::string_view kMissing = "tacit.value.missing";

template <class T>
std::optional<T> ToNumber(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

class DeadLetterTopic final : public event::DeadLetterSink {
 public:
  explicit DeadLetterTopic(DeadLetterTopicOptions options)
      : options_(std::move(options)), written_(options_.blocks_most) {}

  Status Open() {
    TACIT_RETURN_IF_ERROR(OpenProducer());
    TACIT_RETURN_IF_ERROR(originals_.Open(options_.properties, options_.source_topic));
    const Status recalled =
        ReadKafkaTail(options_.properties, options_.topic, kRecalled, kRecallTime,
                      [this](const KafkaTopicRecord& record) -> Status {
                        Recall(record.headers);
                        return {};
                      });
    if (recalled) return {};
    if (recalled.error().code != ErrorCode::kUnavailable)
      return Fail(Error(recalled.error()).Context("kafka.errors.deadletterqueue.topic.name"));
    spdlog::warn(
        "cannot find out which dead letters are written already, so some may be written twice: {}",
        recalled.error().message);
    return {};
  }

  Status Write(std::span<const event::DeadLetter> letters) override {
    std::vector<Pending> pending;
    for (size_t i = 0; i < letters.size(); ++i)
      if (!written_.Contains(letters[i].partition, letters[i].offset)) pending.push_back({i});
    waiting_since_ = Steady::now();
    while (!pending.empty()) {
      const Status sent = Send(letters, pending);
      if (interrupted_) return Fail(ErrorCode::kUnavailable, "interrupted");
      if (sent) {
        pending = NotWritten(pending);
        if (pending.empty()) break;
      } else {
        // A producer that failed no longer knows what it has sent, so everything is sent again.
        Trouble(sent.error().message);
        TACIT_RETURN_IF_ERROR(OpenProducer());
      }
      if (!retry_at_once_) Sleep(kBeforeRetry);
    }
    originals_.Rest();
    for (const event::DeadLetter& letter : letters)
      written_.Insert(letter.partition, letter.offset);
    TroubleOver();
    return {};
  }

  void Interrupt() override { interrupted_ = true; }

  std::string trouble() const override {
    const MutexLock lock(mutex_);
    return trouble_;
  }

 private:
  // A letter that is still to be written. A broker refuses a batch that is too large as a whole;
  // sending each record alone shows which one is too large. Its key or its headers may be too large
  // as well as its value.
  struct Pending {
    enum class How { kTogether, kAlone, kWithoutValue, kBare };
    size_t letter = 0;
    How how = How::kTogether;
  };

  Status OpenProducer() {
    auto producer = KafkaProducer::Open({.properties = options_.properties,
                                         .topic = options_.topic,
                                         .record_bytes_max = options_.record_bytes_max});
    if (!producer) return Fail(std::move(producer.error()));
    producer_ = std::move(*producer);
    return {};
  }

  // Notes a letter of this store that an earlier run has written to the topic.
  void Recall(std::span<const event::MessageHeader> headers) {
    std::map<std::string_view, std::string_view> values;
    for (const event::MessageHeader& header : headers) values[header.name] = header.value;
    if (options_.lineage.empty() || values[kLineage] != options_.lineage ||
        values[kTopic] != options_.source_topic)
      return;
    const auto partition = ToNumber<int32_t>(values[kPartition]);
    const auto offset = ToNumber<uint64_t>(values[kOffset]);
    if (partition && offset) written_.Insert(*partition, *offset);
  }

  // Sends the pending letters and waits until each has been acknowledged or refused.
  Status Send(std::span<const event::DeadLetter> letters, std::span<const Pending> pending) {
    for (const Pending& one : pending) {
      const event::DeadLetter& letter = letters[one.letter];
      KafkaMessage original;
      while ((original = originals_.Find(letter.partition, letter.offset, kSlice)) == nullptr) {
        Waits(fmt::format("topic '{}' partition {} offset {} is out of reach",
                          options_.source_topic, letter.partition, letter.offset));
        if (interrupted_) return {};
      }
      TACIT_RETURN_IF_ERROR(SendOne(letter, *original, one));
      if (one.how != Pending::How::kTogether) TACIT_RETURN_IF_ERROR(Flush());
      if (interrupted_) return {};
    }
    return Flush();
  }

  Status Flush() {
    for (;;) {
      Status flushed = producer_->Flush(kSlice);
      if (flushed || interrupted_) return {};
      if (flushed.error().code != ErrorCode::kUnavailable) return flushed;
      Waits(flushed.error().message);
    }
  }

  Status SendOne(const event::DeadLetter& letter, const rd_kafka_message_t& original,
                 const Pending& pending) {
    const bool there = original.err == RD_KAFKA_RESP_ERR_NO_ERROR;
    const std::string partition = std::to_string(letter.partition);
    const std::string offset = std::to_string(letter.offset);
    std::vector<event::MessageHeader> headers;
    const bool with_value = pending.how < Pending::How::kWithoutValue;
    const bool bare = pending.how == Pending::How::kBare;
    if (there && !bare) ReadHeaders(original, &headers);
    headers.insert(headers.end(), {{kTopic, options_.source_topic},
                                   {kPartition, partition},
                                   {kOffset, offset},
                                   {kConnector, options_.connector},
                                   {kTask, "0"},
                                   {kStage, "VALUE_CONVERTER"},
                                   {kClass, "tacit::event::Codec"},
                                   {kException, "tacit::event::DeadLetter"},
                                   {kMessage, letter.reason},
                                   {kLineage, options_.lineage}});
    if (!there) headers.push_back({kMissing, "gone"});
    if (there && !with_value) headers.push_back({kMissing, "too large"});
    KafkaRecord record{.headers = headers, .tag = pending.letter};
    if (there) {
      if (original.key != nullptr && !bare)
        record.key = std::string_view(static_cast<const char*>(original.key), original.key_len);
      if (original.payload != nullptr && with_value)
        record.value = std::string_view(static_cast<const char*>(original.payload), original.len);
      record.timestamp_ms = std::max<int64_t>(rd_kafka_message_timestamp(&original, nullptr), 0);
    }
    for (;;) {
      Status sent = producer_->Send(record, kSlice);
      if (sent || interrupted_) return {};
      if (sent.error().code != ErrorCode::kUnavailable) return sent;
      Waits(sent.error().message);
    }
  }

  // Returns the letters that the broker has refused, each with the way to send it next.
  std::vector<Pending> NotWritten(std::span<const Pending> sent) {
    using How = Pending::How;
    std::vector<Pending> pending;
    retry_at_once_ = true;
    for (const FailedDelivery& failed : producer_->TakeFailures()) {
      const auto before = std::ranges::find(sent, failed.tag, &Pending::letter);
      TACIT_CHECK(before != sent.end());
      How how = before->how;
      if (failed.too_large && how != How::kBare)
        how = static_cast<How>(static_cast<int>(how) + 1);
      else
        Trouble(failed.reason);
      pending.push_back({failed.tag, how});
    }
    return pending;
  }

  // Reports trouble if writing has made no progress for kLetterPatience.
  void Waits(const std::string& why) {
    if (Steady::now() - waiting_since_ < kLetterPatience) return;
    const std::string more = producer_->trouble();
    Trouble(more.empty() ? why : fmt::format("{}: {}", why, more));
  }

  void Trouble(const std::string& why) {
    retry_at_once_ = false;
    const MutexLock lock(mutex_);
    const bool tell = trouble_.empty() || Steady::now() - told_ >= kTellAgain;
    trouble_ = why;
    if (!tell) return;
    told_ = Steady::now();
    spdlog::warn("dead letters cannot be written, and reading waits until they are: {}", why);
  }

  void TroubleOver() {
    const MutexLock lock(mutex_);
    if (!trouble_.empty()) spdlog::info("dead letters are written again");
    trouble_.clear();
  }

  void Sleep(seconds duration) {
    const auto until = Steady::now() + duration;
    while (!interrupted_ && Steady::now() < until) std::this_thread::sleep_for(kSlice);
  }

  const DeadLetterTopicOptions options_;
  std::unique_ptr<KafkaProducer> producer_;
  KafkaLookup originals_;
  event::RecentOffsets written_;  // of the source's partitions
  std::atomic<bool> interrupted_ = false;
  bool retry_at_once_ = false;
  Steady::time_point waiting_since_;
  mutable Mutex mutex_;
  std::string trouble_ TACIT_GUARDED_BY(mutex_);
  Steady::time_point told_ TACIT_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<event::DeadLetterSink>> OpenDeadLetterTopic(DeadLetterTopicOptions options) {
  auto sink = std::make_unique<DeadLetterTopic>(std::move(options));
  TACIT_RETURN_IF_ERROR(sink->Open());
  return sink;
}

}  // namespace tacit::stream
