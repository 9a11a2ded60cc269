#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>

#include "base/text.h"
#include "mock_kafka.h"
#include "stream/kafka/schema_registry.h"
#include "stream/kafka/source.h"
#include "support/eventually.h"
#include "support/metrics_page.h"

namespace tacit::stream {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Steady = std::chrono::steady_clock;
using test::kPatience;

// Everything that came of a topic.
struct Heard {
  std::map<int32_t, std::vector<std::string>> values;  // faults as "!REASON"
  std::map<int32_t, uint64_t> next;
  std::vector<std::pair<int32_t, event::PublicCut>> cuts;
  size_t records = 0;

  void Add(const event::RawRecords& frame) {
    const auto known = next.find(frame.partition);
    if (known != next.end()) {
      EXPECT_GE(frame.first_offset, known->second) << "a record again";
    }
    next[frame.partition] = frame.end_offset();
    for (size_t i = 0; i < frame.size(); ++i) values[frame.partition].emplace_back(frame[i]);
    for (const auto& fault : frame.faults)
      values[frame.partition][values[frame.partition].size() - frame.size() + fault.index] =
          "!" + fault.reason;
    for (const auto& cut : frame.cuts) cuts.emplace_back(frame.partition, cut);
    records += frame.size();
    EXPECT_EQ(frame.timestamp_ms.size(), frame.size());
  }
};

class KafkaSourceTest : public testing::Test {
 protected:
  KafkaSourceOptions Options() {
    KafkaSourceOptions options;
    // The short pauses before a connection is tried again cut the waiting for a broker's return.
    options.properties.values = {{"bootstrap.servers", kafka_.bootstrap()},
                                 {"group.id", "tacit"},
                                 {"reconnect.backoff.ms", "20"},
                                 {"reconnect.backoff.max.ms", "200"}};
    options.topic = "t";
    options.round = 50ms;
    options.refresh = 100ms;
    options.advise = 0ms;
    options.open_timeout = kPatience;  // a slow opening is not left to Poll
    return options;
  }
  std::unique_ptr<Source> Open(KafkaSourceOptions options,
                               std::unique_ptr<event::Envelope> envelope = nullptr) {
    auto source = OpenKafkaSource(std::move(options), std::move(envelope));
    EXPECT_TRUE(source) << source.error().message;
    return source ? std::move(*source) : nullptr;
  }
  std::unique_ptr<Source> Open() { return Open(Options()); }

  // Polls until it is done.
  static Status PollUntil(Source& source, Heard* heard, const std::function<bool()>& done) {
    const auto deadline = Steady::now() + kPatience;
    while (!done()) {
      if (Steady::now() > deadline) return Fail(ErrorCode::kInternal, "it took too long");
      event::RawRecords frame;
      TACIT_ASSIGN(const PollOutcome outcome, source.Poll(20ms, &frame));
      if (outcome == PollOutcome::kRecords) heard->Add(frame);
    }
    return {};
  }
  static void PollRecords(Source& source, Heard* heard, size_t records) {
    const Status status = PollUntil(source, heard, [&] { return heard->records >= records; });
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(heard->records, records);
  }
  static std::string SeekRefusal(Source& source, std::vector<PartitionOffset> positions) {
    const Status status = source.Seek(positions);
    if (status) return "";
    EXPECT_EQ(status.error().code, ErrorCode::kRefused);
    return status.error().message;
  }

