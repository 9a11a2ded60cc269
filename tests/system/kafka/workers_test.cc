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
#include "http/client.h"
#include "support/eventually.h"
#include "system/kafka/topic_periods.h"
#include "workers/records.h"

namespace tacit::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class WorkersTest : public TopicPeriodsTest {
 protected:
  void SetUp() override {
    TopicPeriodsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    WriteFile(KeyFile(), std::string(64, 'a'));
    std::filesystem::permissions(KeyFile(), std::filesystem::perms::owner_read);
  }

  std::string KeyFile() const { return dir_ / "workers.key"; }
  // Topics of a feed and of workers. Returns the sections that name them.
  std::string NewTopics(bool of_workers = true) {
    const std::string feed = FreshName("feed");
    workers_ = FreshName("workers");
    SharedBroker().CreateTopic(feed, 2, {{"cleanup.policy", "compact"}});
    if (of_workers) {
      SharedBroker().CreateTopic(workers_ + ".plan");
      SharedBroker().CreateTopic(workers_ + ".sums", 2);
    }
    return fmt::format(
        "feed: {{topic: {}, interval_ms: 60000, max_age_ms: 3600000}}\n"
        "workers: {{topic: {}, key_file: \"{}\", patience_ms: 1000, check: {}}}\n",
        feed, workers_, KeyFile(), kCheck);
  }
  // Learns the topic without workers.
  void LearnPlain(const std::string& topic) const {
    Learn("plain", fmt::format("topic: {}, periods: topic", topic), 1, Learner("ctr", kBatch));
  }
  // The configuration of a trainer and its workers. Returns its path.
  std::string WriteShared(const std::string& name, const std::string& topic,
                          const std::string& sections) const {
    return Write(name, fmt::format("topic: {}, periods: topic", topic), Learner("ctr", kBatch), 1,
                 sections);
  }
  // It has the trainer's file, and answers elsewhere.
  std::unique_ptr<Process> Worker(const std::string& name) const {
    return std::make_unique<Process>(
        std::vector<std::string>{TACITD_CRASH, "--config", dir_ / (name + ".yaml"), "--worker"},
        std::vector<std::string>{"TACIT_SERVE_OPERATOR_LISTEN=unix:" +
                                 (dir_ / (FreshName("worker") + ".operator"))});
  }
  // A number on the trainer's page of metrics; nothing where it does not answer.
  std::optional<double> Metric(const std::string& name, const std::string& metric) const {
    const auto page = http::Fetch("unix:" + (dir_ / (name + ".operator")) + ":/metrics", "GET", "",
                                  std::chrono::seconds(5));
    if (!page) return std::nullopt;
    const size_t at = page->body.find("\n" + metric + " ");
    if (at == std::string::npos) return std::nullopt;
    return std::stod(page->body.substr(at + metric.size() + 2));
  }
  std::vector<TopicRecord> Sums() const {
    return ReadTopic(SharedBroker().bootstrap(), workers_ + ".sums");
  }
  void AwaitHellos(int workers) const {
    ASSERT_TRUE(Eventually(
        "workers say hello",
        [&] {
          std::set<std::string> names;
          for (const TopicRecord& record : Sums()) {
            const auto read = workers::ReadSums(*record.key, *record.value);
            if (read && !read->place) names.insert(read->origin.worker);
          }
          return names.size() >= static_cast<size_t>(workers);
        },
        4 * kPatience));
  }
  std::vector<workers::Plan> Plans() const {
    workers::SharedKey key;
    key.fill(0xaa);
    key = workers::KeyOfTopics(key, workers_);
    std::vector<workers::Plan> plans;
    for (const TopicRecord& record : ReadTopic(SharedBroker().bootstrap(), workers_ + ".plan")) {
      auto plan = workers::DecodePlan(key, record.value.value_or(""));
      EXPECT_TRUE(plan) << plan.error().message;
      if (plan) plans.push_back(*std::move(plan));
    }
    return plans;
  }
  void ExpectSameLedger(const std::string& name, const std::string& as) const {
    const auto entries = Ledger(name), expected = Ledger(as);
    ASSERT_EQ(entries.size(), expected.size());
    EXPECT_EQ(entries[0].steps, expected[0].steps);
    EXPECT_EQ(entries[0].worst, expected[0].worst);
    EXPECT_EQ(entries[0].epsilon, expected[0].epsilon);
  }

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

  static constexpr int kBatch = 2000;
  static constexpr double kCheck = 0.3;  // often enough to be seen
  std::string workers_;
};

TEST_F(WorkersTest, WithoutAnyTheTrainerSumsAlone) {
  const std::string topic = NewTopic(9000);
  LearnPlain(topic);
  WriteShared("alone", topic, NewTopics());
  const Ended ended = test::Run(CrashCommand(dir_, "alone"));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  ExpectSame(Outcome("alone"), Outcome("plain"));
  ExpectSameLedger("alone", "plain");
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

TEST_F(WorkersTest, TheStoreIsTheSameWithAnyNumberOfThem) {
  const std::string topic = NewTopic(13'000);
  LearnPlain(topic);
  for (const int workers : {1, 2}) {
    SCOPED_TRACE(fmt::format("{} workers", workers));
    const std::string name = fmt::format("shared-{}", workers);
    WriteShared(name, topic, NewTopics());
    std::vector<std::unique_ptr<Process>> running;
    for (int i = 0; i < workers; ++i) running.push_back(Worker(name));
    AwaitHellos(workers);
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
    ExpectSame(Outcome(name), Outcome("plain"));
    ExpectSameLedger(name, "plain");
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
    std::vector<std::unique_ptr<Process>> running;
    for (int i = 0; i < workers; ++i) running.push_back(Worker(name));
    AwaitHellos(workers);
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

// SIGKILL at any time, and started again.
TEST_F(WorkersTest, KilledAnywhereTheyEndWhereAnUninterruptedRunEnds) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  const std::string topic = NewTopic(13'000);
  LearnPlain(topic);
  WriteShared("killed", topic, NewTopics());
  std::vector<std::unique_ptr<Process>> running;
  for (int i = 0; i < 2; ++i) running.push_back(Worker("killed"));
  AwaitHellos(2);
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
  ExpectSame(Outcome("killed"), Outcome("plain"));
  ExpectSameLedger("killed", "plain");
}

}  // namespace
}  // namespace tacit::test
