#include "system/kafka/lag.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "http/client.h"
#include "support/eventually.h"
#include "support/process.h"
#include "system/kafka/broker.h"

namespace tacit::test {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPause(10);  // between two looks
constexpr int kReplicasBehind = 3;

uint64_t VersionOf(const std::string& url, const std::string& metric) {
  const auto answer = http::Fetch(url + ":/metrics", "GET", "", std::chrono::seconds(5));
  const std::string page = answer ? "\n" + answer->body : "";
  const size_t at = page.find("\n" + metric + " ");
  return at == std::string::npos
             ? 0
             : static_cast<uint64_t>(std::stod(page.substr(at + metric.size() + 2)));
}

struct Follower {
  std::string url;
  std::unique_ptr<Process> process;
  uint64_t shown = 0;
  std::vector<double> seconds;  // each commit that was seen to appear here
};

}  // namespace

std::vector<std::string> MeasureLag(const std::string& config, std::chrono::seconds most) {
  const TempDir dir;
  Broker broker;
  broker.CreateTopic("model", 4, {{"cleanup.policy", "compact"}});
  const auto start = [&](const std::string& name, bool replica) {
    std::vector<std::string> command = {TACITD, "--config", config};
    const std::vector<std::string> settings = {"feed.topic=model",
                                               "kafka.bootstrap.servers=" + broker.bootstrap(),
                                               "serve.listen=unix:" + (dir / name),
                                               "serve.operator_listen=",
                                               "store.path=" + (dir / (name + "-store")),
                                               "store.witness="};
    for (const std::string& setting : settings) {
      command.emplace_back("--set");
      command.push_back(setting);
    }
    if (replica) command.emplace_back("--replica");
    return std::make_unique<Process>(command);
  };
  std::vector<Follower> followers(kReplicasBehind);
  for (int i = 0; i < kReplicasBehind; ++i) {
    followers[static_cast<size_t>(i)].url = "unix:" + (dir / fmt::format("replica-{}", i));
    followers[static_cast<size_t>(i)].process = start(fmt::format("replica-{}", i), true);
  }
  const std::string trainer_url = "unix:" + (dir / "trainer");
  const auto trainer = start("trainer", false);
  std::map<uint64_t, Steady::time_point> served;  // by the trainer, since when
  const auto deadline = Steady::now() + most;
  auto moved = Steady::now();
  constexpr std::chrono::seconds kStill(10);
  while (Steady::now() < deadline && Steady::now() - moved < kStill) {
    const uint64_t version = VersionOf(trainer_url, "tacit_commit_version");
    const auto now = Steady::now();
    if (version > 0 && served.try_emplace(version, now).second) moved = now;
    for (Follower& follower : followers) {
      const uint64_t shown = VersionOf(follower.url, "tacit_replica_version");
      if (shown > follower.shown) moved = Steady::now();
      for (auto at = served.upper_bound(follower.shown); at != served.end() && at->first <= shown;
           ++at)
        follower.seconds.push_back(
            std::chrono::duration<double>(Steady::now() - at->second).count());
      follower.shown = std::max(follower.shown, shown);
    }
    if (served.empty()) moved = now;
    std::this_thread::sleep_for(kPause);
  }
  std::vector<std::string> lines;
  for (Follower& follower : followers) {
    std::ranges::sort(follower.seconds);
    EXPECT_FALSE(follower.seconds.empty()) << follower.process->Err();
    if (follower.seconds.empty()) return lines;
    const auto at = [&](double share) {
      return follower
          .seconds[static_cast<size_t>(share * static_cast<double>(follower.seconds.size() - 1))];
    };
    lines.push_back(fmt::format(
        "{} commits seen at a replica after: median {:.2f} s, 95 % {:.2f} s, most {:.2f} s",
        follower.seconds.size(), at(0.5), at(0.95), at(1)));
  }
  trainer->Signal(SIGTERM);
  const auto ended = trainer->Wait();
  EXPECT_TRUE(ended && ended->exit_code == 0) << trainer->Err();
  return lines;
}

}  // namespace tacit::test