  MockKafka kafka_;
};

TEST_F(KafkaSourceTest, EveryPartitionComesInOrderFromItsBeginning) {
  kafka_.Create("t", 3);
  for (int32_t p = 0; p < 3; ++p) kafka_.WriteNumbers("t", p, p * 1000, 300);
  const auto source = Open();
  ASSERT_TRUE(source->Seek({}));
  EXPECT_THAT(source->partitions(), ElementsAre(0, 1, 2));
  Heard heard;
  PollRecords(*source, &heard, 900);
  EXPECT_TRUE(PollUntil(*source, &heard, [&] { return source->health().connected; }));
  for (int32_t p = 0; p < 3; ++p)
    for (size_t i = 0; i < 300; ++i)
      ASSERT_EQ(heard.values[p][i], std::to_string(p * 1000 + static_cast<int>(i)));
}

TEST_F(KafkaSourceTest, ReadingGoesOnFromPositions) {
  kafka_.Create("t", 2);
  for (int32_t p = 0; p < 2; ++p) kafka_.WriteNumbers("t", p, 0, 100);
  const auto source = Open();
  ASSERT_TRUE(source->Seek(std::vector<PartitionOffset>{{0, 40}, {1, 100}}));
  Heard heard;
  PollRecords(*source, &heard, 60);
  EXPECT_EQ(heard.values[0].front(), "40");
  EXPECT_THAT(heard.values[1], IsEmpty());
  // And again, back and forth, through the same source.
  ASSERT_TRUE(source->Seek(std::vector<PartitionOffset>{{0, 99}, {1, 0, true}}));
  Heard again;
  PollRecords(*source, &again, 101);
  EXPECT_THAT(again.values[0], ElementsAre("99"));
  EXPECT_EQ(again.values[1].front(), "0");
}

// Deduplication knows new records by those before them: these are read again, as far as they are
// there.
// As after a crash in a period of partition 1, with a backlog in partition 0.
TEST_F(KafkaSourceTest, ABegunPeriodIsReadBeforeTheBacklogOfOtherPartitions) {
  kafka_.Create("t", 2);
  for (int32_t p = 0; p < 2; ++p) kafka_.WriteNumbers("t", p, 0, 50);
  const auto source = Open();
  ASSERT_TRUE(source->Seek(
      std::vector<PartitionOffset>{{.partition = 0}, {.partition = 1, .first_until = 20}}));
  Heard heard;
  ASSERT_TRUE(PollUntil(*source, &heard, [&] { return heard.values[1].size() >= 20; }));
  EXPECT_EQ(heard.records, 20u) << "others are read before it is";
  PollRecords(*source, &heard, 100);
}

TEST_F(KafkaSourceTest, RecordsBeforeAPositionAreDeliveredWhereTheyAreAskedFor) {
  kafka_.Create("t", 2);
  for (int32_t p = 0; p < 2; ++p) kafka_.WriteNumbers("t", p, 0, 100);
  const auto source = Open();
  ASSERT_TRUE(source->Seek(std::vector<PartitionOffset>{
      {.partition = 0, .offset = 40, .before = 15}, {.partition = 1, .offset = 10, .before = 15}}));
  Heard heard;
  PollRecords(*source, &heard, 75 + 100);
  EXPECT_EQ(heard.values[0].front(), "25");
  EXPECT_EQ(heard.values[1].front(), "0");
}

TEST_F(KafkaSourceTest, WhatCannotBeLearntFromIsAFaultAtItsOffset) {
  kafka_.Create("t", 1);
  kafka_.Write("t", 0, "a");
  kafka_.Write("t", 0, std::nullopt);
  kafka_.Write("t", 0, std::string(101, 'x'));
  kafka_.Write("t", 0, "");
  kafka_.Write("t", 0, std::string(100, 'y'));
  kafka_.Flush();
  auto options = Options();
  options.max_record_bytes = 100;
  const auto source = Open(options);
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, 5);
  EXPECT_THAT(heard.values[0],
              ElementsAre("a", "!null value", HasSubstr("!a value of 101 bytes, more than"), "",
                          std::string(100, 'y')));
}

