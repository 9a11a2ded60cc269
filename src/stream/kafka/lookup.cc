#include "stream/kafka/lookup.h"

#include <utility>

#include "base/check.h"
#include "stream/kafka/topic.h"

namespace tacit::stream {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;
// Up to this distance reading on is cheaper than a new request.
constexpr uint64_t kReadOn = 1000;
// The client fetches little ahead, since most records asked for are isolated.
constexpr std::pair<const char*, const char*> kSmall[] = {{"queued.max.messages.kbytes", "2048"},
                                                          {"queued.min.messages", "100"}};

bool IsGone(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR__PARTITION_EOF ||
         error == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
         error == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE ||
         error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
         error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
         error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
}

}  // namespace

Status KafkaLookup::Open(KafkaProperties properties, std::string topic) {
  topic_ = std::move(topic);
  // The client joins no group; librdkafka merely requires a name.
  if (properties.Find("group.id") == nullptr) properties.values.push_back({"group.id", "tacit"});
  TACIT_ASSIGN(KafkaConf conf, MakeKafkaConf(properties, KafkaRole::kConsumer, &context_));
  for (const auto& [name, value] : kSmall)
    TACIT_CHECK(rd_kafka_conf_set(conf.get(), name, value, nullptr, 0) == RD_KAFKA_CONF_OK, name);
  TACIT_ASSIGN(client_, MakeKafkaClient(std::move(conf), KafkaRole::kConsumer, context_));
  rd_kafka_poll_set_consumer(client_.get());
  return {};
}

bool KafkaLookup::Seek(int32_t partition, uint64_t offset) {
  const PartitionOffset start{.partition = partition, .offset = offset};
  const KafkaPartitions list = MakePartitions(topic_, std::span(&start, 1));
  const bool assigned = rd_kafka_assign(client_.get(), list.get()) == RD_KAFKA_RESP_ERR_NO_ERROR;
  partition_ = assigned ? partition : -1;
  next_ = offset;
  end_.reset();
  return assigned;
}

KafkaMessage KafkaLookup::Find(int32_t partition, uint64_t offset, milliseconds timeout) {
  const auto deadline = Steady::now() + timeout;
  const bool reads_on = partition == partition_ && next_ <= offset && offset - next_ <= kReadOn;
  if (!reads_on && !Seek(partition, offset)) return nullptr;
  for (;;) {
    if (end_ != nullptr && Steady::now() - ended_at_ >= end_patience_) {
      KafkaMessage end = std::move(end_);
      Rest();
      return end;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Steady::now());
    if (left <= milliseconds(0)) return nullptr;
    KafkaMessage message(rd_kafka_consumer_poll(client_.get(), static_cast<int>(left.count())));
    if (message == nullptr || message->partition != partition || IsTransientFetch(message->err))
      continue;
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF &&
        static_cast<uint64_t>(message->offset) <= offset) {
      end_ = std::move(message);
      ended_at_ = Steady::now();
      continue;
    }
    end_.reset();
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      Rest();
      return IsGone(message->err) ? std::move(message) : nullptr;
    }
    next_ = static_cast<uint64_t>(message->offset) + 1;
    if (next_ <= offset) continue;
    if (next_ > offset + 1) {  // it is a later one
      message->err = RD_KAFKA_RESP_ERR__NO_OFFSET;
      Rest();  // the later one may be asked for yet
    }
    return message;
  }
}

void KafkaLookup::Rest() {
  rd_kafka_assign(client_.get(), nullptr);
  partition_ = -1;
  end_.reset();
}

}  // namespace tacit::stream
