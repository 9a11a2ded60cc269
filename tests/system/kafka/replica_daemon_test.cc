// A trainer and two replicas with a real broker between them, one of which joins during training.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "http/client.h"
#include "support/eventually.h"
#include "support/process.h"
#include "system/kafka/broker.h"
#include "system/kafka/topic.h"
#include "system/kafka/topic_config.h"

namespace tacit::test {
namespace {

using testing::HasSubstr;

class ReplicaDaemonTest : public testing::Test {
 protected:
  void SetUp() override {
    TACIT_NEED_BROKER(kDefaultVersion);
    topic_ = FreshName("events");
    model_ = FreshName("model");
    SharedBroker().CreateTopic(topic_, 1);
    CreateModel();
    config_ = WriteTopicConfig(dir_, topic_, SharedBroker().bootstrap());
  }
  // Compaction as often as the broker can.
  void CreateModel() const {
    SharedBroker().CreateTopic(model_, 4,
                               {{"cleanup.policy", "compact"},
                                {"segment.ms", "1000"},
                                {"min.cleanable.dirty.ratio", "0.01"},
                                {"max.compaction.lag.ms", "1000"}});
  }
  void WriteEvents(int count, const std::string& value = "v") {
    std::vector<TopicRecord> records;
    for (int i = 0; i < count; ++i, ++written_)
      records.push_back(
          {.partition = 0,
           .value = fmt::format(R"({{"label": {}, "features": {{"n": {}, "c": "{}{}"}}}})",
                                written_ % 2, written_ % 100, value, written_ % 7)});
    WriteTopic(SharedBroker().bootstrap(), topic_, records);
  }
  std::string Url(const std::string& name) const { return "unix:" + (dir_ / (name + ".socket")); }
  std::unique_ptr<Process> Start(const std::string& name, bool replica) const {
    std::vector<std::string> command = {TACITD,
                                        "--config",
                                        config_,
                                        "--set",
                                        "feed.topic=" + model_,
                                        "--set",
                                        "feed.interval_ms=50",
                                        "--set",
                                        "feed.max_age_ms=600000",
                                        "--set",
                                        "serve.listen=" + Url(name),
                                        "--set",
                                        "serve.operator_listen=" + Url(name) + "-operators",
                                        "--set",
                                        "store.path=" + (dir_ / name)};
    if (replica) command.emplace_back("--replica");
    return std::make_unique<Process>(command);
  }
  std::string Ask(const std::string& name, const std::string& path,
                  const std::string& body = "") const {
    const auto answer = http::Fetch(Url(name) + (path == "/v1/ledger" ? "-operators:" : ":") + path,
                                    body.empty() ? "GET" : "POST", body, kPatience);
    return answer ? answer->body : "";
  }
  std::string Score(const std::string& name, int n) const {
    return Ask(name, "/v1/score",
               fmt::format(R"({{"learner":"ctr","rows":[{{"features":{{"n":{},"c":"v{}"}}}}]}})", n,
                           n % 9));
  }
  double Metric(const std::string& name, const std::string& metric) const {
    const std::string page = "\n" + Ask(name, "/metrics");
    const size_t at = page.find("\n" + metric + " ");
    return at == std::string::npos ? -1 : std::stod(page.substr(at + metric.size() + 2));
  }
  // The answer's version, so that answers of one version can be compared.
  static std::string VersionOf(const std::string& answer) {
    const size_t at = answer.find("\"version\":");
    return at == std::string::npos ? "" : answer.substr(at, answer.find(',', at) - at);
  }

