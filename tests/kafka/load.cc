#include "kafka/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "kafka/clients.h"

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
  connection_->client = MakeClient(RD_KAFKA_PRODUCER, options_.bootstrap,
                                   {{"enable.idempotence", "true"},
                                    {"linger.ms", "5"},
                                    {"reconnect.backoff.max.ms", "500"},
                                    {"topic.metadata.refresh.interval.ms", "1000"},
                                    {"message.timeout.ms", "600000"}});
  thread_ = std::thread([this] { Run(); });
}

LoadWriter::~LoadWriter() { Stop(); }

void LoadWriter::Stop() {
  stopping_ = true;
  if (!thread_.joinable()) return;
  thread_.join();
  EXPECT_EQ(rd_kafka_flush(connection_->client.get(), 60000), RD_KAFKA_RESP_ERR_NO_ERROR);
}

// Keeps the pace on average, whatever the machine does in between.
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

// A partition that the client does not know yet, or a full queue, is a record not written.
void LoadWriter::WriteOne(std::mt19937_64& random) {
  const size_t event = oracle_.Invent(random() % 50 == 0);
  std::string line = oracle_.Line(event);
  const auto partition = static_cast<int32_t>(random() % static_cast<uint64_t>(partitions_.load()));
  rd_kafka_producev(connection_->client.get(), RD_KAFKA_V_TOPIC(options_.topic.c_str()),
                    RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_VALUE(line.data(), line.size()),
                    RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
}

}  // namespace tacit::test
