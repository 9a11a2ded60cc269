// A share of tests/campaign/replicas: a trainer, three replicas, one of which joins during
// training, and a broker that compacts all the time; each of them is killed.
#include <gtest/gtest.h>

#include <iostream>

#include "system/kafka/crowd.h"

namespace tacit::test {
namespace {

TEST(CrowdTest, EachAnswerIsTheTrainersAtItsVersion) {
  TACIT_NEED_BROKER(kDefaultVersion);
  Crowd crowd({.seed = 11});
  crowd.StartTrainer();
  crowd.StartReplica();
  crowd.StartReplica();
  for (int round = 0; round < 14 && !HasFailure(); ++round) {
    if (round == 5) crowd.StartReplica();
    crowd.Write(1 + round % 2);
    crowd.Settle();
  }
  ASSERT_FALSE(HasFailure());
  EXPECT_GE(crowd.compared(), 1000u);
  crowd.ExpectMixIsSeen();
  for (int round = 0; round < 2 && !HasFailure(); ++round) {
    crowd.KillReplica();
    crowd.KillTrainer();
    crowd.KillReplica();
    if (round == 1) crowd.KillBroker();
    crowd.Settle();
  }
  std::cout << crowd.Figures() << std::endl;
}

}  // namespace
}  // namespace tacit::test
