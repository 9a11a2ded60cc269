// Versions of a server of checkpoints, as an operator chooses them while callers ask.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "service.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
using test::Ended;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;

constexpr const char* kRows =
    R"({"rows":[{"features":{"I1":3,"C1":"68fd1e64","C2":"x"}},{"features":{"C7":"y"}}]})";

class VersionsE2eTest : public testing::Test {
 protected:
  VersionsE2eTest() {
    SmallRun run;
    run.endless = true;
    daemon_.emplace(dir_, run,
                    std::vector<std::string>{"--set", "serve.operator_listen=" + at_daemon_});
    for (int i = 0; i < 3; ++i) MakeVersion();
    StartServer();
  }
  // Makes a checkpoint of a newer commit than any before.
  void MakeVersion() {
    const uint64_t steps = versions_.empty() ? 0 : Steps(*daemon_);
    ASSERT_TRUE(daemon_->WaitForSteps(steps + 3));
    const Ended made =
        test::Run({TACIT, "checkpoint", "create", "--url", at_daemon_, "--kind", "release"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    std::set<uint64_t> found;
    for (const auto& entry : fs::directory_iterator(dir_ / "store.checkpoints")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("release-")) found.insert(std::stoull(name.substr(8)));
    }
    versions_.assign(found.begin(), found.end());
  }
  void StartServer() {
    server_.reset();
    server_.emplace(
        there_, SmallRun(),
        std::vector<std::string>{"--serve-only", "--checkpoint", dir_ / "store.checkpoints",
                                 "--set", "serve.operator_listen=" + at_server_, "--set",
                                 "serve.versions.file=" + (there_ / "choice.json"), "--set",
                                 "log.level=info"});
    ASSERT_TRUE(server_->WaitFor("/readyz"));
  }
  static uint64_t Steps(Service& service) {
    return service.Privacy().at("learners").at(0).at("steps").to_number<uint64_t>();
  }
  Ended Versions(std::vector<std::string> words) {
    words.insert(words.begin(), {TACIT, "versions"});
    words.insert(words.end(), {"--url", at_server_});
    return test::Run(words);
  }
  uint64_t VersionFor(const std::string& path, const http::FieldList& fields = {}) {
    const auto answer =
        http::Fetch(server_->url() + ":" + path, "POST", kRows, test::kPatience, fields);
    if (!answer || answer->status != 200) return 0;
    return test::ParseJson(answer->body).at("model").at("version").to_number<uint64_t>();
  }

  TempDir dir_, there_;
  const std::string at_daemon_ = "unix:" + (dir_ / "operator");
  const std::string at_server_ = "unix:" + (there_ / "operator");
  std::optional<Service> daemon_, server_;
  std::vector<uint64_t> versions_;  // ascending
};

// Callers ask without a pause through all of it, and each is answered.
TEST_F(VersionsE2eTest, RolledBackItStaysUntilToldOtherwise) {
  ASSERT_EQ(versions_.size(), 3u);
  const uint64_t first = versions_[0], second = versions_[1], third = versions_[2];
  EXPECT_EQ(VersionFor("/v1/score"), third);
  EXPECT_EQ(VersionFor(fmt::format("/v1/score?version={}", second)), second);
  const auto closed = server_->Ask("POST", fmt::format("/v1/score?version={}", first), kRows);
  EXPECT_EQ(closed->status, 404u);
  EXPECT_THAT(closed->body, HasSubstr(fmt::format("open here are {}, {}", second, third)));
  EXPECT_EQ(server_->Ask("GET", "/v1/versions")->status, 403u);  // the operator's

  std::atomic<bool> stop = false;
  std::vector<std::string> failures;
  std::thread client([&] {
    while (!stop)
      if (const auto answer = server_->Ask("POST", "/v1/score", kRows);
          !answer || answer->status != 200)
        failures.push_back(answer ? answer->body : answer.error().message);
  });
  const uint64_t steps = Steps(*server_);
  const Ended back = Versions({"serve", std::to_string(first)});
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_THAT(back.out, HasSubstr("served, held"));
  EXPECT_EQ(VersionFor("/v1/score"), first);
  // Serving an older one takes back nothing of what was spent.
  EXPECT_EQ(Steps(*server_), steps);
  MakeVersion();
  const uint64_t fourth = versions_[3];
  server_->process().Signal(SIGHUP);
  EXPECT_TRUE(server_->WaitForWord("the operator has chosen"));
  EXPECT_EQ(VersionFor("/v1/score"), first);
  const auto loaded =
      http::Fetch(at_server_ + ":/v2/repository/models/ctr/load", "POST", "", test::kPatience);
  EXPECT_TRUE(loaded);
  EXPECT_EQ(VersionFor("/v1/score"), first);

  const Ended none = Versions({"serve", "999999999"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr(fmt::format("there are {}, {}", first, second)));
  const Ended too_many = Versions({"canary", std::to_string(second), "--share", "0.5"});
  EXPECT_EQ(too_many.exit_code, 2);
  EXPECT_THAT(too_many.err, HasSubstr("serve.versions.open allows 2"));
  EXPECT_EQ(VersionFor("/v1/score"), first);

  const Ended newest = Versions({"serve", "newest"});
  EXPECT_EQ(newest.exit_code, 0) << newest.err;
  EXPECT_EQ(VersionFor("/v1/score"), fourth);
  stop = true;
  client.join();
  EXPECT_THAT(failures, testing::IsEmpty());
}

// Pruning leaves what another process serves, held or as the newest, and what lies open beside it.
TEST_F(VersionsE2eTest, PruningLeavesWhatIsServed) {
  const uint64_t first = versions_[0];
  ASSERT_EQ(Versions({"serve", std::to_string(first)}).exit_code, 0);
  for (int i = 0; i < 2; ++i) MakeVersion();
  const auto prune = [&] {
    const Ended ended = test::Run(
        {TACIT, "checkpoint", "prune", "--path", dir_ / "store.checkpoints", "--keep", "1"});
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    std::set<uint64_t> left;
    for (const auto& entry : fs::directory_iterator(dir_ / "store.checkpoints"))
      if (const std::string name = entry.path().filename(); name.starts_with("release-"))
        left.insert(std::stoull(name.substr(8)));
    return left;
  };
  // The server has the first, and the newest that it knew of.
  EXPECT_THAT(prune(), testing::ElementsAre(first, versions_[2], versions_[4]));
  EXPECT_EQ(VersionFor("/v1/score"), first);
  EXPECT_EQ(VersionFor(fmt::format("/v1/score?version={}", versions_[2])), versions_[2]);
  // A version that the server has let go of may go.
  ASSERT_EQ(Versions({"serve", "newest"}).exit_code, 0);
  EXPECT_EQ(VersionFor("/v1/score"), versions_[4]);
  EXPECT_THAT(prune(), testing::ElementsAre(versions_[2], versions_[4]));
  EXPECT_EQ(server_->Stop()->exit_code, 0);
  EXPECT_THAT(prune(), testing::ElementsAre(versions_[4]));
}

TEST_F(VersionsE2eTest, ACanaryAndAChoiceOutliveTheProcess) {
  const uint64_t second = versions_[1], third = versions_[2];
  ASSERT_EQ(Versions({"serve", std::to_string(second)}).exit_code, 0);
  const Ended set = Versions({"canary", std::to_string(third), "--share", "0.3"});
  ASSERT_EQ(set.exit_code, 0) << set.err;
  EXPECT_THAT(set.out, HasSubstr("canary, share 0.3"));
  const auto sides = [&] {
    std::vector<uint64_t> versions;
    for (int i = 0; i < 200; ++i)
      versions.push_back(VersionFor("/v1/score", {{"X-Canary-Key", fmt::format("caller-{}", i)}}));
    return versions;
  };
  const std::vector<uint64_t> before = sides();
  const auto taken = std::count(before.begin(), before.end(), third);
  EXPECT_EQ(std::count(before.begin(), before.end(), second) + taken, 200);
  EXPECT_NEAR(static_cast<double>(taken), 60, 5 * std::sqrt(200 * .3 * .7));
  EXPECT_EQ(sides(), before);
  const auto metrics = server_->Ask("GET", "/metrics");
  EXPECT_THAT(metrics->body,
              HasSubstr(fmt::format(
                  "tacit_version_answers_total{{outcome=\"answered\",version=\"{}\"}}", third)));
  StartServer();
  EXPECT_EQ(sides(), before);
  ASSERT_EQ(Versions({"canary", "--end"}).exit_code, 0);
  EXPECT_EQ(VersionFor("/v1/score"), second);
  // A choice that cannot be kept is not forgotten in silence.
  server_.reset();
  fs::remove_all(there_ / "choice.json");
  std::ofstream(there_ / "choice.json") << "{\"lineage\":1}";
  const Ended refused = test::Run({TACITD, "--config", there_ / "store.yaml", "--serve-only",
                                   "--checkpoint", dir_ / "store.checkpoints", "--set",
                                   "serve.versions.file=" + (there_ / "choice.json")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("choice.json: is not what tacitd writes there"));
}

}  // namespace
}  // namespace tacit