// Were it passed over while it is paused, how long that lasts would decide the order.
TEST_F(KafkaSourceTest, APausedPartitionKeepsItsTurnAndLosesNothing) {
  kafka_.Create("t", 2);
  kafka_.WriteNumbers("t", 0, 0, 50);
  const auto source = Open();
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, 50);
  const std::vector<int32_t> first{0};
  source->Pause(first);
  kafka_.WriteNumbers("t", 1, 0, 70);
  PollRecords(*source, &heard, 120);  // the paused one has nothing, and passes
  kafka_.WriteNumbers("t", 0, 50, 50);
  kafka_.WriteNumbers("t", 1, 70, 30);
  // By count: nothing of it comes however often one asks.
  event::RawRecords frame;
  for (int i = 0; i < 40; ++i) {
    const auto outcome = source->Poll(20ms, &frame);
    ASSERT_TRUE(outcome);
    ASSERT_NE(frame.partition == 0 && frame.size() > 0, true) << "it is paused";
    if (*outcome == PollOutcome::kRecords) heard.Add(frame);
  }
  source->Resume(first);
  PollRecords(*source, &heard, 200);
  EXPECT_EQ(heard.next[0], 100u);
}

// As the intake does when its queue is full.
TEST_F(KafkaSourceTest, AllPausedIsBackpressure) {
  kafka_.Create("t", 2);
  const auto source = Open();
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  for (int round = 0; round < 5; ++round) {
    for (int32_t p = 0; p < 2; ++p) kafka_.WriteNumbers("t", p, round * 100, 100);
    event::RawRecords frame;
    const auto deadline = Steady::now() + kPatience;
    while (frame.size() == 0 && Steady::now() < deadline) ASSERT_TRUE(source->Poll(20ms, &frame));
    heard.Add(frame);
    source->Pause(source->partitions());
    for (int i = 0; i < 3; ++i) {
      const auto outcome = source->Poll(1ms, &frame);
      ASSERT_TRUE(outcome);
      EXPECT_EQ(*outcome, PollOutcome::kNothing);
    }
    source->Resume(source->partitions());
  }
  PollRecords(*source, &heard, 1000);
  for (int32_t p = 0; p < 2; ++p)
    for (size_t i = 0; i < 500; ++i) ASSERT_EQ(heard.values[p][i], std::to_string(i));
}

// A registry that is out of reach until the test says so, and then knows every schema.
class LateBook final : public event::SchemaBook {
 public:
  explicit LateBook(const std::atomic<bool>& answers) : answers_(answers) {}
  event::SchemaVerdict Look(const event::SchemaKey&) override {
    using Kind = event::SchemaVerdict::Kind;
    if (!answers_) return {.kind = Kind::kWait, .reason = Trouble()};
    return {.kind = Kind::kAccept};
  }
  std::string Trouble() override { return answers_ ? "" : "nobody answers"; }

 private:
  const std::atomic<bool>& answers_;
};

std::string Framed(int number) { return std::string("\0\0\0\0\7", 5) + std::to_string(number); }

std::unique_ptr<event::Envelope> MakeFramed(std::unique_ptr<event::SchemaBook> book) {
  return std::make_unique<event::Envelope>(event::EnvelopeOptions{.framed = true}, std::move(book));
}

TEST_F(KafkaSourceTest, AMessageThatCannotBeOpenedYetIsNotOvertaken) {
  kafka_.Create("t", 2);
  for (int i = 0; i < 20; ++i) kafka_.Write("t", 0, Framed(i));
  kafka_.Flush();
  metrics::Registry registry;
  auto options = Options();
  options.metrics = &registry;
  std::atomic<bool> registry_answers = false;
  const auto source = Open(options, MakeFramed(std::make_unique<LateBook>(registry_answers)));
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  const Status told = PollUntil(*source, &heard, [&] {
    return source->health().alert.find("partition 0 waits at offset 0, and all others") !=
           std::string::npos;
  });
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_THAT(source->health().alert, HasSubstr("nobody answers"));
  EXPECT_THAT(registry.Scrape(metrics::Audience::kOperator),
              HasSubstr("tacit_source_partitions_waiting 1"));
  kafka_.Write("t", 1, "no frame");
  kafka_.Flush();
  int polls = 0;
  ASSERT_TRUE(PollUntil(*source, &heard, [&] { return ++polls > 10; }));
  EXPECT_EQ(heard.records, 0u) << "a partition did not wait";
  registry_answers = true;
  ASSERT_TRUE(PollUntil(*source, &heard, [&] { return heard.records > 0; }));
  EXPECT_EQ(heard.next.count(1), 0u) << "the other partition did not wait";
  for (int i = 20; i < 40; ++i) kafka_.Write("t", 0, Framed(i));
  kafka_.Flush();
  PollRecords(*source, &heard, 41);
  for (size_t i = 0; i < 40; ++i) ASSERT_EQ(heard.values[0][i], std::to_string(i));
  EXPECT_THAT(heard.values[1], ElementsAre(HasSubstr("!")));
  ASSERT_TRUE(PollUntil(*source, &heard, [&] { return source->health().alert.empty(); }));
}

