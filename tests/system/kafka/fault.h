#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/eventually.h"
#include "support/process.h"
#include "system/kafka/broker.h"
#include "system/kafka/oracle.h"
#include "system/kafka/oracle_run.h"
#include "system/kafka/topic.h"

namespace tacit::test {

// A topic, a daemon that learns from it, and the oracle that knows what it has learnt: for tests of
// one thing that a broker does to them. A test notes with each event how often it is to be learnt.
class FaultTest : public testing::Test {
 protected:
  using Settings = std::vector<std::pair<std::string, std::string>>;

  void SetUp() override { TACIT_NEED_BROKER(kDefaultVersion); }

  // Makes the topic. First of all.
  void MakeTopic(Broker& broker, int32_t partitions, const Settings& settings = {});
  // Writes the daemon's configuration: further keys of `source` and of `kafka`, as YAML has them
  // within braces.
  void Configure(const std::string& source = "format: criteo_tsv", const std::string& kafka = "");
  // The same with TLS, at a broker that has it.
  void ConfigureTls(const std::string& kafka = "");

  // The record of a new event that `exact` is to learn this many times.
  TopicRecord NewEvent(int32_t partition, int times = 1);
  // The same, `count` times.
  std::vector<TopicRecord> NewEvents(int32_t partition, int count, int times = 1);
  void Write(const std::vector<TopicRecord>& records,
             const ClientProperties& properties = {}) const;

  // Runs the daemon to the end of the topic.
  Ended Learn() const { return test::Run({TACITD, "--config", config_, "--until-end"}); }
  // Starts it; it answers on sockets of its own, and this waits until it does.
  void StartDaemon();
  // Waits until it has said so.
  void AwaitWord(const std::string& text) const;
  // Waits until /readyz answers operators with this beginning and that text in it.
  void AwaitReadyz(const std::string& begin, const std::string& has = "") const;
  // That it serves the model.
  void ExpectServing() const;
  // Waits until what was to be learnt is learnt. A running daemon learns whole steps: of each
  // partition a multiple of Oracle::kBatch offsets since the last run to the end.
  void AwaitLearnt() const;
  // SIGKILL.
  void KillDaemon();

  std::vector<int> Applied() const;
  void ExpectLearnt() const;
  // That the ledger is whole, and charges the events of `private` for a step each.
  void ExpectLedger() const;
  // The same, and this many steps of each learner.
  void ExpectSteps(uint64_t steps) const;
  // Steps of a run to the topic's end: from a partition's first record, or where the run before has
  // ended, to past the last record.
  static uint64_t StepsOf(uint64_t begin, uint64_t end) {
    return (end - begin + Oracle::kBatch - 1) / Oracle::kBatch;
  }

  TempDir dir_;
  Oracle oracle_{20};
  Broker* broker_ = nullptr;
  std::string topic_, config_, url_;
  std::vector<int> expected_;  // by event
  std::unique_ptr<Process> daemon_;
  int daemons_ = 0;

 private:
  void ConfigureAt(const std::string& bootstrap, const std::string& source,
                   const std::string& kafka);
};

}  // namespace tacit::test
