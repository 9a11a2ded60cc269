#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "http/client.h"
#include "support/eventually.h"
#include "system/kafka/topic_periods.h"
#include "workers/records.h"

namespace tacit::test {

// A trainer and workers over a real broker, without noise.
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
    feed_ = FreshName("feed");
    workers_ = FreshName("workers");
    SharedBroker().CreateTopic(feed_, 2, {{"cleanup.policy", "compact"}});
    if (of_workers) {
      SharedBroker().CreateTopic(workers_ + ".plan");
      SharedBroker().CreateTopic(workers_ + ".sums", 2);
    }
    return fmt::format(
        "feed: {{topic: {}, interval_ms: 60000, max_age_ms: 3600000}}\n"
        "workers: {{topic: {}, key_file: \"{}\", patience_ms: 1000, check: {}}}\n",
        feed_, workers_, KeyFile(), kCheck);
  }
  // Learns the topic without workers.
  void LearnPlain(const std::string& topic,
                  const std::string& learners = Learner("ctr", kBatch)) const {
    Learn("plain", SourceOf(topic), 1, learners);
  }
  // The configuration of a trainer and its workers.
  void WriteShared(const std::string& name, const std::string& topic, const std::string& sections,
                   const std::string& learners = Learner("ctr", kBatch)) const {
    Write(name, SourceOf(topic), learners, 1, sections);
  }
  // It halts where most of a period cannot be read.
  static std::string SourceOf(const std::string& topic) {
    return fmt::format(
        "topic: {}, periods: topic, halt_above: {{share: 0.5, epsilon: 1, delta: 1.0e-6}}", topic);
  }
  // Two that see the same events in another way, the first with private quality.
  static std::string TwoLearners() {
    return Learner("ctr", kBatch) +
           "    quality: {steps: 3, bins: 8, epsilon: 1, delta: 1.0e-6}\n" +
           Learner("fewer", kBatch, "linear", "event", 6);
  }
  // It has the trainer's file, and answers elsewhere.
  std::unique_ptr<Process> Worker(const std::string& name,
                                  std::vector<std::string> environment = {}) const {
    environment.push_back("TACIT_SERVE_OPERATOR_LISTEN=unix:" +
                          (dir_ / (FreshName("worker") + ".operator")));
    return std::make_unique<Process>(
        std::vector<std::string>{TACITD_CRASH, "--config", dir_ / (name + ".yaml"), "--worker"},
        std::move(environment));
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
  // Learners, breaker and quality: all that they have released, where they stand and what is paid.
  void ExpectSameStore(const std::string& name, const std::string& as) const {
    const auto bills = Bills(name), expected = Bills(as);
    ASSERT_EQ(bills.size(), expected.size());
    for (const auto& [account, due] : expected) {
      SCOPED_TRACE(account);
      ASSERT_TRUE(bills.contains(account));
      EXPECT_EQ(bills.at(account).steps, due.steps);
      EXPECT_EQ(bills.at(account).worst, due.worst);
      EXPECT_EQ(bills.at(account).epsilon, due.epsilon);
    }
    const auto config = config::Load(dir_ / (name + ".yaml"), {});
    ASSERT_TRUE(config);
    for (uint16_t learner = 0; learner < config->learners.size(); ++learner)
      ExpectSame(Outcome(name, learner), Outcome(as, learner));
    EXPECT_EQ(Accounts(name), Accounts(as));
  }
  // The last entry of each account, with the steps of all.
  std::map<std::string, privacy::LedgerEntry> Bills(const std::string& name) const {
    std::map<std::string, privacy::LedgerEntry> bills;
    for (privacy::LedgerEntry& entry : Ledger(name)) {
      entry.steps += bills[entry.learner].steps;
      bills[entry.learner] = std::move(entry);
    }
    return bills;
  }
  // The positions and released bytes of the accounts beside the learners.
  std::vector<std::string> Accounts(const std::string& name) const {
    auto config = config::Load(dir_ / (name + ".yaml"), {});
    auto assembly = wiring::Assemble(*config);
    auto store = store::Store::Open(wiring::MakeStoreOptions(*assembly));
    EXPECT_TRUE(store) << store.error().message;
    std::vector<LearnerIndex> indices{assembly->breaker->index};
    for (const auto& quality : assembly->qualities) indices.push_back(quality.index);
    std::vector<std::string> accounts;
    for (const LearnerIndex index : indices) {
      const auto state = (*store)->State(index);
      accounts.push_back(state.position);
      accounts.push_back(state.released == nullptr ? "" : *state.released);
    }
    return accounts;
  }
  std::vector<std::unique_ptr<Process>> StartWorkers(const std::string& name, int workers) const {
    std::vector<std::unique_ptr<Process>> running;
    for (int i = 0; i < workers; ++i) running.push_back(Worker(name));
    AwaitHellos(workers);
    return running;
  }
  static constexpr int kBatch = 2000;
  static constexpr double kCheck = 0.3;  // often enough to be seen
  std::string feed_, workers_;
};

}  // namespace tacit::test
