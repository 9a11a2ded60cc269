// tacitd with periods over all partitions of a topic: how many steps it takes, of what, and what
// they release and cost. The daemon is without noise.
#include "system/kafka/topic_periods.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <random>

namespace tacit::test {
namespace {

using testing::HasSubstr;

TEST_F(TopicPeriodsTest, HaveTheirSizeOverAllPartitions) {
  const std::string topic = NewTopic(9000);
  const std::vector<std::string> command{
      TACITD_CRASH, "--config",
      Write("size", fmt::format("topic: {}, periods: topic", topic), Learner("ctr", 2000)),
      "--until-end"};
  Ended ended = test::Run(command);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  // A short opening, four whole periods, and the rest. Cut partition by partition there are seven:
  // 5400 + 2700 + 900 records.
  EXPECT_EQ(Outcome("size").steps, 6u);
  EXPECT_THAT(ended.out, HasSubstr(" 9,000 ")) << "events";
  // A whole period, and the rest.
  Add(topic, 3000);
  ended = test::Run(command);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(Outcome("size").steps, 8u);
  EXPECT_THAT(ended.out, HasSubstr(" 3,000 ")) << "events";
}

TEST_F(TopicPeriodsTest, AreTheSameStoreWithAnyThreads) {
  const std::string source = fmt::format("topic: {}, periods: topic", NewTopic(12'000));
  Learn("plain", source);
  const LinearOutcome plain = Outcome("plain");
  EXPECT_GT(plain.rows.size(), 50u);
  for (const auto& [decoders, workers] : {std::pair(1, 1), {1, 2}, {4, 4}}) {
    SCOPED_TRACE(fmt::format("decode_threads {}, workers {}", decoders, workers));
    const std::string name = fmt::format("decoders-{}-workers-{}", decoders, workers);
    Learn(name, source + fmt::format(", decode_threads: {}", decoders), workers);
    ExpectSame(Outcome(name), plain);
  }
}

// A record is in one step, however periods are cut, and pays for that.
TEST_F(TopicPeriodsTest, CostAsMuchAsPeriodsOfPartitions) {
  const std::string topic = NewTopic(12'000);
  Learn("topic", fmt::format("topic: {}, periods: topic", topic));
  Learn("partition", fmt::format("topic: {}, periods: partition", topic));
  const auto whole = Ledger("topic"), parts = Ledger("partition");
  ASSERT_EQ(whole.size(), 1u);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(whole[0].charge, parts[0].charge);
  EXPECT_EQ(whole[0].worst, parts[0].worst);
  EXPECT_EQ(whole[0].epsilon, parts[0].epsilon);
  EXPECT_LT(whole[0].steps, parts[0].steps) << "each partition ends with a short period";
}

// A store goes on where each partition was left, however its periods were cut before.
TEST_F(TopicPeriodsTest, ChangedInALivingStoreHaveEachRecordOnce) {
  Learn("plain", fmt::format("topic: {}, periods: topic", NewTopic(9000)));
  const auto plain = Ledger("plain");
  for (const bool topic_first : {true, false}) {
    const std::string topic = NewTopic(9000), name = topic_first ? "topic" : "partition";
    bool whole = topic_first;
    uint64_t steps = 0;
    for (const auto& [more, events] :
         {std::pair(0, " 9,000 "), {2500, " 2,500 "}, {3000, " 3,000 "}}) {
      SCOPED_TRACE(fmt::format("{} first,{}records", name, events));
      if (more > 0) Add(topic, more);
      const Ended ended = test::Run(
          {TACITD_CRASH, "--config",
           Write(name, fmt::format("topic: {}, periods: {}", topic, whole ? "topic" : "partition"),
                 Learner("ctr", 700)),
           "--until-end"});
      ASSERT_EQ(ended.exit_code, 0) << ended.err;
      EXPECT_THAT(ended.out, HasSubstr(events)) << "events";
      const auto ledger = Ledger(name);
      ASSERT_EQ(ledger.size(), 1u);
      EXPECT_EQ(ledger[0].worst, plain[0].worst) << "a record is in two steps";
      EXPECT_EQ(ledger[0].epsilon, plain[0].epsilon);
      EXPECT_GT(ledger[0].steps, steps);
      steps = ledger[0].steps;
      whole = !whole;
    }
  }
}

TEST_F(TopicPeriodsTest, KilledAnywhereEndWhereAnUninterruptedRunEnds) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const std::string source = fmt::format("topic: {}, periods: topic", NewTopic(12'000));
  const auto begun = std::chrono::steady_clock::now();
  Learn("whole", source);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun);
  const LinearOutcome whole = Outcome("whole");
  const auto ledger = Ledger("whole");
  Kills kills;
  for (int life = 0; life < 3 || kills.all < 6; ++life) {
    ASSERT_LT(life, 30) << "the daemon ends before it can be killed";
    const int workers = 1 << life % 3;
    SCOPED_TRACE(fmt::format("workers {}", workers));
    const std::string name = fmt::format("killed-{}", life);
    Write(name, source, Learner("ctr", 700), workers);
    RunWithKills(dir_, name, took, random, &kills);
    if (HasFatalFailure()) return;
    ExpectSame(Outcome(name), whole);
    const auto entries = Ledger(name);
    ASSERT_EQ(entries.size(), ledger.size());
    EXPECT_EQ(entries[0].steps, ledger[0].steps);
    EXPECT_EQ(entries[0].worst, ledger[0].worst);
  }
}

// Learners of one topic share its periods, and each is the learner that it would be alone.
TEST_F(TopicPeriodsTest, AreReadOnceForAllLearners) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const std::string source = fmt::format("topic: {}, periods: topic", NewTopic(12'000));
  const std::string learners[] = {Learner("more", 700),
                                  Learner("fewer", 700, "linear", "event", 6)};
  std::vector<LinearOutcome> alone;
  for (const std::string& learner : learners) {
    const std::string name = fmt::format("alone-{}", alone.size());
    Learn(name, source, 1, learner);
    alone.push_back(Outcome(name));
  }
  EXPECT_NE(alone[0].rows, alone[1].rows);
  const auto begun = std::chrono::steady_clock::now();
  Learn("both", source, 1, learners[0] + learners[1]);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun);
  for (uint16_t learner = 0; learner < 2; ++learner)
    ExpectSame(Outcome("both", learner), alone[learner]);
  // A kill may come between the steps that two learners take of one period.
  Kills kills;
  for (int life = 0; kills.all < 6; ++life) {
    ASSERT_LT(life, 30) << "the daemon ends before it can be killed";
    const std::string name = fmt::format("killed-{}", life);
    Write(name, source, learners[0] + learners[1], 2);
    RunWithKills(dir_, name, took, random, &kills);
    if (HasFatalFailure()) return;
    for (uint16_t learner = 0; learner < 2; ++learner)
      ExpectSame(Outcome(name, learner), alone[learner]);
  }
}

// A new learner learns the topic from its beginning, while the other one waits where it is.
TEST_F(TopicPeriodsTest, ALearnerThatIsAddedCatchesUp) {
  const std::string topic = NewTopic(9000);
  const std::string source = fmt::format("topic: {}, periods: topic", topic);
  const std::string old = Learner("old", 700), added = Learner("added", 700);
  Learn("alone", source, 1, old);
  Learn("both", source, 1, old);
  Learn("both", source, 1, old + added);
  ExpectSame(Outcome("both", 0), Outcome("alone"));
  ExpectSame(Outcome("both", 1), Outcome("alone"));
  Add(topic, 3000);
  Learn("alone", source, 1, old);
  Learn("both", source, 1, old + added);
  ExpectSame(Outcome("both", 0), Outcome("alone"));
  ExpectSame(Outcome("both", 1), Outcome("alone"));
}

// A period that can hardly be read is a window that halts. Nothing of it is released until an
// operator says so; then it is learnt as if nothing had been. A kill changes nothing about that.
TEST_F(TopicPeriodsTest, AHaltReleasesNothingOfItsPeriod) {
  const std::string plain = fmt::format("topic: {}, periods: topic", NewTopic(12'000, 5000, 6500));
  Learn("plain", plain);
  const LinearOutcome whole = Outcome("plain");
  const std::string source = plain + ", halt_above: {share: 0.5, epsilon: 1, delta: 1.0e-6}";
  std::vector<uint64_t> halts[2];
  for (const bool killed : {false, true}) {
    const std::string name = killed ? "killed" : "halts";
    Write(name, source, Learner("ctr", 700));
    std::vector<std::string> past;
    int kills = 0;
    for (int life = 0;; ++life) {
      ASSERT_LT(life, 100);
      std::vector<std::string> command = CrashCommand(dir_, name), environment;
      command.insert(command.end(), past.begin(), past.end());
      if (killed && life < 30)
        environment = {fmt::format("TACIT_TEST_CRASH_AT=commit.{}:{}",
                                   life % 2 == 0 ? "begin" : "published", 1 + life % 3)};
      const Ended ended = test::Run(command, environment);
      if (ended.exit_code == 0) break;
      kills += ended.signal == SIGKILL ? 1 : 0;
      if (ended.signal == SIGKILL) continue;
      ASSERT_EQ(ended.exit_code, 5) << ended.err;
      EXPECT_THAT(ended.err, HasSubstr("more than 50 % of its records"));
      const uint64_t window = WindowOf(ended.err);
      EXPECT_EQ(window, Outcome(name).steps + 1) << "each period before it is a window, and learnt";
      halts[killed].push_back(window);
      if (!killed) {
        EXPECT_EQ(test::Run(CrashCommand(dir_, name)).exit_code, 5) << "a start does not go on";
      }
      past = {"--past-halt", std::to_string(window)};
    }
    EXPECT_EQ(kills > 3, killed);
    ExpectSame(Outcome(name), whole);
    for (const privacy::LedgerEntry& entry : Ledger(name))
      if (entry.learner == "source.halt_above") {
        EXPECT_LE(entry.epsilon, 1 + 1e-6) << "a record is in one window";
      }
  }
  EXPECT_GE(halts[0].size(), 1u);
  EXPECT_EQ(halts[1], halts[0]);
}

// The figures of a window are those of all records of its periods.
TEST_F(TopicPeriodsTest, PrivateQualityCountsEachRecordOnce) {
  const std::string source = fmt::format("topic: {}, periods: topic", NewTopic(9000));
  const std::string learner =
      Learner("ctr", 700) + "    quality: {steps: 4, bins: 8, epsilon: 1, delta: 1.0e-6}\n";
  std::optional<ReleasedScores> first;
  for (const int workers : {1, 4}) {
    const std::string name = fmt::format("quality-{}", workers);
    Learn(name, source, workers, learner);
    auto config = config::Load(dir_ / (name + ".yaml"), {});
    auto assembly = wiring::Assemble(*config);
    auto store = store::Store::Open(wiring::MakeStoreOptions(*assembly));
    ASSERT_TRUE(store) << store.error().message;
    const auto released = (*store)->State(assembly->qualities[0].index).released;
    ASSERT_NE(released, nullptr);
    const auto scores = *ReleasedScores::Decode(*released);
    const uint64_t steps = (*store)->Latest()->learners()[0].steps;
    EXPECT_EQ(scores.step_end, steps / 4 * 4);
    EXPECT_EQ(scores.all.windows, steps / 4);
    double counted = 0;
    for (const double count : scores.all.misses) counted += count;
    for (const double count : scores.all.clicks) counted += count;
    // The opening, then periods of 700.
    const uint64_t opening = assembly->learners[0].model->OpeningRecords();
    EXPECT_EQ(counted, static_cast<double>(opening + 700 * (scores.step_end - 1)));
    if (!first) first = scores;
    EXPECT_EQ(scores.all.clicks, first->all.clicks);
    EXPECT_EQ(scores.all.misses, first->all.misses);
  }
}

TEST_F(TopicPeriodsTest, RefuseByNameWhatTheyDoNotFit) {
  struct Case {
    std::string source, learners;
    std::vector<std::string> says;
  };
  // Copies are dropped without noise alone.
  const std::string without_noise =
      "  - {id: ctr, model: {kind: linear}, mechanism: {kind: none},\n"
      "     participation: {mode: once, batch: 2000},\n"
      "     privacy: {unit: event, epsilon: .inf, delta: 1.0e-6}}\n";
  const Case cases[] = {
      {"periods: topic", Learner("ctr", 2000, "pctr"), {"'ctr'", "linear"}},
      {"periods: topic", Learner("a", 2000) + Learner("b", 3000), {"'a'", "'b'", "2000", "3000"}},
      {"periods: topic", Learner("a", 2000) + Learner("b", 2000, "pctr"), {"'b'", "linear"}},
      {"periods: topic", Learner("ctr", 2000, "linear", "user"), {"'ctr'", "unit event"}},
      {"periods: topic, dedupe: {window: 100}", without_noise, {"source.dedupe.window"}},
      {"periods: topic, halt_above: {share: 0.5, epsilon: 1, delta: 1.0e-6, window: 1000}",
       Learner("ctr", 2000),
       {"source.halt_above.window"}},
      {"periods: topic, halt_above: {share: 0.5, epsilon: 0.01, delta: 1.0e-6}",
       Learner("ctr", 2000),
       {"source.halt_above", "participation.batch must be at least"}},
      {"periods: all", Learner("ctr", 2000), {"source.periods", "partition", "topic"}}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.source + "\n" + one.learners);
    const Ended ended =
        test::Run({TACITD_CRASH, "--config",
                   Write("refused", "topic: t, " + one.source, one.learners), "--check-config"});
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    EXPECT_THAT(ended.err, HasSubstr("source.periods"));
    for (const std::string& word : one.says) EXPECT_THAT(ended.err, HasSubstr(word));
  }
}

}  // namespace
}  // namespace tacit::test
