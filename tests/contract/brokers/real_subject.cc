#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "contract/brokers/subject.h"
#include "support/eventually.h"
#include "system/kafka/broker.h"
#include "system/kafka/topic.h"

namespace tacit::test::subject {
namespace {

// Its cleaner looks all the time, and it ends transactions soon after their time is up.
Broker& TheBroker() {
  static Broker broker({.properties =
                            "log.cleaner.backoff.ms=50\n"
                            "log.cleaner.dedupe.buffer.size=4194304\n"
                            "log.initial.task.delay.ms=100\n"
                            "log.segment.delete.delay.ms=0\n"
                            "transaction.abort.timed.out.transaction.cleanup.interval.ms=500\n"});
  return broker;
}

}  // namespace

std::string Bootstrap() { return TheBroker().bootstrap(); }
std::string Missing() {
  static const std::string missing = BrokerMissing();
  return missing;
}
bool Required() { return BrokerRequired(); }
std::string NewName(const std::string& stem) { return FreshName(stem); }

void CreateTopic(const std::string& name, int32_t partitions,
                 const std::vector<std::pair<std::string, std::string>>& settings) {
  TheBroker().CreateTopic(name, partitions, settings);
}
void GrowTopic(const std::string& name, int32_t partitions) {
  TheBroker().GrowTopic(name, partitions);
}
// The controller answers before the broker knows.
void DeleteTopic(const std::string& name) {
  TheBroker().DeleteTopic(name);
  EXPECT_TRUE(
      Eventually("the topic is gone", [&] { return TopicPartitions(Bootstrap(), name) == 0; }));
}

void CreateCompacted(const std::string& name) {
  CreateTopic(name, 1,
              {{"cleanup.policy", "compact"},
               {"segment.bytes", "4096"},
               {"min.cleanable.dirty.ratio", "0.001"},
               {"delete.retention.ms", "0"}});
}
// A cleaner leaves the newest segment alone, so records behind the others fill some. It takes
// tombstones away in a round of their own.
void Compact(const std::string& name) {
  const std::string filler = "filler" + std::string(1000, '.');
  EXPECT_TRUE(Eventually("the topic is compacted", [&] {
    for (int i = 0; i < 12; ++i)
      WriteTopic(Bootstrap(), name,
                 std::vector<TopicRecord>{{.partition = 0, .key = "filler", .value = filler}});
    std::map<std::string, int> times;
    bool tombstones = false;
    for (const TopicRecord& record : ReadTopic(Bootstrap(), name)) {
      if (record.key != "filler") ++times[*record.key];
      tombstones = tombstones || !record.value;
    }
    return !tombstones &&
           std::ranges::all_of(times, [](const auto& one) { return one.second == 1; });
  })) << TheBroker().Log();
}

void GoAway() { TheBroker().Kill(); }
void ComeBack() { TheBroker().Start(); }
void StandStill() { TheBroker().Suspend(); }
void GoOn() { TheBroker().Continue(); }

}  // namespace tacit::test::subject
