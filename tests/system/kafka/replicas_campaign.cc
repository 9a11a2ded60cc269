// The whole of what crowd_test has a share of, and how far replicas are behind.
//   replicas_campaign kills COUNT SECONDS    this many kills, or until the time is up (fails then);
//   then a
//                                          broker that is away for a minute
//   replicas_campaign lag CONFIG SECONDS     replicas of a trainer with this configuration
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "system/kafka/crowd.h"
#include "system/kafka/lag.h"

namespace tacit {
namespace {

using Steady = std::chrono::steady_clock;

std::string config_path;
int kills = 0;
std::chrono::seconds most(0);

void Say(const std::string& line) { std::cout << line << std::endl; }

TEST(ReplicasCampaign, Kills) {
  if (kills == 0) GTEST_SKIP() << "asked for by: replicas_campaign kills";
  TACIT_NEED_BROKER(test::kDefaultVersion);
  const uint64_t seed = std::random_device{}();
  Say(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  test::Crowd crowd({.seed = seed});
  crowd.StartTrainer();
  crowd.StartReplica();
  crowd.StartReplica();
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    if (round == 20) crowd.StartReplica();
    crowd.Write(1 + round % 2);
    crowd.Settle();
  }
  ASSERT_FALSE(HasFailure());
  Say("before the kills: " + crowd.Figures());
  EXPECT_GE(crowd.compared(), 1000u);
  crowd.ExpectMixIsSeen();
  ASSERT_FALSE(HasFailure());
  Say("the mix of two versions was seen");
  const auto deadline = Steady::now() + most;
  int of_trainer = 0, of_replicas = 0, of_broker = 0;
  const auto done = [&] { return of_trainer + of_replicas + of_broker; };
  while (done() < kills && Steady::now() < deadline && !HasFailure()) {
    const uint64_t whom = random() % 20;
    if (whom < 3) {
      crowd.KillBroker();
      ++of_broker;
    } else if (whom < 9) {
      crowd.KillTrainer();
      ++of_trainer;
    } else {
      crowd.KillReplica();
      ++of_replicas;
    }
    if (random() % 4 == 0) crowd.Settle();
    if (done() % 20 == 0)
      Say(fmt::format("{} kills of the trainer, {} of replicas, {} of the broker: {}", of_trainer,
                      of_replicas, of_broker, crowd.Figures()));
  }
  if (!HasFailure()) {
    Say("the broker is away for a minute");
    crowd.LoseBroker(std::chrono::seconds(60));
  }
  EXPECT_EQ(done(), kills) << "the time is up";
  Say(fmt::format("{}: {} kills of the trainer, {} of replicas, {} of the broker: {}",
                  HasFailure() ? "WRONG" : "ok", of_trainer, of_replicas, of_broker,
                  crowd.Figures()));
}

TEST(ReplicasCampaign, Lag) {
  if (config_path.empty()) GTEST_SKIP() << "asked for by: replicas_campaign lag";
  TACIT_NEED_BROKER(test::kDefaultVersion);
  for (const std::string& line : test::MeasureLag(config_path, most)) Say(line);
}

}  // namespace
}  // namespace tacit

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string what = argc > 1 ? argv[1] : "";
  if (argc != 4 || (what != "kills" && what != "lag")) {
    std::cerr << "usage: replicas_campaign kills COUNT SECONDS | lag CONFIG SECONDS\n";
    return 2;
  }
  if (what == "kills") tacit::kills = std::stoi(argv[2]);
  if (what == "lag") tacit::config_path = argv[2];
  tacit::most = std::chrono::seconds(std::stoi(argv[3]));
  return RUN_ALL_TESTS();
}
