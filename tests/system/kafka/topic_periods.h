#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "store/store.h"
#include "support/process.h"
#include "system/crash/kills.h"
#include "system/crash/linear_outcome.h"
#include "system/kafka/broker.h"
#include "system/kafka/topic.h"

namespace tacit::test {

// Daemons without noise that learn a linear model from a topic in periods of all its partitions.
class TopicPeriodsTest : public testing::Test {
 protected:
  void SetUp() override { TACIT_NEED_BROKER(kDefaultVersion); }

  // A topic of three unequal partitions, in which times repeat and go back.
  static std::string NewTopic(int clicks, int bad_from = 0, int bad_to = 0) {
    const std::string topic = FreshName("periods");
    SharedBroker().CreateTopic(topic, 3, {{"retention.ms", "-1"}});  // its times are old
    Add(topic, clicks, bad_from, bad_to);
    return topic;
  }
  // Clicks [bad_from, bad_to) cannot be learnt from: the label has another name.
  static void Add(const std::string& topic, int clicks, int bad_from = 0, int bad_to = 0) {
    std::mt19937_64 random(7);
    std::vector<TopicRecord> records;
    for (int i = 0; i < clicks; ++i) {
      const auto seen = random() % 100, colour = random() % 12;
      records.push_back(
          {.partition = i % 10 < 6   ? 0
                        : i % 10 < 9 ? 1
                                     : 2,
           .value = fmt::format(R"({{"{}":{},"features":{{"x":{},"c":"{}","many":"{}"}}}})",
                                i >= bad_from && i < bad_to ? "renamed" : "label",
                                random() % 20 < colour + seen / 20 ? 1 : 0, seen, colour,
                                random() % 5000),
           .timestamp_ms = 1'700'000'000'000 + i / 4 + static_cast<int64_t>(random() % 200)});
    }
    WriteTopic(SharedBroker().bootstrap(), topic, records);
  }

  // Writes NAME.yaml, whose store is NAME, and returns its path.
  std::string Write(const std::string& name, const std::string& source, const std::string& learners,
                    int workers = 1, const std::string& more = "") const {
    const std::string path = dir_ / (name + ".yaml");
    WriteFile(path, fmt::format("source: {{kind: kafka, format: json, "
                                "json: {{user: /user, event_id: /id}}, {}}}\n"
                                "kafka: {{bootstrap.servers: \"{}\", group.id: {}}}\n"
                                "schema: {{features: [{{name: x, kind: dense}},\n"
                                "  {{name: c, kind: categorical, buckets: 40}},\n"
                                "  {{name: many, kind: categorical, buckets: 2000}}]}}\n"
                                "learners:\n{}"
                                "training: {{idle_priority: false, workers: {}}}\n"
                                "serve: {{listen: \"\", operator_listen: \"unix:{}\"}}\n"
                                "store: {{path: \"{}\", commit_interval_ms: 5}}\n{}",
                                source, SharedBroker().bootstrap(), FreshName(name), learners,
                                workers, dir_ / (name + ".operator"), dir_ / name, more));
    return path;
  }
  // A learner of noised sums; one of another kind, or of users, has no noise.
  static std::string Learner(const std::string& id, int batch, const std::string& kind = "linear",
                             const std::string& unit = "event", int deviations = 3) {
    const bool sums = kind == "linear" && unit == "event";
    return fmt::format(
        "  - id: {}\n"
        "    model: {{kind: {}}}\n"
        "    mechanism: {}\n"
        "    participation: {{mode: once, batch: {}{}}}\n"
        "    privacy: {{unit: {}, epsilon: {}, delta: 1.0e-6}}\n",
        id, kind,
        sums ? fmt::format("{{kind: sums, whole_columns: 100, deviations: {}}}", deviations)
             : "{kind: none}",
        batch, unit == "user" ? ", max_participations: 3" : "", unit, sums ? "50" : ".inf");
  }
  // Writes NAME.yaml, and learns the topic to its end.
  void Learn(const std::string& name, const std::string& source, int workers = 1,
             const std::string& learners = Learner("ctr", 700)) const {
    Write(name, source, learners, workers);
    const Ended ended = test::Run(CrashCommand(dir_, name));
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
  }

  LinearOutcome Outcome(const std::string& name, uint16_t learner = 0) const {
    return ReadLinear(dir_ / (name + ".yaml"), learner);
  }
  std::vector<privacy::LedgerEntry> Ledger(const std::string& name) const {
    auto opened = store::OpenReadOnly(dir_ / name, dir_ / (name + ".witness"), {});
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(opened->entries) : std::vector<privacy::LedgerEntry>();
  }
  // The number of the window at which a daemon said that it halted.
  static uint64_t WindowOf(const std::string& err) {
    constexpr std::string_view kTold = "--past-halt ";
    const size_t at = err.find(kTold);
    return at == std::string::npos ? 0 : std::stoull(err.substr(at + kTold.size()));
  }
  static void ExpectSame(const LinearOutcome& a, const LinearOutcome& b) {
    EXPECT_EQ(a.rows, b.rows);
    EXPECT_EQ(a.released, b.released);
    EXPECT_EQ(a.position, b.position);
    EXPECT_EQ(a.steps, b.steps);
    EXPECT_EQ(a.epsilon, b.epsilon);
  }

  TempDir dir_;
};

}  // namespace tacit::test
