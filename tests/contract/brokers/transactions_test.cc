// Producers that write in transactions, and what readers see of these.
#include "contract/brokers/rig.h"

namespace tacit::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class TransactionsContract : public BrokersContract {
 protected:
  void SetUp() override {
    BrokersContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Create(2);
  }
  // The coordinator ends the transaction in partition 0. Its marker stands behind its record, or
  // alone if a slow machine's record came too late.
  void AwaitAborted(const Client& client) const {
    EXPECT_TRUE(Eventually("it is aborted", [&] { return Span(client, 0).second > 0; }));
  }
  const ClientProperties all_{{"isolation.level", "read_uncommitted"}};
};

TEST_F(TransactionsContract, MarkersTakeOffsetsAndWhatWasAbortedIsNotRead) {
  const Client producer = Transactional(topic_), client = Consumer(), everything = Consumer(all_);
  int64_t end = 0;
  for (const bool commits : {true, false, true}) {
    ExpectNone(rd_kafka_begin_transaction(producer.get()));
    for (const char* value : {"a", "b"}) ProduceNow(producer, 0, value);
    ExpectNone((commits ? rd_kafka_commit_transaction : rd_kafka_abort_transaction)(producer.get(),
                                                                                    kLongMs));
    end += 3;
    AwaitEnd(client, 0, end);
  }
  EXPECT_THAT(Shown(Read()), ElementsAre("0:a", "1:b", "6:a", "7:b"));
  EXPECT_THAT(Shown(Read(all_)), ElementsAre("0:a", "1:b", "3:a", "4:b", "6:a", "7:b"));
  EXPECT_THAT(Span(client, 1), Pair(0, 0)) << "no marker where nothing was written";
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 7}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "b@7");
  EXPECT_EQ(Next(client), std::string(kEnd) + "@9") << "the end lies behind the marker";
}

