// A source topic that is compacted while it is read and between runs: offsets have gaps, steps are
// counted by offsets all the same, and what is there is learnt once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "system/kafka/fault.h"

namespace tacit::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// The cleaner looks all the time, and takes all that is not in the newest segment.
Broker& CleaningBroker() {
  static Broker broker({.properties = "log.cleaner.backoff.ms=50\n"
                                      "log.cleaner.dedupe.buffer.size=4194304\n"
                                      "log.initial.task.delay.ms=100\n"
                                      "log.segment.delete.delay.ms=0\n"});
  return broker;
}

class CompactionTest : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    MakeTopic(CleaningBroker(), 2,
              {{"cleanup.policy", "compact"},
               {"segment.bytes", "4096"},
               {"min.cleanable.dirty.ratio", "0.001"},
               {"delete.retention.ms", "0"}});
    Configure();
  }

  // New events in both partitions under `keys` keys in turn, in batches as small as segments want.
  void WriteKeyed(int count, int keys) {
    std::vector<TopicRecord> records;
    for (int i = 0; i < count; ++i) {
      records.push_back(NewEvent(i % 2));
      records.back().key = "k" + std::to_string(random_() % static_cast<uint64_t>(keys));
    }
    Write(records, {{"batch.num.messages", "10"}});
  }
  // The numbers of the events that are in the topic.
  std::set<size_t> EventsThere() const {
    std::set<size_t> there;
    for (const TopicRecord& record : ReadTopic(broker_->bootstrap(), topic_))
      if (const auto event = oracle_.EventIn(record.value.value_or(""))) there.insert(*event);
    return there;
  }
  // Waits until events have gone and no more go. A broker does not tell when its cleaner has done:
  // it has where that many reads in a row, each of them work for the broker, find the same.
  std::set<size_t> AwaitCompaction() const {
    const size_t written = oracle_.size();
    std::set<size_t> there = EventsThere();
    int still = 0;
    EXPECT_TRUE(Eventually("the topic is compacted", [&] {
      std::this_thread::sleep_for(milliseconds(250));
      const std::set<size_t> now = EventsThere();
      still = now.size() == there.size() ? still + 1 : 0;
      there = now;
      return still >= 8 && there.size() < written;
    })) << broker_->Log();
    return there;
  }
  // Waits until the cleaner has taken one of the last `last` events.
  void AwaitTakenOf(size_t last) const {
    EXPECT_TRUE(Eventually("the cleaner takes a record that nobody has read", [&] {
      const std::set<size_t> there = EventsThere();
      const auto left = std::distance(there.lower_bound(oracle_.size() - last), there.end());
      return static_cast<size_t>(left) < last;
    })) << broker_->Log();
  }
  // The reach of each partition's records: from the first to past the last.
  struct Reach {
    uint64_t begin = 0, end = 0;
  };
  std::vector<Reach> Reaches() const {
    std::vector<Reach> reach(2);
    for (const TopicRecord& record : ReadTopic(broker_->bootstrap(), topic_)) {
      Reach& one = reach[static_cast<size_t>(record.partition)];
      if (one.end == 0) one.begin = static_cast<uint64_t>(record.offset);
      one.end = static_cast<uint64_t>(record.offset) + 1;
    }
    return reach;
  }

  std::mt19937_64 random_{5};
};

TEST_F(CompactionTest, BetweenRunsLeavesGapsThatCountAsOffsets) {
  WriteKeyed(600, 40);
  const std::set<size_t> first = AwaitCompaction();
  for (size_t event = 0; event < expected_.size(); ++event)
    expected_[event] = first.contains(event);
  ASSERT_EQ(Learn().exit_code, 0);
  ExpectLearnt();
  const std::vector<Reach> then = Reaches();
  EXPECT_GT(then[0].end + then[1].end, 2 * first.size()) << "hardly any gaps";
  uint64_t steps = 0;
  for (const Reach& reach : then) steps += StepsOf(reach.begin, reach.end);
  ExpectSteps(steps);

  // The last records that were read go too, and tombstones take keys away.
  WriteKeyed(600, 40);
  Write({{.partition = 0, .key = "k1"}, {.partition = 1, .key = "k1"}});
  WriteKeyed(100, 40);
  const std::set<size_t> second = AwaitCompaction();
  for (size_t event = 600; event < expected_.size(); ++event)
    expected_[event] = second.contains(event);
  const Ended ended = Learn();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  ExpectLearnt();
  const std::vector<Reach> now = Reaches();
  for (size_t p = 0; p < 2; ++p) steps += StepsOf(then[p].end, now[p].end);
  ExpectSteps(steps);
}

// Written, compacted, read, killed and read again, all at once. An event that is still there was
// learnt once; one that is gone was learnt once or never.
TEST_F(CompactionTest, WhileItIsReadNothingIsLearntTwiceOrLost) {
  Configure("format: criteo_tsv",
            ", queued.min.messages: 10, queued.max.messages.kbytes: 4, "
            "fetch.message.max.bytes: 1000");
  WriteKeyed(200, 40);
  StartDaemon();
  for (int round = 0; round < 9; ++round) {
    if (round % 3 == 1) daemon_->Suspend();
    if (round % 3 == 2) KillDaemon();
    WriteKeyed(300, 40);
    if (round % 3 != 0) AwaitTakenOf(300);
    if (round % 3 == 1) daemon_->Continue();
    if (round % 3 == 2) StartDaemon();
    if (HasFatalFailure()) return;
  }
  KillDaemon();
  const std::set<size_t> there = AwaitCompaction();
  const Ended ended = Learn();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const std::vector<int> applied = Applied();
  size_t taken = 0;
  for (size_t event = 0; event < applied.size(); ++event) {
    expected_[event] = there.contains(event) ? 1 : std::min(std::max(applied[event], 0), 1);
    taken += expected_[event] == 0;
  }
  EXPECT_THAT(oracle_.Differences(applied, expected_), testing::IsEmpty());
  EXPECT_GT(taken, 0u) << "the cleaner never was before the reader";
  ExpectLedger();
}

}  // namespace
}  // namespace tacit::test
