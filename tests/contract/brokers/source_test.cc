// The source of the stream room, and what the mock has no notion of.
#include "stream/kafka/source.h"

#include <chrono>
#include <functional>
#include <map>

#include "contract/brokers/rig.h"

namespace tacit::test {
namespace {

using namespace std::chrono_literals;
using stream::PartitionOffset;
using stream::PollOutcome;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Steady = std::chrono::steady_clock;

stream::KafkaSourceOptions Options(const std::string& topic) {
  stream::KafkaSourceOptions options;
  options.properties.values = {{"bootstrap.servers", subject::Bootstrap()}, {"group.id", topic}};
  options.topic = topic;
  options.refresh = 200ms;
  options.open_timeout = kPatience;  // a slow opening is not left to Poll
  return options;
}

std::unique_ptr<stream::Source> Open(stream::KafkaSourceOptions options) {
  auto source = stream::OpenKafkaSource(std::move(options), nullptr);
  EXPECT_TRUE(source) << source.error().message;
  return source ? std::move(*source) : nullptr;
}

struct Heard {
  std::map<int32_t, std::vector<std::string>> values;
  std::map<int32_t, std::vector<uint64_t>> offsets;
  std::vector<event::PublicCut> cuts;
  size_t records = 0;
};

// Polls until it is done.
Status PollUntil(stream::Source& source, Heard* heard, const std::function<bool()>& done) {
  const auto deadline = Steady::now() + kPatience;
  while (!done()) {
    if (Steady::now() > deadline) return Fail(ErrorCode::kInternal, "it took too long");
    event::RawRecords frame;
    TACIT_ASSIGN(const PollOutcome outcome, source.Poll(50ms, &frame));
    if (outcome != PollOutcome::kRecords) continue;
    for (size_t i = 0; i < frame.size(); ++i) {
      heard->values[frame.partition].emplace_back(frame[i]);
      heard->offsets[frame.partition].push_back(frame.first_offset + i);
    }
    for (const auto& cut : frame.cuts) heard->cuts.push_back(cut);
    heard->records += frame.size();
  }
  return {};
}

void PollRecords(stream::Source& source, Heard* heard, size_t records) {
  const Status status = PollUntil(source, heard, [&] { return heard->records >= records; });
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(heard->records, records);
}

class SourceContract : public BrokersContract {
 protected:
  void WriteNumbers(int32_t partition, int first, int count) const {
    std::vector<std::string> values;
    for (int i = first; i < first + count; ++i) values.push_back(std::to_string(i));
    Write(partition, values);
  }
};

TEST_F(SourceContract, PartitionsThatComeLaterAreReadFromTheirBeginning) {
  Create(1);
  WriteNumbers(0, 0, 10);
  const auto source = Open(Options(topic_));
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, 10);
  subject::GrowTopic(topic_, 3);
  WriteNumbers(2, 100, 10);
  WriteNumbers(0, 10, 10);
  PollRecords(*source, &heard, 30);
  EXPECT_THAT(source->partitions(), ElementsAre(0, 1, 2));
  EXPECT_EQ(heard.values[2].front(), "100");
  // And grown while no daemon was there.
  subject::GrowTopic(topic_, 4);
  WriteNumbers(3, 200, 10);
  const auto next = Open(Options(topic_));
  ASSERT_TRUE(next->VerifyIdentity(source->Identity()));
  ASSERT_TRUE(next->Seek(std::vector<PartitionOffset>{{0, 20}, {2, 10}}));
  Heard later;
  PollRecords(*next, &later, 10);
  EXPECT_EQ(later.values[3].front(), "200");
}

// Markers of transactions take offsets; what was aborted is not there.
TEST_F(SourceContract, OnlyWhatWasCommittedIsReadAndHolesAreHoles) {
  Create(1);
  const Client producer = Transactional(topic_);
  std::vector<std::string> committed;
  for (int round = 0; round < 6; ++round) {
    ASSERT_EQ(rd_kafka_begin_transaction(producer.get()), nullptr);
    for (int i = 0; i < 3; ++i) {
      const std::string value = std::to_string(round * 3 + i);
      ASSERT_EQ(Produce(producer, 0, value), RD_KAFKA_RESP_ERR_NO_ERROR);
      if (round % 2 == 0) committed.push_back(value);
    }
    if (round % 2 == 0) {
      ASSERT_EQ(rd_kafka_commit_transaction(producer.get(), 60'000), nullptr);
    } else {
      ASSERT_EQ(rd_kafka_flush(producer.get(), 60'000), RD_KAFKA_RESP_ERR_NO_ERROR);
      ASSERT_EQ(rd_kafka_abort_transaction(producer.get(), 60'000), nullptr);
    }
  }
  auto options = Options(topic_);
  options.until_end = true;
  const auto source = Open(options);
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, committed.size());
  EXPECT_EQ(heard.values[0], committed);
  EXPECT_THAT(heard.offsets[0], ElementsAre(0, 1, 2, 8, 9, 10, 16, 17, 18));
  event::RawRecords none;
  EXPECT_TRUE(Eventually("the source has ended, with the mark of an aborted transaction", [&] {
    const auto outcome = source->Poll(50ms, &none);
    EXPECT_TRUE(outcome);
    return !outcome || *outcome == PollOutcome::kEnd;
  }));
}

TEST_F(SourceContract, WhatRetentionTookIsRefusedOrCut) {
  Create(1);
  WriteNumbers(0, 0, 100);
  ASSERT_TRUE(DeleteBefore({{0, 40}}));
  const std::vector<PartitionOffset> at{{0, 25}};
  const Status refused = Open(Options(topic_))->Seek(at);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr(topic_), HasSubstr("partition 0: offsets 25 to 39 are gone")));
  auto options = Options(topic_);
  options.go_on_when_lost = true;
  const auto source = Open(options);
  ASSERT_TRUE(source->Seek(at));
  Heard heard;
  PollRecords(*source, &heard, 60);
  EXPECT_EQ(heard.values[0].front(), "40");
  ASSERT_EQ(heard.cuts.size(), 1u);
  EXPECT_EQ(heard.cuts[0].kind, event::PublicCut::Kind::kLost);
  EXPECT_EQ(heard.cuts[0].offset, 40u);
}

TEST_F(SourceContract, ATopicMadeAnewUnderAReaderIsRefused) {
  Create(1);
  WriteNumbers(0, 0, 20);
  const auto source = Open(Options(topic_));
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  PollRecords(*source, &heard, 20);
  subject::DeleteTopic(topic_);
  const Status gone = PollUntil(*source, &heard, [&] { return !source->health().connected; });
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_THAT(source->health().alert, HasSubstr(topic_));
  Create(1);
  WriteNumbers(0, 1000, 50);
  const Status refused = PollUntil(*source, &heard, [] { return false; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused) << refused.error().message;
  EXPECT_EQ(heard.records, 20u);
}

// Killed, then stopped in mid-air with its connections open: each time it is read again after its
// return, and nothing is missing or there twice.
TEST_F(SourceContract, ABrokerThatReturnsIsReadAgain) {
  Create(2);
  const auto source = Open(Options(topic_));
  ASSERT_TRUE(source->Seek({}));
  Heard heard;
  int written = 0;
  const auto write = [&] {
    for (int32_t p = 0; p < 2; ++p) WriteNumbers(p, written, 50);
    written += 50;
  };
  write();
  PollRecords(*source, &heard, 100);
  for (const bool kill : {true, false}) {
    SCOPED_TRACE(kill ? "killed" : "suspended");
    kill ? subject::GoAway() : subject::StandStill();
    const Status gone = PollUntil(*source, &heard, [&] { return !source->health().connected; });
    ASSERT_TRUE(gone) << gone.error().message;
    kill ? subject::ComeBack() : subject::GoOn();
    const Status back = PollUntil(*source, &heard, [&] { return source->health().connected; });
    ASSERT_TRUE(back) << back.error().message;
    write();
    PollRecords(*source, &heard, static_cast<size_t>(written) * 2);
  }
  for (int32_t p = 0; p < 2; ++p)
    for (int i = 0; i < written; ++i)
      ASSERT_EQ(heard.values[p][static_cast<size_t>(i)], std::to_string(i));
}

}  // namespace
}  // namespace tacit::test