TEST_F(KafkaSourceTest, MessagesAreFaultsOnceTheRegistrysTimeIsUp) {
  kafka_.Create("t", 1);
  for (int i = 0; i < 3; ++i) kafka_.Write("t", 0, Framed(i));
  kafka_.Flush();
  const SystemClock clock;  // port 1 is never listened at
  const auto source =
      Open(Options(),
           MakeFramed(MakeSchemaRegistry({.url = "http://127.0.0.1:1", .wait = 700ms}, clock)));
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, 3);
  for (const std::string& fault : heard.values[0])
    EXPECT_THAT(fault, AllOf(HasSubstr("!schema id 7: http://127.0.0.1:1: Failed to connect"),
                             HasSubstr("not answered for 0.7 s (source.schema_wait_ms)")));
  ASSERT_TRUE(PollUntil(*source, &heard, [&] {
    return source->health().alert.find("topic 't': http://127.0.0.1:1: ") != std::string::npos;
  }));
}

// They are told even while a long step pauses all partitions.
TEST_F(KafkaSourceTest, BrokersThatGoAndComeBackAreNoFailure) {
  kafka_.Create("t", 1);
  kafka_.WriteNumbers("t", 0, 0, 30);
  metrics::Registry registry;
  auto options = Options();
  options.metrics = &registry;
  const auto source = Open(options);
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, 30);
  EXPECT_TRUE(source->health().connected);
  for (int round = 0; round < 2; ++round) {
    if (round == 1) source->Pause(source->partitions());
    kafka_.SetDown(true);
    const Status gone = PollUntil(*source, &heard, [&] { return !source->health().connected; });
    ASSERT_TRUE(gone) << gone.error().message;
    EXPECT_NE(source->health().alert, "");
    kafka_.SetDown(false);
    const Status back = PollUntil(*source, &heard, [&] { return source->health().connected; });
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(source->health().alert, "");
    source->Resume(source->partitions());
    kafka_.WriteNumbers("t", 0, 30 + round * 10, 10);
    PollRecords(*source, &heard, 40 + static_cast<size_t>(round) * 10);
  }
  for (size_t i = 0; i < 50; ++i) ASSERT_EQ(heard.values[0][i], std::to_string(i));
}

TEST_F(KafkaSourceTest, ASourceOutOfReachAtTheStartIsReadWhenItComes) {
  kafka_.Create("t", 1);
  kafka_.WriteNumbers("t", 0, 0, 10);
  kafka_.SetDown(true);
  auto options = Options();
  options.open_timeout = 0ms;
  const auto source = Open(options);
  ASSERT_TRUE(source->Seek(std::vector<PartitionOffset>{{0, 4}}));
  EXPECT_FALSE(source->health().connected);
  EXPECT_NE(source->health().alert, "");
  kafka_.SetDown(false);
  Heard heard;
  PollRecords(*source, &heard, 6);
  EXPECT_EQ(heard.values[0].front(), "4");
}

