// A trainer on simulated brokers and a simulated disk: its process is killed, its power ends, and
// its lines lose requests and answers, drawn from the seed. Each event is learnt once (rule R1):
// the oracle finds that by loops of its own, from the rows of a learner without noise.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "config/config.h"
#include "daemon/daemon.h"
#include "sim/brokers/cluster.h"
#include "sim/process.h"
#include "sim/scheduler.h"
#include "support/process.h"
#include "system/kafka/oracle.h"
#include "wiring/assembly.h"

namespace tacit::sim {
namespace {

const std::string kConfig = "/disk/tacit.yaml";
constexpr int32_t kPartitions = 2;
constexpr uint64_t kLives = 5;
constexpr int64_t kFirstMs = 2'000'000'000'000;  // when the simulated clock begins
constexpr int kKilled = 79;                      // exit code of a process that the test has killed

// A run from its seed: a trainer in a few lives, each of some minutes, while records come.
class Scene {
 public:
  explicit Scene(uint64_t seed) : seed_(seed) {
    cluster_->CreateTopic("t", kPartitions);
    for (Cluster::Line* line : cluster_->lines()) line->latency_us = 500;
    cluster_->SetWeather(seed, 300, 300);
    for (size_t i = 0; i < kLives * kRounds * kMost; ++i) oracle_.Invent();
  }

  // Returns an error's words, empty if there was none.
  std::string Play() {
    const std::string yaml = fmt::format(
        "source: {{kind: kafka, topic: t, format: criteo_tsv}}\n"
        "kafka: {{bootstrap.servers: \"{}\", group.id: trainer}}\n"
        "store: {{path: /disk/store, commit_interval_ms: 200}}\n"
        "serve: {{listen: \"\"}}\n"
        "training: {{idle_priority: false, workers: 1}}\n",
        cluster_->address());
    Run(0, [&] {
      std::filesystem::create_directories("/disk");
      test::WriteFile(kConfig, yaml + test::Oracle::Yaml(false));
      return 0;
    });
    for (uint64_t life = 1; life <= kLives; ++life) {
      if (Draw(life, 2) % 4 != 0) disk_->EndPowerAt(1 + Draw(life, 3) % kChangesMost);
      const Life trained = Run(life, [&] {
        std::thread([&] { Disturb(life); }).detach();
        return Train(false);
      });
      if (trained.exit_code != kKilled && trained.exit_code != kPowerEnded)
        return Words("life " + std::to_string(life), trained);
      ++kills_;
      disk_->Mend();
      if (trained.exit_code == kPowerEnded && Draw(life, 4) % 2 == 0)
        disk_->LosePower(Draw(life, 5), static_cast<Left>(Draw(life, 6) % kLefts), Left::kFirst);
    }
    SetLines(&Cluster::Line::cut, false);
    SetLines(&Cluster::Line::silent, false);
    cluster_->SetWeather(0, 0, 0);
    const Life ended = Run(kLives + 1, [] { return Train(true); });
    if (ended.exit_code != 0) return Words("the last life", ended);
    const Life judged = Run(kLives + 2, [&] { return Judge(); });
    return judged.exit_code == 0 ? "" : Words("the rows", judged);
  }
  uint64_t Digest() const { return disk_->Digest(); }
  int kills() const { return kills_; }
  double hours() const { return static_cast<double>(cluster_->now_ms() - kFirstMs) / 3'600'000; }
  uint64_t losses() const { return cluster_->losses(); }

 private:
  static constexpr uint64_t kRounds = 20, kMost = 12, kChangesMost = 6000;

  uint64_t Draw(uint64_t life, uint64_t what) const { return Mix(Mix(seed_, life), what); }

  Life Run(uint64_t life, const std::function<int()>& body) {
    return Live({.seed = Draw(life, 0), .disk = disk_.get()}, body);
  }

  void SetLines(bool Cluster::Line::*state, bool value) {
    OnCluster act(*cluster_);
    for (Cluster::Line* line : act->lines()) line->*state = value;
  }

