// A trainer and workers over a real broker: no matter who sums, and who dies, the store is that of
// a trainer without workers. The daemons are without noise.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <set>

#include "base/text.h"
#include "support/feed_forger.h"
#include "system/kafka/workers_rig.h"

namespace tacit::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ShownWorkersTest : public WorkersTest {
 protected:
  // An operator sees the last plan and the workers that are there, and what cannot be read.
  void ExpectShown(const std::string& name, int workers) const {
    const auto show = [&](const std::string& override) {
      return test::Run(
          {TACIT, "workers", "show", "--config", dir_ / (name + ".yaml"), "--set", override});
    };
    const Ended shown = show("workers.key_file=" + KeyFile());
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_THAT(shown.out, testing::StartsWith(
                               fmt::format("plan of commit {}, head {}", Plans().back().version,
                                           ToHex(Plans().back().head).substr(0, 12))));
    const size_t heard = shown.out.find("heard s ago");
    ASSERT_NE(heard, std::string::npos) << shown.out;
    std::array<char, 128> host{};
    ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
    const std::string begins = fmt::format("\n{}-", host.data());
    int lines = 0;
    for (size_t at = heard; (at = shown.out.find(begins, at)) != std::string::npos; ++at) ++lines;
    EXPECT_EQ(lines, workers) << shown.out;
    EXPECT_THAT(shown.out, testing::Not(HasSubstr("cannot be read")));
    const std::string other_key = dir_ / FreshName("other.key");
    WriteFile(other_key, std::string(64, 'b'));
    std::filesystem::permissions(other_key, std::filesystem::perms::owner_read);
    const Ended sealed = show("workers.key_file=" + other_key);
    EXPECT_EQ(sealed.exit_code, 0) << sealed.err;
    for (const char* what :
         {"no plan", "no worker was heard", "cannot be read: plans: ", "cannot be read: hellos: "})
      EXPECT_THAT(sealed.out, HasSubstr(what));
    const Ended absent = show("workers.topic=" + FreshName("absent"));
    EXPECT_EQ(absent.exit_code, 2) << absent.out;
    EXPECT_THAT(absent.out, HasSubstr(".sums cannot be read: "));
  }
};

TEST_F(WorkersTest, WithoutAnyTheTrainerSumsAlone) {
  const std::string topic = NewTopic(9000);
  LearnPlain(topic);
  WriteShared("alone", topic, NewTopics());
  const Ended ended = test::Run(CrashCommand(dir_, "alone"));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  ExpectSameStore("alone", "plain");
  EXPECT_THAT(Sums(), IsEmpty());
  std::set<Digest> heads;
  for (const workers::Plan& plan : Plans()) {
    heads.insert(plan.head);
    for (const workers::Slice& slice : plan.slices) EXPECT_EQ(slice.worker, "");
  }
  // The opening period has none: no worker could have a model. A plan that another has followed
  // need not have been written.
  EXPECT_LT(heads.size(), Outcome("plain").steps);
}

TEST_F(WorkersTest, WithoutTheirTopicsTheTrainerSumsAloneAndSaysSo) {
  const std::string topic = NewTopic(9000);
  LearnPlain(topic);
  WriteShared("away", topic, NewTopics(/*of_workers=*/false));
  Process trainer({TACITD_CRASH, "--config", dir_ / "away.yaml"});
  // The rest at the end is no whole period, and waits.
  const double steps = static_cast<double>(Outcome("plain").steps) - 1;
  ASSERT_TRUE(Eventually(
      "all whole periods are learnt",
      [&] {
        return Metric("away", "tacit_steps_committed_total{learner=\"ctr\"}").value_or(0) >= steps;
      },
      4 * kPatience))
      << trainer.Err();
  const auto ready = http::Fetch("unix:" + (dir_ / "away.operator") + ":/readyz", "GET", "",
                                 std::chrono::seconds(5));
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->status, 200);
  for (const std::string& word :
       {std::string("workers are in trouble"), workers_ + ".plan", workers_ + ".sums"})
    EXPECT_THAT(ready->body, HasSubstr(word));
  trainer.Signal(SIGTERM);
  EXPECT_EQ(trainer.Wait()->exit_code, 0);
}

