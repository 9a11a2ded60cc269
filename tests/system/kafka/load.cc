#include "system/kafka/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "system/kafka/clients.h"

namespace tacit::test {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

struct LoadWriter::Connection {
  Client client;
};

LoadWriter::LoadWriter(Options options, Oracle& oracle)
    : options_(std::move(options)),
      oracle_(oracle),
      connection_(std::make_unique<Connection>()),
      partitions_(options_.partitions) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set_opaque(conf, this);
  rd_kafka_conf_set_dr_msg_cb(
      conf, [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
        static_cast<LoadWriter*>(opaque)->Hear(reinterpret_cast<size_t>(message->_private),
                                               message->err == RD_KAFKA_RESP_ERR_NO_ERROR);
      });
  connection_->client = MakeClient(RD_KAFKA_PRODUCER, options_.bootstrap,
                                   {{"enable.idempotence", "true"},
                                    {"linger.ms", "5"},
                                    {"reconnect.backoff.max.ms", "500"},
                                    {"topic.metadata.refresh.interval.ms", "1000"},
                                    {"message.timeout.ms", "600000"}},
                                   conf);
  thread_ = std::thread([this] { Run(); });
}

LoadWriter::~LoadWriter() { Stop(); }

void LoadWriter::Stop() {
  stopping_ = true;
  if (!thread_.joinable()) return;
  thread_.join();
  EXPECT_EQ(rd_kafka_flush(connection_->client.get(), 60000), RD_KAFKA_RESP_ERR_NO_ERROR);
}

// Keeps the pace on average, through any pause of the machine.
void LoadWriter::Run() {
  std::mt19937_64 random(options_.seed);
  const auto begun = Steady::now();
  uint64_t written = 0;
  while (!stopping_) {
    const double seconds = std::chrono::duration<double>(Steady::now() - begun).count();
    const auto due = static_cast<uint64_t>(seconds * options_.events_per_second);
    // After a long wait not all at once.
    for (const uint64_t end = std::min(due, written + 1000); written < end; ++written)
      WriteOne(random);
    written = std::max(written, due > 5000 ? due - 5000 : 0);
    rd_kafka_poll(connection_->client.get(), 0);
    std::this_thread::sleep_for(milliseconds(5));
  }
}

std::optional<std::string> LoadWriter::RecordOf(size_t event, std::mt19937_64& random) const {
  const std::string user = "u" + std::to_string(random() % 50);
  std::string record = options_.users ? oracle_.Json(event, user) : oracle_.Line(event);
  if (!oracle_.IsBad(event)) return record;
  switch (random() % 5) {
    case 0:
      return std::nullopt;
    case 1:  // as a schema frame begins
      return std::string(5, '\0') + record;
    case 2:
      return record.insert(0, "{\t");
    case 3:  // cut off
      return options_.users ? record.substr(0, record.size() - 2) : "1\t" + oracle_.Value(event);
    default:  // its label is none
      return record;
  }
}

void LoadWriter::WriteOne(std::mt19937_64& random) {
  const size_t event = oracle_.Invent(random() % 50 == 0);
  const std::optional<std::string> record = RecordOf(event, random);
  const auto partition = static_cast<int32_t>(random() % static_cast<uint64_t>(partitions_.load()));
  const auto error =
      rd_kafka_producev(connection_->client.get(), RD_KAFKA_V_TOPIC(options_.topic.c_str()),
                        RD_KAFKA_V_PARTITION(partition),
                        RD_KAFKA_V_VALUE((record ? const_cast<char*>(record->data()) : nullptr),
                                         (record ? record->size() : 0)),
                        RD_KAFKA_V_OPAQUE(reinterpret_cast<void*>(record ? event + 1 : 0)),
                        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) ++refused_;
}

void LoadWriter::Hear(size_t tag, bool delivered) {
  if (!delivered) {
    ++given_up_;
  } else if (tag == 0) {
    ++nulls_acked_;
  } else {
    acked_.resize(std::max(acked_.size(), tag));
    acked_[tag - 1] = true;
  }
}

}  // namespace tacit::test