  TempDir dir_;
  std::string topic_, model_, config_;
  int written_ = 0;
};

TEST_F(ReplicaDaemonTest, ReplicasAnswerAsTheTrainerAtEachVersionWhileItLearns) {
  const auto trainer = Start("trainer", false);
  auto first = Start("first", true);
  std::unique_ptr<Process> second;
  std::map<int, std::string> before;  // answers of the round before
  int compared = 0, other_versions = 0;
  for (int round = 0; round < 12; ++round) {
    WriteEvents(160);
    if (round == 5) second = Start("second", true);
    for (int n = 0; n < 5; ++n) {
      for (const char* const name : {"first", "second"}) {
        if (std::string(name) == "second" && !second) continue;
        std::string expected, is;
        ASSERT_TRUE(Eventually("trainer and replica answer at one version", [&] {
          expected = Score("trainer", n);
          is = Score(name, n);
          return !VersionOf(is).empty() && VersionOf(is) == VersionOf(expected);
        }));
        EXPECT_EQ(is, expected) << name;
        ++compared;
        if (std::exchange(before[n], is) != is) ++other_versions;
      }
    }
  }
  double version = 0;
  ASSERT_TRUE(Eventually("all is published, and both replicas have it",
                         [&] {
                           version = Metric("trainer", "tacit_commit_version");
                           return version > 0 &&
                                  Metric("trainer", "tacit_feed_published_version") == version &&
                                  Metric("first", "tacit_replica_version") == version &&
                                  Metric("second", "tacit_replica_version") == version;
                         }))
      << trainer->Err() << first->Err() << (second ? second->Err() : "");
  // On a busy machine the last events may still be to come, and a version with them.
  const auto at_one_version = [&](const char* what, const auto& ask) {
    std::string expected, is, other;
    EXPECT_TRUE(Eventually(what,
                           [&] {
                             expected = ask("trainer"), is = ask("first"), other = ask("second");
                             return is == expected && other == expected;
                           }))
        << expected << is << other;
  };
  for (int n = 0; n < 20; ++n) {
    at_one_version("both answer as the trainer", [&](const char* name) { return Score(name, n); });
    ++compared;
  }
  at_one_version("both have the trainer's ledger",
                 [&](const char* name) { return Ask(name, "/v1/ledger"); });
  EXPECT_GT(compared, 20);
  EXPECT_GT(other_versions, 0);  // an answer of another version would have been seen
  RecordProperty("compared", compared);
  // A replica that is killed goes on from its store, without the trainer.
  trainer->Signal(SIGKILL);
  trainer->Wait();
  const std::string ledger = Ask("first", "/v1/ledger");
  first->Signal(SIGKILL);
  first->Wait();
  first = Start("first", true);
  EXPECT_TRUE(Eventually("the replica is back", [&] {
    return Ask("first", "/v1/ledger") == ledger;
  })) << first->Err();
  EXPECT_THAT(Ask("first", "/readyz"), HasSubstr("ready"));
}

// The trainer runs on, and would publish what has changed alone.
TEST_F(ReplicaDaemonTest, ATopicMadeAnewUnderARunningTrainerGetsEverything) {
  const auto trainer = Start("trainer", false);
  const auto first = Start("first", true);
  WriteEvents(160, "w");  // rows that nothing changes later
  const auto all_show = [&](const std::string& name) {
    return Eventually(name + " has all", [&] {
      const double version = Metric("trainer", "tacit_commit_version");
      return version > 0 &&
             Metric("trainer", "tacit_steps_committed_total{learner=\"ctr\"}") == written_ / 16 &&
             Metric("trainer", "tacit_feed_published_version") == version &&
             Metric(name, "tacit_replica_version") == version;
    });
  };
  ASSERT_TRUE(all_show("first")) << trainer->Err() << first->Err();
  const std::string before = Ask("first", "/v1/ledger");
  SharedBroker().DeleteTopic(model_);
  CreateModel();
  WriteEvents(160);
  EXPECT_TRUE(Eventually("the replica refuses the topic", [&] {
    return first->Err().find("made anew") != std::string::npos;
  })) << first->Err();
  EXPECT_EQ(Ask("first", "/v1/ledger"), before);
  EXPECT_THAT(Ask("first", "/readyz"), HasSubstr("degraded: the feed is refused"));
  const auto second = Start("second", true);
  ASSERT_TRUE(all_show("second")) << trainer->Err() << second->Err();
  for (int n = 0; n < 30; ++n) {
    const std::string rows = fmt::format(
        R"({{"learner":"ctr","rows":[{{"features":{{"n":{},"c":"w{}"}}}},{{"features":{{"n":1,"c":"v{}"}}}}]}})",
        n, n % 7, n % 7);
    EXPECT_EQ(Ask("second", "/v1/score", rows), Ask("trainer", "/v1/score", rows));
  }
}

TEST_F(ReplicaDaemonTest, ATopicThatHasGrownIsRefusedByAllAndServedOn) {
  const auto trainer = Start("trainer", false);
  const auto first = Start("first", true);
  WriteEvents(160);
  ASSERT_TRUE(Eventually("the replica serves",
                         [&] { return Metric("first", "tacit_replica_version") > 0; }))
      << trainer->Err() << first->Err();
  SharedBroker().GrowTopic(model_, 5);
  EXPECT_TRUE(Eventually("the replica refuses the topic", [&] {
    return first->Err().find("has 5 partitions now, and had 4") != std::string::npos;
  })) << first->Err();
  EXPECT_THAT(Ask("first", "/readyz"), HasSubstr("degraded: the feed is refused"));
  WriteEvents(160);
  EXPECT_TRUE(Eventually("the trainer refuses it too", [&] {
    return trainer->Err().find("has 5 partitions, and its marks say 4") != std::string::npos;
  })) << trainer->Err();
  EXPECT_THAT(Score("first", 1), HasSubstr("\"scores\""));
}

// The topic would lose rows.
TEST_F(ReplicaDaemonTest, ATopicThatIsNotCompactedIsRefusedByName) {
  const std::string deleted = FreshName("model");
  SharedBroker().CreateTopic(deleted, 2, {{"cleanup.policy", "delete"}});
  model_ = deleted;
  const auto replica = Start("replica", true);
  EXPECT_TRUE(Eventually("the replica refuses the topic", [&] {
    return replica->Err().find("its cleanup.policy is 'delete' and must be compact alone") !=
           std::string::npos;
  })) << replica->Err();
  EXPECT_THAT(Ask("replica", "/readyz"), HasSubstr("no committed model yet"));
}

}  // namespace
}  // namespace tacit::test