TEST_F(ShownWorkersTest, TheStoreIsTheSameWithAnyNumberOfThem) {
  const std::string topic = NewTopic(13'000, /*bad_from=*/6000, /*bad_to=*/6400);
  LearnPlain(topic, TwoLearners());
  for (const int workers : {1, 2}) {
    SCOPED_TRACE(fmt::format("{} workers", workers));
    const std::string name = fmt::format("shared-{}", workers);
    WriteShared(name, topic, NewTopics(), TwoLearners());
    const auto running = StartWorkers(name, workers);
    Process trainer(CrashCommand(dir_, name));
    double by_workers = 0, checked = 0;
    std::optional<Ended> ended;
    ASSERT_TRUE(Eventually(
        "the trainer ends",
        [&] {
          const auto metric = Metric(name, "tacit_slices_total{by=\"workers\"}");
          by_workers = std::max(by_workers, metric.value_or(0));
          checked = std::max(checked, Metric(name, "tacit_slices_checked_total").value_or(0));
          ended = trainer.WaitFor(std::chrono::milliseconds(50));
          return ended.has_value();
        },
        4 * kPatience))
        << trainer.Err();
    ASSERT_EQ(ended->exit_code, 0) << ended->err;
    EXPECT_GT(by_workers, 3) << ended->err;
    EXPECT_GT(checked, 0) << ended->err;
    ExpectSameStore(name, "plain");
    // Sums of committed periods are gone. No period came behind the last one.
    const Digest last = Plans().back().head;
    for (const TopicRecord& record : Sums()) {
      const auto read = workers::ReadSums(*record.key, *record.value);
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_TRUE(!read->place || read->origin.head == last) << "offset " << record.offset;
    }
    ExpectShown(name, workers);
    for (const auto& worker : running) {
      worker->Signal(SIGTERM);
      EXPECT_EQ(worker->Wait()->exit_code, 0) << worker->Err();
    }
  }
}

// The trainer's counts of records and examples are the same, no matter who has read them.
TEST_F(WorkersTest, OperatorsFiguresAreTheSame) {
  const std::string topic = NewTopic(13'000, /*bad_from=*/6000, /*bad_to=*/6400);
  const std::vector<std::string> counters = {
      "tacit_records_read_total", "tacit_dead_letters_total{part=\"label\"}",
      "tacit_events_learnt_total{learner=\"ctr\"}", "tacit_rows_touched_total{learner=\"ctr\"}",
      "tacit_units_clipped_total{learner=\"ctr\"}"};
  const std::vector<std::string> gauges = {
      "tacit_training_loss{learner=\"ctr\"}", "tacit_normalised_entropy{learner=\"ctr\"}",
      "tacit_calibration{learner=\"ctr\"}", "tacit_auc{learner=\"ctr\"}"};
  LearnPlain(topic);
  // The rest at the end is no whole period, and waits.
  const double steps = static_cast<double>(Outcome("plain").steps) - 1;
  std::vector<std::vector<double>> figures;
  for (const int workers : {0, 2}) {
    SCOPED_TRACE(fmt::format("{} workers", workers));
    const std::string name = fmt::format("figures-{}", workers);
    WriteShared(name, topic, NewTopics());
    const auto running = StartWorkers(name, workers);
    Process trainer({TACITD_CRASH, "--config", dir_ / (name + ".yaml")});
    ASSERT_TRUE(Eventually(
        "all whole periods are learnt",
        [&] {
          return Metric(name, "tacit_steps_committed_total{learner=\"ctr\"}").value_or(0) >= steps;
        },
        4 * kPatience))
        << trainer.Err();
    std::vector<double>& found = figures.emplace_back();
    for (const auto* names : {&counters, &gauges})
      for (const std::string& metric : *names) found.push_back(Metric(name, metric).value_or(-1));
    if (workers > 0) {
      EXPECT_GT(Metric(name, "tacit_slices_total{by=\"workers\"}"), 3);
    }
    trainer.Signal(SIGTERM);
    EXPECT_EQ(trainer.Wait()->exit_code, 0);
    for (const auto& worker : running) {
      worker->Signal(SIGTERM);
      worker->Wait();
    }
  }
  for (size_t i = 0; i < counters.size(); ++i)
    EXPECT_EQ(figures[1][i], figures[0][i]) << counters[i];
  // Losses are rounded to whole steps, and AUC is by bins.
  for (size_t i = 0; i < gauges.size(); ++i)
    EXPECT_NEAR(figures[1][counters.size() + i], figures[0][counters.size() + i], 0.005)
        << gauges[i];
  EXPECT_GT(figures[0][1], 300) << "dead letters";
}

// The breaker decides on what workers count as on what the trainer reads, before anything of the
// period is released.
TEST_F(WorkersTest, APeriodThatCanHardlyBeReadHaltsAtTheSameWindow) {
  const std::string topic = NewTopic(13'000, /*bad_from=*/5000, /*bad_to=*/8000);
  Write("plain", SourceOf(topic), TwoLearners());
  WriteShared("shared", topic, NewTopics(), TwoLearners());
  const auto running = StartWorkers("shared", 2);
  std::vector<uint64_t> windows[2];
  for (const bool shared : {false, true}) {
    const std::string name = shared ? "shared" : "plain";
    std::vector<std::string> past;
    for (int life = 0;; ++life) {
      ASSERT_LT(life, 5);
      std::vector<std::string> command = CrashCommand(dir_, name);
      command.insert(command.end(), past.begin(), past.end());
      const Ended ended = test::Run(command);
      if (ended.exit_code == 0) break;
      ASSERT_EQ(ended.exit_code, 5) << ended.err;
      windows[shared].push_back(WindowOf(ended.err));
      EXPECT_EQ(windows[shared].back(), Outcome(name).steps + 1) << "its period was released";
      past = {"--past-halt", std::to_string(windows[shared].back())};
    }
  }
  EXPECT_GE(windows[0].size(), 1u);
  EXPECT_EQ(windows[1], windows[0]);
  ExpectSameStore("shared", "plain");
}

// It learns the topic from its beginning, while the other one waits.
TEST_F(WorkersTest, ALearnerThatIsAddedCatchesUp) {
  const std::string topic = NewTopic(9000);
  const std::string old = Learner("fewer", kBatch, "linear", "event", 6);
  LearnPlain(topic, TwoLearners());
  const std::string sections = NewTopics();
  for (const std::string& learners : {old, old + Learner("ctr", kBatch)}) {
    WriteShared("added", topic, sections, learners);
    const auto running = StartWorkers("added", 2);
    const Ended ended = test::Run(CrashCommand(dir_, "added"));
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
  }
  ExpectSame(Outcome("added", 0), Outcome("plain", 1));
  ExpectSame(Outcome("added", 1), Outcome("plain", 0));
}

// Another program has written a model into the feed that the worker reads. The worker says so and
// sums nothing by it, and the trainer goes on alone.
TEST_F(WorkersTest, AModelThatAnotherProgramHasWrittenIsNotSummedBy) {
  const std::string topic = NewTopic(4000);
  const std::string sections = NewTopics();
  WriteShared("deceived", topic, sections);
  Write("plain", SourceOf(topic), Learner("ctr", kBatch));
  const auto learn = [&] {
    for (const char* name : {"plain", "deceived"}) {
      const Ended ended = test::Run(CrashCommand(dir_, name));
      ASSERT_EQ(ended.exit_code, 0) << ended.err;
    }
  };
  learn();
  const std::string forged = FreshName("forged");
  SharedBroker().CreateTopic(forged, 2, {{"cleanup.policy", "compact"}});
  std::vector<TopicRecord> records = ReadTopic(SharedBroker().bootstrap(), feed_);
  FeedForger forger;
  for (TopicRecord& record : records)
    record.value = forger.Forge(record.partition, *record.key, *record.value);
  EXPECT_GT(forger.changed(), 0u);
  WriteTopic(SharedBroker().bootstrap(), forged, records);
  const auto worker = Worker("deceived", {"TACIT_FEED_TOPIC=" + forged});
  AwaitHellos(1);
  Add(topic, 4000);
  learn();
  ExpectSame(Outcome("deceived"), Outcome("plain"));
  worker->Signal(SIGTERM);
  EXPECT_THAT(worker->Wait()->err, HasSubstr("has no mark of workers.key_file that fits its rows"));
}

// SIGKILL at any time, and started again.
TEST_F(WorkersTest, EightThatAreKilledAnywhereEndWhereAnUninterruptedRunEnds) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const std::string topic = NewTopic(13'000, /*bad_from=*/6000, /*bad_to=*/6400);
  const std::string learners =
      Learner("ctr", kBatch) + Learner("fewer", kBatch, "linear", "event", 6);
  LearnPlain(topic, learners);
  WriteShared("killed", topic, NewTopics(), learners);
  auto running = StartWorkers("killed", 8);
  auto trainer = std::make_unique<Process>(CrashCommand(dir_, "killed"));
  int of_trainer = 0;
  std::optional<Ended> ended;
  ASSERT_TRUE(Eventually(
      "the trainer ends",
      [&] {
        ended = trainer->WaitFor(std::chrono::milliseconds(random() % 1500));
        if (ended) return true;
        // The trainer is killed at most three times: then it comes to the end.
        if (random() % 3 == 0 && of_trainer < 3) {
          trainer->Signal(SIGKILL);
          trainer->Wait();
          trainer = std::make_unique<Process>(CrashCommand(dir_, "killed"));
          ++of_trainer;
        } else {
          auto& worker = running[random() % running.size()];
          worker->Signal(SIGKILL);
          worker->Wait();
          worker = Worker("killed");
        }
        return false;
      },
      4 * kPatience))
      << trainer->Err();
  ASSERT_EQ(ended->exit_code, 0) << ended->err;
  ExpectSameStore("killed", "plain");
}

}  // namespace
}  // namespace tacit::test