TEST_F(KafkaSourceTest, WhatIsThereIsTheEndWhereOneIsAskedFor) {
  kafka_.Create("t", 3);
  kafka_.WriteNumbers("t", 1, 0, 20);
  auto options = Options();
  options.until_end = true;
  const auto source = Open(options);
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollOutcome outcome = PollOutcome::kNothing;
  const auto deadline = Steady::now() + kPatience;
  while (outcome != PollOutcome::kEnd && Steady::now() < deadline) {
    event::RawRecords frame;
    const auto polled = source->Poll(20ms, &frame);
    ASSERT_TRUE(polled);
    if (outcome = *polled; outcome == PollOutcome::kRecords) heard.Add(frame);
  }
  EXPECT_EQ(outcome, PollOutcome::kEnd);
  EXPECT_EQ(heard.records, 20u);
}

TEST_F(KafkaSourceTest, TheClockTicksInPartitionsWhereSomethingCame) {
  kafka_.Create("t", 2);
  kafka_.WriteNumbers("t", 0, 0, 5);
  auto options = Options();
  options.round = 10ms;
  options.tick = 50ms;
  const auto source = Open(options);
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  ASSERT_TRUE(PollUntil(*source, &heard, [&] { return !heard.cuts.empty(); }));
  ASSERT_EQ(heard.cuts.size(), 1u);
  EXPECT_EQ(heard.cuts[0].first, 0);
  EXPECT_EQ(heard.cuts[0].second.kind, event::PublicCut::Kind::kClockTick);
  EXPECT_EQ(heard.cuts[0].second.offset, 5u);
  // An idle stream has no further tick: it would come before the next record's, at the same
  // offset as the first.
  event::RawRecords frame;
  for (int i = 0; i < 10; ++i) {
    const auto outcome = source->Poll(20ms, &frame);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(*outcome, PollOutcome::kNothing);
  }
  kafka_.WriteNumbers("t", 0, 5, 5);
  ASSERT_TRUE(PollUntil(*source, &heard, [&] { return heard.cuts.size() == 2; }));
  EXPECT_GT(heard.cuts[1].second.offset, 5u);
  EXPECT_LE(heard.cuts[1].second.offset, 10u);
}

TEST_F(KafkaSourceTest, WhatIsCommittedIsInTheGroupForOthersToSee) {
  kafka_.Create("t", 2);
  kafka_.WriteNumbers("t", 0, 0, 10);
  kafka_.WriteNumbers("t", 1, 0, 10);
  const StoreMark own{"aa", 3, "ff"};
  const auto refusal = [&](const StoreMark& store) {
    const auto source = Open();
    source->Claim(store);
    return SeekRefusal(*source, {{0, 7}, {1, 9}});
  };
  const StoreMark other{"bb", 9, "ff"};
  // A source that ends commits what it was told, for which it waits two seconds: a broker that the
  // machine held up longer is told again.
  ASSERT_TRUE(test::Eventually("the group shows what was committed", [&] {
    {
      const auto source = Open();
      source->Claim(own);
      EXPECT_TRUE(source->Seek({}));
      source->Advise(std::vector<PartitionOffset>{{0, 7}, {1, 9}}, own);
    }
    return refusal(other) != "";
  }));
  EXPECT_EQ(refusal(own), "");
  EXPECT_EQ(refusal({"aa", 4, "ee"}), "") << "a store that is further";
  EXPECT_THAT(refusal(other), AllOf(HasSubstr("topic 't' partition 0"), HasSubstr("lineage aa"),
                                    HasSubstr("up to offset 7"), HasSubstr("lineage bb"),
                                    HasSubstr("group 'tacit'"), HasSubstr("kafka.group.id")));
  EXPECT_THAT(refusal({"aa", 2, "dd"}),
              AllOf(HasSubstr("commit 3"), HasSubstr("is at commit 2"), HasSubstr("older copy")));
  EXPECT_THAT(refusal({"aa", 3, "dd"}), HasSubstr("continued on its own"));
}