  // Writes records now and then, takes the brokers away for a while, and kills the process.
  void Disturb(uint64_t life) {
    size_t event = (life - 1) * kRounds * kMost;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const auto draw = [&](uint64_t what, uint64_t below) {
        return Draw(life, 100 + 10 * round + what) % below;
      };
      std::this_thread::sleep_for(std::chrono::milliseconds(draw(0, 30'000)));
      for (uint64_t i = draw(1, kMost + 1); i > 0; --i) Write(event++);
      if (draw(2, 5) != 0) continue;
      bool Cluster::Line::*const state =
          draw(3, 2) == 0 ? &Cluster::Line::cut : &Cluster::Line::silent;
      SetLines(state, true);
      std::this_thread::sleep_for(std::chrono::milliseconds(draw(4, 40'000)));
      SetLines(state, false);
    }
    std::_Exit(kKilled);
  }

  void Write(size_t event) {
    const ClusterRecord record{.value = oracle_.Line(event),
                               .timestamp_ms = kFirstMs + static_cast<int64_t>(event)};
    OnCluster(*cluster_)->Append("t", static_cast<int32_t>(event % kPartitions), {}, 0, false,
                                 {&record, 1});
  }

  static int Train(bool until_end) {
    const auto read = [] { return config::Load(kConfig, {}, config::LogFiles::kUnread); };
    auto config = config::Load(kConfig, {});
    if (!config) return std::printf("%s\n", config.error().message.c_str()), 1;
    auto assembly = wiring::Assemble(*std::move(config));
    if (!assembly) return std::printf("%s\n", assembly.error().message.c_str()), 1;
    const auto code = daemon::RunDaemon(*std::move(assembly), {.config = kConfig, .read = read},
                                        {.until_end = until_end});
    if (!code) return std::printf("%s\n", code.error().message.c_str()), 1;
    return *code;
  }

  // Each event that is in the brokers' log was learnt once.
  int Judge() const {
    std::vector<int> expected(oracle_.size());
    for (int32_t partition = 0; partition < kPartitions; ++partition)
      for (const ClusterRecord& record :
           cluster_->Fetch("t", partition, 0, size_t{1} << 30, true).records)
        expected[*oracle_.EventIn(*record.value)] = 1;
    const auto applied = oracle_.Applied(kConfig);
    if (!applied) return std::printf("%s\n", applied.error().message.c_str()), 1;
    const auto wrong = oracle_.Differences(*applied, expected);
    for (const std::string& one : wrong) std::printf("%s\n", one.c_str());
    return wrong.empty() ? 0 : 1;
  }

  std::string Words(const std::string& of, const Life& life) const {
    return fmt::format("seed {}: {} ended with {}, signal {}\n{}", seed_, of, life.exit_code,
                       life.signal, life.words);
  }

  const uint64_t seed_;
  const Disk::Owned disk_ = Disk::Make();
  const Cluster::Owned cluster_ = Cluster::Make();
  test::Oracle oracle_{1};
  int kills_ = 0;
};

TEST(SimulatedTrainer, OneSeedGivesOneDisk) {
  std::set<std::pair<uint64_t, double>> ends;
  for (int run = 0; run < 2; ++run) {
    Scene scene(4);
    EXPECT_EQ(scene.Play(), "");
    ends.emplace(scene.Digest(), scene.hours());
  }
  EXPECT_EQ(ends.size(), 1u);
}

TEST(SimulatedTrainer, EachEventIsLearntOnceOverKillsAndLosses) {
  int kills = 0;
  uint64_t losses = 0;
  double hours = 0;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    Scene scene(seed);
    ASSERT_EQ(scene.Play(), "");
    kills += scene.kills();
    losses += scene.losses();
    hours += scene.hours();
  }
  std::printf("%.2f simulated hours, %d kills, %llu lost requests and answers\n", hours, kills,
              static_cast<unsigned long long>(losses));
  EXPECT_GE(kills, 10);
  EXPECT_GT(losses, 0u);
}

}  // namespace
}  // namespace tacit::sim
