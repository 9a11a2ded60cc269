#include "stream/kafka/bare.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <vector>

#include "stream/kafka/client.h"
#include "stream/kafka/topic.h"

namespace tacit::stream {
namespace {

using Steady = std::chrono::steady_clock;
constexpr size_t kBareBatch = 4096;
constexpr std::chrono::seconds kBarePatience(30);  // without a message

// Counts the messages since the partitions were assigned. It does not read the clock at each
// message: that would take a good part of a loop's time.
class Tally {
 public:
  void Add(uint64_t records, uint64_t bytes) {
    reading_.records += records;
    reading_.bytes += bytes;
    silent_ = false;
  }
  uint64_t seen() const { return reading_.records; }
  // Notes that no message has come. Returns true if that has lasted too long.
  bool GivesUp() {
    const auto now = Steady::now();
    if (!std::exchange(silent_, true)) silent_since_ = now;
    return now - silent_since_ > kBarePatience;
  }
  BareReading Finish() {
    reading_.seconds = std::chrono::duration<double>(Steady::now() - first_).count();
    return reading_;
  }

 private:
  BareReading reading_;
  const Steady::time_point first_ = Steady::now();
  Steady::time_point silent_since_ = first_;
  bool silent_ = false;
};

// Counts a message, null values included. Returns false for an error event.
bool Count(const rd_kafka_message_t& message, uint64_t* records, uint64_t* bytes) {
  if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
  ++*records;
  *bytes += message.len;
  return true;
}

// Returns false if no message has come.
bool TakeOne(rd_kafka_t* client, Tally* tally) {
  const KafkaMessage message(rd_kafka_consumer_poll(client, 100));
  uint64_t records = 0, bytes = 0;
  if (message == nullptr || !Count(*message, &records, &bytes)) return false;
  tally->Add(records, bytes);
  return true;
}

bool TakeBatch(rd_kafka_queue_t* queue, std::vector<rd_kafka_message_t*>* batch, Tally* tally) {
  const ssize_t got = rd_kafka_consume_batch_queue(queue, 10, batch->data(), batch->size());
  uint64_t records = 0, bytes = 0;
  for (ssize_t i = 0; i < got; ++i) {
    const KafkaMessage message((*batch)[static_cast<size_t>(i)]);
    Count(*message, &records, &bytes);
  }
  if (records > 0) tally->Add(records, bytes);
  return records > 0;
}

}  // namespace

Result<BareReading> ReadBare(const KafkaProperties& properties, const std::string& topic,
                             BareLoop loop) {
  KafkaContext context;
  TACIT_ASSIGN(KafkaConf conf, MakeKafkaConf(properties, KafkaRole::kConsumer, &context));
  TACIT_ASSIGN(const KafkaClient client,
               MakeKafkaClient(std::move(conf), KafkaRole::kConsumer, context));
  rd_kafka_poll_set_consumer(client.get());
  TACIT_ASSIGN(const auto partitions, ReadPartitions(client.get(), topic, Milliseconds(10000)));
  TACIT_ASSIGN(const auto spans, ReadSpans(client.get(), topic, partitions, Milliseconds(10000)));
  std::vector<PartitionOffset> starts;
  uint64_t expected = 0;
  for (const PartitionSpan& span : spans) {
    starts.push_back({span.partition, span.begin});
    expected += span.end - span.begin;
  }
  if (expected == 0)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("topic '{}' is empty", topic));
  const KafkaPartitions list = MakePartitions(topic, starts);
  if (const auto assigned = rd_kafka_assign(client.get(), list.get());
      assigned != RD_KAFKA_RESP_ERR_NO_ERROR)
    return Unanswered("assigning", assigned);
  const KafkaQueue queue(rd_kafka_queue_get_consumer(client.get()));
  std::vector<rd_kafka_message_t*> batch(kBareBatch);
  Tally tally;
  while (tally.seen() < expected) {
    const bool came = loop == BareLoop::kOneByOne ? TakeOne(client.get(), &tally)
                                                  : TakeBatch(queue.get(), &batch, &tally);
    if (!came && tally.GivesUp())
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("topic '{}': {} of {} records came, then nothing", topic,
                              tally.seen(), expected));
  }
  return tally.Finish();
}

}  // namespace tacit::stream