TEST_F(KafkaSourceTest, CommitsGoOutWhileReading) {
  kafka_.Create("t", 1);
  kafka_.WriteNumbers("t", 0, 0, 10);
  metrics::Registry registry;
  auto options = Options();
  options.metrics = &registry;
  const auto source = Open(options);
  source->Claim(StoreMark{"aa", 0, ""});
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, 10);
  source->Advise(std::vector<PartitionOffset>{{0, 6}}, StoreMark{"aa", 1, "ff"});
  ASSERT_TRUE(PollUntil(*source, &heard, [&] {
    const std::string scraped = registry.Scrape(metrics::Audience::kOperator);
    return scraped.find("position=\"group\",topic=\"t\"} 4") != std::string::npos &&
           scraped.find("position=\"store\",topic=\"t\"} 4") != std::string::npos &&
           scraped.find("position=\"read\",topic=\"t\"} 0") != std::string::npos;
  })) << registry.Scrape(metrics::Audience::kOperator);
  EXPECT_THAT(registry.Scrape(metrics::Audience::kPublic),
              testing::Not(HasSubstr("tacit_source_lag")));
  // metrics/families.h has these, and says that they are Kafka's.
  const auto shown = test::ShapesOf(registry.Scrape(metrics::Audience::kOperator));
  EXPECT_THAT(test::Differences(test::DocumentedMetrics(), shown, {}, false), testing::IsEmpty());
  for (const auto& [name, row] : test::DocumentedMetrics())
    EXPECT_TRUE(row.of != metrics::kKafka || shown.contains(name)) << name;
}

// The group's last commit of this very process is older than its position when the brokers are
// back: that is no copy that continued on its own.
TEST_F(KafkaSourceTest, AfterAnOutageItsOwnOlderCommitIsNoFork) {
  kafka_.Create("t", 1);
  kafka_.WriteNumbers("t", 0, 0, 10);
  metrics::Registry registry;
  auto options = Options();
  options.metrics = &registry;
  const auto source = Open(options);
  Term term{.first = CommitSeq(1), .id = {7}};
  Terms terms;
  source->Claim(StoreMark{"aa", 0, ""});  // its first commit begins the term
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, 10);
  terms.Add(term);
  source->Advise(std::vector<PartitionOffset>{{0, 6}}, {{"aa", 1, "ff", ToHex(term.id)}, terms});
  ASSERT_TRUE(PollUntil(*source, &heard, [&] {
    return registry.Scrape(metrics::Audience::kOperator)
               .find("position=\"group\",topic=\"t\"} 4") != std::string::npos;
  }));
  kafka_.SetDown(true);
  source->Advise(std::vector<PartitionOffset>{{0, 10}}, {{"aa", 5, "ee", ToHex(term.id)}, terms});
  ASSERT_TRUE(PollUntil(*source, &heard, [&] { return !source->health().connected; }));
  kafka_.SetDown(false);
  const Status back = PollUntil(*source, &heard, [&] { return source->health().connected; });
  EXPECT_TRUE(back) << back.error().message;
}

TEST_F(KafkaSourceTest, ATopicThatShrankIsRefused) {
  kafka_.Create("t", 2);
  kafka_.WriteNumbers("t", 0, 0, 10);
  const auto source = Open();
  EXPECT_THAT(
      SeekRefusal(*source, {{0, 11}}),
      AllOf(HasSubstr("topic 't' partition 0: ends at offset 10"), HasSubstr("up to offset 11")));
  EXPECT_THAT(SeekRefusal(*source, {{2, 1}}), HasSubstr("topic 't' partition 2: is not there"));
}

// The offsets fit; the record does not.
TEST_F(KafkaSourceTest, ATopicMadeAnewIsRefused) {
  kafka_.Create("t", 2);
  kafka_.WriteNumbers("t", 0, 0, 10);
  kafka_.WriteNumbers("t", 1, 0, 3);
  std::string identity;
  {
    const auto source = Open();
    ASSERT_TRUE(source->VerifyIdentity(""));
    ASSERT_TRUE(source->Seek({}));
    Heard heard;
    PollRecords(*source, &heard, 13);
    identity = source->Identity();
  }
  const std::vector<PartitionOffset> positions{{0, 8}, {1, 3}};
  {
    const auto same = Open();
    ASSERT_TRUE(same->VerifyIdentity(identity));
    EXPECT_EQ(SeekRefusal(*same, positions), "");
  }
  MockKafka other;
  other.Create("t", 2);
  other.WriteNumbers("t", 0, 500, 20);
  other.WriteNumbers("t", 1, 500, 20);
  auto options = Options();
  options.properties.values[0].second = other.bootstrap();
  const auto anew = Open(options);
  ASSERT_TRUE(anew->VerifyIdentity(identity));
  EXPECT_THAT(SeekRefusal(*anew, positions),
              AllOf(HasSubstr("topic 't' partition 0: the record at offset 9 is not the one"),
                    HasSubstr("made anew")));
}

