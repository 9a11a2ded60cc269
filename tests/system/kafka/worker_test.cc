// A worker beside a real broker, whose topic has transactions: offsets without a record stand in
// its slices and before them.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "system/kafka/broker.h"
#include "system/kafka/clients.h"
#include "unit/daemon/worker_rig.h"

namespace tacit::daemon {
namespace {

// A broker with the writer that the rig needs: its records come in transactions, of which some are
// aborted.
class RealKafka {
 public:
  std::string bootstrap() const { return broker_->bootstrap(); }
  void Create(const std::string& topic, int partitions) {
    if (broker_ == nullptr) Start();
    broker_->CreateTopic(topic, partitions);
  }
  void Write(const std::string& topic, int32_t partition, const std::string& value) {
    if (topic != "events") return Put(plain_, topic, partition, value);
    if (left_ == 0) {
      Abort();
      EXPECT_EQ(rd_kafka_begin_transaction(writer_.get()), nullptr);
      left_ = 1 + random_() % 40;
    }
    Put(writer_, topic, partition, value);
    if (--left_ == 0) Commit();
  }
  void Flush() {
    if (left_ > 0) Commit();
    left_ = 0;
    EXPECT_EQ(rd_kafka_flush(plain_.get(), 60'000), RD_KAFKA_RESP_ERR_NO_ERROR);
  }

 private:
  void Start() {
    broker_ = std::make_unique<test::Broker>();
    plain_ = test::MakeClient(RD_KAFKA_PRODUCER, bootstrap(), {});
    writer_ = test::MakeClient(RD_KAFKA_PRODUCER, bootstrap(), {{"transactional.id", "events"}});
    EXPECT_EQ(rd_kafka_init_transactions(writer_.get(), 60'000), nullptr);
  }
  static void Put(const test::Client& client, const std::string& topic, int32_t partition,
                  const std::string& value) {
    EXPECT_EQ(rd_kafka_producev(client.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
                                RD_KAFKA_V_PARTITION(partition),
                                RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
                                RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END),
              RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void Commit() { EXPECT_EQ(rd_kafka_commit_transaction(writer_.get(), 60'000), nullptr); }
  // Writes some records that nobody may read.
  void Abort() {
    EXPECT_EQ(rd_kafka_begin_transaction(writer_.get()), nullptr);
    for (uint64_t i = random_() % 6; i > 0; --i)
      Put(writer_, "events", static_cast<int32_t>(random_() % kEventPartitions), "aborted");
    EXPECT_EQ(rd_kafka_flush(writer_.get(), 60'000), RD_KAFKA_RESP_ERR_NO_ERROR);
    EXPECT_EQ(rd_kafka_abort_transaction(writer_.get(), 60'000), nullptr);
  }

  std::unique_ptr<test::Broker> broker_;
  test::Client plain_, writer_;
  std::mt19937_64 random_{7};
  uint64_t left_ = 0;  // of the transaction under way
};

class WorkerBrokerTest : public WorkerRig<RealKafka> {
 protected:
  void SetUp() override {
    TACIT_NEED_BROKER(test::kDefaultVersion);
    WorkerRig::SetUp();
  }
};

TEST_F(WorkerBrokerTest, ABodyIsTheSumsOfOneThreadOverTransactions) {
  std::mt19937_64 random(1);
  WriteEvents(900, random);
  Learn(All());
  Publish();
  const auto worker = Start("w-1");
  for (int period = 0; period < 6; ++period) SumAtRandom("w-1", random);
  EXPECT_GT(left_out_, 0u);
  EXPECT_GT(empty_, 0u);
}

}  // namespace
}  // namespace tacit::daemon
