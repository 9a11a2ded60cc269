#include "system/kafka/fault.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include "http/client.h"
#include "store/store.h"

namespace tacit::test {
namespace {

constexpr char kForOperators[] = "-operators";

}  // namespace

void FaultTest::MakeTopic(Broker& broker, int32_t partitions, const Settings& settings) {
  broker_ = &broker;
  topic_ = FreshName("faults");
  broker.CreateTopic(topic_, partitions, settings);
}

void FaultTest::Configure(const std::string& source, const std::string& kafka) {
  ConfigureAt(broker_->bootstrap(), source, kafka);
}

void FaultTest::ConfigureTls(const std::string& kafka) {
  ConfigureAt(broker_->tls(), "format: criteo_tsv",
              fmt::format(", security.protocol: ssl, ssl.ca.location: \"{}\"{}", broker_->ca_file(),
                          kafka));
}

void FaultTest::ConfigureAt(const std::string& bootstrap, const std::string& source,
                            const std::string& kafka) {
  config_ = WriteOracleConfig(dir_, "store",
                              fmt::format("source: {{kind: kafka, topic: {}, {}}}\n"
                                          "kafka: {{bootstrap.servers: \"{}\", group.id: {}{}}}\n",
                                          topic_, source, bootstrap, topic_, kafka),
                              false);
}

TopicRecord FaultTest::NewEvent(int32_t partition, int times) {
  expected_.push_back(times);
  return {.partition = partition, .value = oracle_.Line(oracle_.Invent())};
}

std::vector<TopicRecord> FaultTest::NewEvents(int32_t partition, int count, int times) {
  std::vector<TopicRecord> records;
  for (int i = 0; i < count; ++i) records.push_back(NewEvent(partition, times));
  return records;
}

void FaultTest::Write(const std::vector<TopicRecord>& records,
                      const ClientProperties& properties) const {
  WriteTopic(broker_->bootstrap(), topic_, records, properties);
}

void FaultTest::StartDaemon() {
  url_ = "unix:" + (dir_ / fmt::format("socket-{}", daemons_++));
  daemon_ = std::make_unique<Process>(
      std::vector<std::string>{TACITD, "--config", config_, "--set", "serve.listen=" + url_,
                               "--set", "serve.operator_listen=" + url_ + kForOperators});
  ASSERT_TRUE(Eventually("the daemon answers", [&] {
    const auto ended = daemon_->WaitFor(std::chrono::milliseconds(0));
    if (ended) ADD_FAILURE() << "the daemon ended with " << ended->exit_code << ": " << ended->err;
    return ended || http::Fetch(url_ + ":/healthz", "GET", "", kPatience);
  })) << daemon_->Err();
}

void FaultTest::AwaitWord(const std::string& text) const {
  EXPECT_TRUE(Eventually("the daemon says \"" + text + "\"",
                         [&] { return daemon_->Err().find(text) != std::string::npos; }))
      << "but:\n"
      << daemon_->Err();
}

void FaultTest::AwaitReadyz(const std::string& begin, const std::string& has) const {
  std::string body;
  EXPECT_TRUE(Eventually("/readyz says \"" + begin + "..." + has + "\"",
                         [&] {
                           const auto answer =
                               http::Fetch(url_ + kForOperators + ":/readyz", "GET", "", kPatience);
                           if (answer) body = answer->body;
                           return body.starts_with(begin) && body.find(has) != std::string::npos;
                         }))
      << "but \"" << body << "\"; the daemon said:\n"
      << daemon_->Err();
}

void FaultTest::ExpectServing() const {
  const auto answer =
      http::Fetch(url_ + ":/v1/score", "POST",
                  R"({"learner":"exact","rows":[{"dense":[1],"categorical":["x"]}]})", kPatience);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200) << answer->body;
}

void FaultTest::AwaitLearnt() const {
  EXPECT_TRUE(Eventually("everything is learnt",
                         [&] {
                           const auto applied = oracle_.Applied(config_);
                           return applied && *applied == expected_;
                         }))
      << testing::PrintToString(oracle_.Differences(Applied(), expected_)) << "\nthe daemon said:\n"
      << daemon_->Err();
}

void FaultTest::KillDaemon() {
  daemon_->Signal(SIGKILL);
  EXPECT_TRUE(daemon_->Wait());
  daemon_.reset();
}

std::vector<int> FaultTest::Applied() const {
  const auto applied = oracle_.Applied(config_);
  EXPECT_TRUE(applied) << applied.error().message;
  return applied ? *applied : std::vector<int>(expected_.size());
}

void FaultTest::ExpectLearnt() const {
  EXPECT_THAT(oracle_.Differences(Applied(), expected_), testing::IsEmpty());
}

void FaultTest::ExpectLedger() const {
  const Ended verified = test::Run({TACIT, "ledger", "verify", "--store", dir_ / "store"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  const auto opened = store::OpenReadOnly(dir_ / "store", dir_ / "store.witness", {});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_NEAR(opened->snapshot->learners().back().epsilon, Oracle::kEpsilon, 0.01);
}

void FaultTest::ExpectSteps(uint64_t steps) const {
  ExpectLedger();
  const auto opened = store::OpenReadOnly(dir_ / "store", dir_ / "store.witness", {});
  ASSERT_TRUE(opened) << opened.error().message;
  for (const privacy::LedgerTotal& learner : opened->snapshot->learners())
    EXPECT_EQ(learner.steps, steps) << learner.learner;
}

}  // namespace tacit::test