TEST_F(KafkaSourceTest, AnotherTopicOrSourceIsRefused) {
  kafka_.Create("t", 1);
  const auto source = Open();
  const std::string identity = source->Identity();
  auto options = Options();
  options.topic = "views";
  const auto other = Open(options);
  const Status status = other->VerifyIdentity(identity);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kRefused);
  EXPECT_THAT(status.error().message, AllOf(HasSubstr("'t'"), HasSubstr("'views'")));
  EXPECT_EQ(source->VerifyIdentity(std::string(40, '\1')).error().code, ErrorCode::kRefused);
}

TEST_F(KafkaSourceTest, ATopicThatIsNotThereIsNamedWithItsBrokersWhereTheSourceEnds) {
  kafka_.Create("t", 1);
  rd_kafka_mock_topic_set_error(kafka_.cluster(), "t", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  KafkaSourceOptions options = Options();
  options.until_end = true;
  // A caller that has less time for brokers that do not answer waits for a topic's mistake all the
  // same.
  for (const auto open_timeout : {0ms, 10'000ms}) {
    options.open_timeout = open_timeout;
    const Status status = Open(options)->Seek({});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(status.error().message,
                AllOf(HasSubstr("topic 't': the brokers at " + kafka_.bootstrap()),
                      HasSubstr("make it, or correct source.topic")));
  }
}

TEST_F(KafkaSourceTest, ATopicThatIsNotThereYetIsWaitedForAndReadOnceItIsMade) {
  kafka_.Create("t", 1);
  rd_kafka_mock_topic_set_error(kafka_.cluster(), "t", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  const auto source = Open();
  const Status begun = source->Seek({});
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_FALSE(source->health().connected);
  EXPECT_THAT(source->health().alert, HasSubstr("topic 't': the brokers at "));
  event::RawRecords records;
  for (int i = 0; i < 3; ++i) {
    const auto nothing = source->Poll(10ms, &records);
    ASSERT_TRUE(nothing) << nothing.error().message;
    EXPECT_EQ(records.size(), 0u);
  }
  rd_kafka_mock_topic_set_error(kafka_.cluster(), "t", RD_KAFKA_RESP_ERR_NO_ERROR);
  kafka_.WriteNumbers("t", 0, 0, 5);
  EXPECT_TRUE(test::Eventually("the records come", [&] {
    const auto polled = source->Poll(50ms, &records);
    EXPECT_TRUE(polled) << polled.error().message;
    return records.size() > 0;
  }));
  EXPECT_TRUE(source->health().connected);
  EXPECT_EQ(source->health().alert, "");
}

TEST_F(KafkaSourceTest, SettingsAreCheckedBeforeAnyBrokerIsAsked) {
  auto options = Options();
  options.properties.values = {{"bootstrap.servers", "localhost:1"}};
  const auto without_group = OpenKafkaSource(options, nullptr);
  ASSERT_FALSE(without_group);
  EXPECT_EQ(without_group.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(without_group.error().message, HasSubstr("kafka.group.id: required"));
  options = Options();
  options.properties.values.push_back({"enable.auto.commit", "true"});
  const auto commits = OpenKafkaSource(options, nullptr);
  ASSERT_FALSE(commits);
  EXPECT_THAT(commits.error().message, HasSubstr("kafka.enable.auto.commit"));
}

}  // namespace
}  // namespace tacit::stream
