// Strangers who hold connections, and who send the largest requests there can be: training
// continues, and the daemon keeps within the memory it was given.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <thread>

#include "service.h"
#include "unit/http/raw_connection.h"

namespace tacit {
namespace {

using http::RawConnection;
using test::Eventually;
using test::kPatience;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;

// A daemon with this many open files allowed, soft and hard.
std::vector<std::string> Limited(int soft, int hard, const std::string& config) {
  return {"/bin/sh",
          "-c",
          fmt::format("ulimit -Sn {0} && ulimit -Hn {1} && exec \"$0\" \"$@\"", soft, hard),
          TACITD,
          "--config",
          config};
}

testing::AssertionResult Answers(const std::string& url) {
  return Eventually(url + " is ready", [&] {
    const auto answer = http::Fetch(url + ":/readyz", "GET", "", kPatience);
    return answer && answer->status == 200;
  });
}

TEST(FileLimitTest, ConnectionsTakeNothingFromTheStore) {
  TempDir dir;
  test::WriteSmallLog(dir, 3, 30'000, 1);
  SmallRun run;
  run.listen = "unix:" + (dir / "socket");
  run.batch = 64;
  run.more = "log: {level: info}\n";
  std::string config = test::ReadFile(run.WriteConfig(dir));
  const std::string quiet = "log: {level: warning}\n";
  config.erase(config.find(quiet), quiet.size());
  config.insert(config.find("serve: {") + 8,
                fmt::format("operator_listen: \"unix:{}\", ", dir / "operators"));
  test::WriteFile(dir / "store.yaml", config);
  test::Process daemon(Limited(300, 600, dir / "store.yaml"));
  ASSERT_TRUE(Answers("unix:" + (dir / "operators"))) << daemon.Err();
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (int i = 0; i < 650; ++i) idle.push_back(std::make_unique<RawConnection>(run.listen));
  // All that is there is learnt and committed while they stand.
  const uint64_t steps = (90'000 + 63) / 64;
  uint64_t seen = 0;
  const auto look = [&] {
    const auto answer =
        http::Fetch("unix:" + (dir / "operators") + ":/v1/privacy", "GET", "", kPatience);
    ASSERT_TRUE(answer.has_value()) << answer.error().message << daemon.Err();
    ASSERT_EQ(answer->status, 200u) << answer->body;
    const auto told = test::ParseJson(answer->body);
    seen = told.at("learners").at(0).at("steps").to_number<uint64_t>();
    ASSERT_THAT(daemon.Err() + daemon.Out(), testing::Not(HasSubstr("training ends")));
  };
  // There is much to be learnt, and a small batch.
  EXPECT_TRUE(Eventually(
      "everything is learnt",
      [&] {
        look();
        return seen >= steps || HasFatalFailure();
      },
      4 * kPatience));
  EXPECT_EQ(seen, steps);
  EXPECT_TRUE(Answers("unix:" + (dir / "operators")));
  const std::string said = daemon.Err() + daemon.Out();
  EXPECT_THAT(said, HasSubstr("files: at most 600 open"));
  EXPECT_THAT(said, HasSubstr("connections instead of serve.max_connections"));
  daemon.Signal(SIGTERM);
  const auto ended = daemon.Wait();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
}

TEST(FileLimitTest, OneThatIsTooSmallIsRefusedWithWhatToDo) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 100, 1);
  SmallRun run;
  run.listen = "unix:" + (dir / "socket");
  const test::Ended ended = test::Run(Limited(100, 100, run.WriteConfig(dir)));
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("the limit on open files is 100, and at least 272 are needed"));
  EXPECT_THAT(ended.err, HasSubstr("LimitNOFILE="));
}

double PeakMiB(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  return 0;
}

// The least that would do for a configuration, as it says when it is refused.
uint64_t LeastMiB(const std::string& config) {
  const test::Ended ended = test::Run(
      {TACITD, "--config", config, "--check-config", "--set", "memory.total_bytes=64MiB"});
  const std::string before = "the least that would do is ";
  const size_t at = ended.err.find(before);
  EXPECT_NE(at, std::string::npos) << ended.err;
  return at == std::string::npos ? 0 : std::stoull(ended.err.substr(at + before.size()));
}

// Bodies as large as they may be, of what made the largest trees: numbers, and rows without end.
std::vector<std::string> LargestBodies() {
  std::vector<std::string> bodies;
  for (const std::string piece : {"0,", "{},", "[[]],", "\"\\u0061\",", "{\"features\":{}},"}) {
    std::string body = R"({"rows":[)";
    while (body.size() + piece.size() + 4 < (8u << 20)) body += piece;
    body.pop_back();
    bodies.push_back(body + "]}");
  }
  std::string text = R"({"rows":[{"features":{"C1":")";
  while (text.size() + 10 < (8u << 20)) text += "\\u0061";
  bodies.push_back(text + "\"}}]}");
  std::string behind = R"({"rows":[)";
  while (behind.size() + 40 < (8u << 20)) behind += "{\"features\":{\"I1\":1}},";
  behind.pop_back();
  bodies.push_back(behind + R"(],"learner":"ctr"})");
  return bodies;
}

TEST(MemoryTest, TheTotalHoldsWhateverIsAsked) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 20'000, 1);
  SmallRun run;
  run.listen = "127.0.0.1:0";
  std::string config = test::ReadFile(run.WriteConfig(dir));
  config.insert(config.find("serve: {") + 8, "threads: 4, ");
  const std::string quiet = "log: {level: warning}\n";
  config.erase(config.find(quiet), quiet.size());
  test::WriteFile(dir / "store.yaml", config);
  const uint64_t total = LeastMiB(dir / "store.yaml");
  ASSERT_GT(total, 64u);
  test::Process daemon({TACITD, "--config", dir / "store.yaml", "--set",
                        fmt::format("memory.total_bytes={}MiB", total)});
  std::string address;
  ASSERT_TRUE(Eventually("it says where it serves", [&] {
    const std::string said = daemon.Err();
    const size_t at = said.find("serving on ");
    if (at == std::string::npos || said.find('\n', at) == std::string::npos) return false;
    address = said.substr(at + 11, said.find('\n', at) - at - 11);
    return true;
  })) << daemon.Err();
  const std::vector<std::string> bodies = LargestBodies();
  std::vector<std::thread> hostile;
  std::atomic<int> answered = 0;
  for (size_t t = 0; t < 4; ++t)
    hostile.emplace_back([&, t] {
      for (size_t i = 0; i < 3 * bodies.size(); ++i) {
        const auto answer = http::Fetch("http://" + address + "/v1/score", "POST",
                                        bodies[(i + t) % bodies.size()], kPatience);
        // 408: the machine did not let this thread send fast enough.
        const auto status = answer ? answer->status : 0;
        if (status == 400 || status == 503 || status == 408) ++answered;
      }
    });
  for (std::thread& thread : hostile) thread.join();
  EXPECT_EQ(answered, static_cast<int>(12 * bodies.size()));
  const double peak = PeakMiB(daemon.pid());
  EXPECT_GT(peak, 30);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(peak, static_cast<double>(total));
#else
  EXPECT_LE(peak, 4 * static_cast<double>(total));  // sanitizers keep books of their own
#endif
  RecordProperty("peak_mib", fmt::format("{:.0f} of {}", peak, total));
}

}  // namespace
}  // namespace tacit
