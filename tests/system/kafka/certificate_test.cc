// A broker whose certificate has run out: the daemon says so, by name and with what to do, serves
// what is committed, and continues by itself when the certificate is renewed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "system/kafka/fault.h"

namespace tacit::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// One for all tests, for it takes its time to start; each leaves it with a good certificate.
Broker& TlsBroker() {
  static Broker broker({.secure = true});
  return broker;
}

class CertificateTest : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    MakeTopic(TlsBroker(), 1);
    ConfigureTls();
    Write(NewEvents(0, 96));
  }

  // The broker again, with a certificate that is good for these days.
  void Restart(int first_day, int days) {
    broker_->Kill();
    broker_->Certify(first_day, days);
    broker_->Start();
  }
  void Expire() { Restart(-40, 30); }
  void Renew() { Restart(-1, 30); }
  void ExpectSaysExpired() {
    AwaitReadyz("ready, degraded: ", "a certificate that has expired");
    AwaitWord("broker " + broker_->tls() + " shows a certificate that has expired");
    EXPECT_THAT(daemon_->Err(), HasSubstr("renew it at the broker"));
  }
};

TEST_F(CertificateTest, ThatExpiresUnderADaemonIsToldAndHeals) {
  StartDaemon();
  AwaitLearnt();
  Expire();
  Write(NewEvents(0, 48));
  ExpectSaysExpired();
  ExpectServing();
  // A program that writes to it hears the same.
  WriteFile(dir_ / "log.tsv", Oracle::Filler() + "\n");
  const Ended replay = test::Run({TACIT, "replay", "--config", config_, dir_ / "log.tsv"});
  EXPECT_NE(replay.exit_code, 0);
  EXPECT_THAT(replay.err, AllOf(HasSubstr("a certificate that has expired"), HasSubstr(topic_)));
  Renew();
  AwaitLearnt();
  AwaitReadyz("ready\n");
  KillDaemon();
  ASSERT_EQ(Learn().exit_code, 0);
  ExpectLearnt();
  ExpectSteps(StepsOf(0, 144));
}

// With a topic of dead letters the brokers are asked before anything is served.
TEST_F(CertificateTest, ThatHasExpiredBeforeTheStartDoesNotStopServing) {
  const std::string dead = FreshName("dead");
  broker_->CreateTopic(dead, 1);
  ConfigureTls(", errors.deadletterqueue.topic.name: " + dead);
  ASSERT_EQ(Learn().exit_code, 0);
  Expire();
  Write(NewEvents(0, 47));
  Write({{.partition = 0, .value = "no line of ours"}});
  StartDaemon();
  ExpectSaysExpired();
  ExpectServing();
  Restart(10, 30);
  AwaitReadyz("ready, degraded: ", "a certificate that is not valid yet: correct the clock");
  Renew();
  AwaitLearnt();
  AwaitReadyz("ready\n");
  KillDaemon();
  ASSERT_EQ(Learn().exit_code, 0);
  ExpectLearnt();
  ExpectSteps(StepsOf(0, 96) + StepsOf(96, 144));
  EXPECT_EQ(ReadTopic(broker_->bootstrap(), dead).size(), 1u);
}

}  // namespace
}  // namespace tacit::test