TEST_F(TransactionsContract, AnOpenOneIsTheEndForThoseWhoReadWhatIsCommitted) {
  const Client producer = Transactional(topic_), client = Consumer(), everything = Consumer(all_);
  Write(0, {"before"});
  ExpectNone(rd_kafka_begin_transaction(producer.get()));
  ProduceNow(producer, 0, "open");
  Write(0, {"behind"});
  EXPECT_THAT(Span(client, 0), Pair(0, 1));
  EXPECT_THAT(Span(everything, 0), Pair(0, 3));
  const BareList end = ListOf({{0, RD_KAFKA_OFFSET_END}});
  ASSERT_EQ(rd_kafka_offsets_for_times(client.get(), end.get(), kLongMs),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(end->elems[0].offset, 1);
  ASSERT_EQ(rd_kafka_assign(client.get(), ListOf({{0, 0}}).get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(Next(client), "before@0");
  EXPECT_EQ(Next(client), std::string(kEnd) + "@1");
  ExpectNothing(client);
  int64_t low = 0, high = 0;
  ASSERT_EQ(rd_kafka_get_watermark_offsets(client.get(), topic_.c_str(), 0, &low, &high),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_EQ(high, 3) << "the client knows the high watermark";
  ExpectNone(rd_kafka_commit_transaction(producer.get(), kLongMs));
  EXPECT_EQ(Next(client), "open@1");
  EXPECT_EQ(Next(client), "behind@2");
  EXPECT_EQ(Next(client), std::string(kEnd) + "@4");
}

TEST_F(TransactionsContract, OneAcrossPartitionsHasAMarkerInEach) {
  const Client producer = Transactional(topic_), client = Consumer();
  ExpectNone(rd_kafka_begin_transaction(producer.get()));
  ProduceNow(producer, 0, "a");
  ProduceNow(producer, 1, "b");
  ExpectNone(rd_kafka_commit_transaction(producer.get(), kLongMs));
  AwaitEnd(client, 0, 2);
  AwaitEnd(client, 1, 2);
  EXPECT_THAT(Shown(Read()), ElementsAre("0:a", "0:b"));
}

TEST_F(TransactionsContract, AnEmptyOneLeavesNothing) {
  const Client producer = Transactional(topic_), client = Consumer();
  for (int i = 0; i < 2; ++i) {
    ExpectNone(rd_kafka_begin_transaction(producer.get()));
    ExpectNone((i == 0 ? rd_kafka_commit_transaction : rd_kafka_abort_transaction)(producer.get(),
                                                                                   kLongMs));
  }
  ExpectNone(rd_kafka_begin_transaction(producer.get()));
  ProduceNow(producer, 0, "a");
  ExpectNone(rd_kafka_commit_transaction(producer.get(), kLongMs));
  AwaitEnd(client, 0, 2);
}

TEST_F(TransactionsContract, ACommitSendsWhatLingers) {
  const Client producer = Transactional(topic_, {{"linger.ms", "30000"}});
  ExpectNone(rd_kafka_begin_transaction(producer.get()));
  ASSERT_EQ(Produce(producer, 0, "a"), RD_KAFKA_RESP_ERR_NO_ERROR);
  ExpectNone(rd_kafka_commit_transaction(producer.get(), kLongMs));
  AwaitEnd(Consumer(), 0, 2);
  EXPECT_THAT(Shown(Read()), ElementsAre("0:a"));
}

TEST_F(TransactionsContract, TheNextOfAProducersNameEndsTheOneBefore) {
  const Client first = Transactional(topic_), client = Consumer();
  ExpectNone(rd_kafka_begin_transaction(first.get()));
  ProduceNow(first, 0, "first");
  const Client second = Transactional(topic_);
  AwaitEnd(client, 0, 2);
  ExpectNone(rd_kafka_begin_transaction(second.get()));
  ProduceNow(second, 0, "second");
  const auto refused = CodeOf(rd_kafka_commit_transaction(first.get(), kLongMs));
  EXPECT_EQ(refused, RD_KAFKA_RESP_ERR__FENCED);
  EXPECT_EQ(rd_kafka_fatal_error(first.get(), nullptr, 0), RD_KAFKA_RESP_ERR__FENCED);
  EXPECT_EQ(Produce(first, 0, "late"), RD_KAFKA_RESP_ERR__FATAL);
  EXPECT_NE(CodeOf(rd_kafka_begin_transaction(first.get())), RD_KAFKA_RESP_ERR_NO_ERROR);
  ExpectNone(rd_kafka_commit_transaction(second.get(), kLongMs));
  EXPECT_EQ(rd_kafka_fatal_error(second.get(), nullptr, 0), RD_KAFKA_RESP_ERR_NO_ERROR);
  AwaitEnd(client, 0, 4);
  EXPECT_THAT(Shown(Read()), ElementsAre("2:second"));
}

TEST_F(TransactionsContract, AnotherNameEndsNobody) {
  const Client first = Transactional(topic_), second = Transactional(topic_ + "-other");
  for (const Client* producer : {&first, &second}) {
    ExpectNone(rd_kafka_begin_transaction(producer->get()));
    ProduceNow(*producer, 0, "v");
  }
  for (const Client* producer : {&first, &second})
    ExpectNone(rd_kafka_commit_transaction(producer->get(), kLongMs));
  AwaitEnd(Consumer(), 0, 4);
  EXPECT_THAT(Shown(Read()), ElementsAre("0:v", "1:v"));
}

TEST_F(TransactionsContract, CallsOutOfTurnAreRefused) {
  const Client producer = Producer({{"transactional.id", topic_}});
  EXPECT_EQ(CodeOf(rd_kafka_begin_transaction(producer.get())), RD_KAFKA_RESP_ERR__STATE);
  ExpectNone(rd_kafka_init_transactions(producer.get(), kLongMs));
  EXPECT_EQ(CodeOf(rd_kafka_commit_transaction(producer.get(), kLongMs)), RD_KAFKA_RESP_ERR__STATE);
  EXPECT_EQ(Produce(producer, 0, "outside"), RD_KAFKA_RESP_ERR__STATE);
  ExpectNone(rd_kafka_begin_transaction(producer.get()));
  EXPECT_EQ(CodeOf(rd_kafka_begin_transaction(producer.get())), RD_KAFKA_RESP_ERR__STATE);
  EXPECT_EQ(CodeOf(rd_kafka_init_transactions(Producer().get(), kLongMs)),
            RD_KAFKA_RESP_ERR__NOT_CONFIGURED);
}

TEST_F(TransactionsContract, ATimeThatBrokersDoNotAllowIsRefused) {
  const Client producer =
      Producer({{"transactional.id", topic_}, {"transaction.timeout.ms", "900001"}});
  EXPECT_EQ(CodeOf(rd_kafka_init_transactions(producer.get(), kLongMs)),
            RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT);
}

// A process that dies leaves its transaction open. The coordinator ends it.
TEST_F(TransactionsContract, OneThatIsLeftAloneIsAbortedInTime) {
  const Client client = Consumer();
  {
    const Client producer = Transactional(topic_, {{"transaction.timeout.ms", "1000"}});
    ExpectNone(rd_kafka_begin_transaction(producer.get()));
    ProduceNow(producer, 0, "left");
  }
  AwaitAborted(client);
  EXPECT_THAT(Read(), IsEmpty());
}

TEST_F(TransactionsContract, OneWhoseTimeIsUpCannotBeCommitted) {
  const Client producer = Transactional(topic_, {{"transaction.timeout.ms", "1000"}});
  ExpectNone(rd_kafka_begin_transaction(producer.get()));
  ProduceNow(producer, 0, "late");
  AwaitAborted(Consumer());
  EXPECT_NE(CodeOf(rd_kafka_commit_transaction(producer.get(), kLongMs)),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  EXPECT_THAT(Read(), IsEmpty());
}

}  // namespace
}  // namespace tacit::test
