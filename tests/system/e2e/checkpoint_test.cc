// Checkpoints as an operator makes, lists, checks, serves and removes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
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
using testing::IsEmpty;

constexpr const char* kRows =
    R"({"rows":[{"features":{"I1":3,"C1":"68fd1e64","C2":"x"}},{"features":{"C7":"y"}}]})";

Ended Checkpoint(std::vector<std::string> words) {
  words.insert(words.begin(), {TACIT, "checkpoint"});
  return test::Run(words);
}

std::vector<std::string> FoldersIn(const std::string& parent) {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(parent))
    if (!entry.path().filename().string().starts_with('.')) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Daemon, two servers of each kind at once, and the command line: one answer.
TEST(CheckpointTest, BothKindsAnswerAsTheDaemonDoes) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  const std::string at_operator = "unix:" + (dir / "operator");
  Service daemon(dir, SmallRun(), {"--set", "serve.operator_listen=" + at_operator});
  ASSERT_TRUE(daemon.WaitForSteps(8));
  const auto expected = daemon.Ask("POST", "/v1/score", kRows);
  ASSERT_TRUE(expected);
  ASSERT_EQ(expected->status, 200u) << expected->body;
  for (const char* kind : {"full", "release"}) {
    const Ended made = Checkpoint({"create", "--url", at_operator, "--kind", kind});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr(std::string("a ") + kind + " checkpoint of commit"));
  }
  // The public may neither make nor see them.
  EXPECT_EQ(daemon.Ask("POST", "/v1/checkpoints")->status, 403u);
  EXPECT_EQ(daemon.Ask("GET", "/v1/checkpoints")->status, 403u);
  const Ended listed = Checkpoint({"list", "--url", at_operator});
  EXPECT_THAT(listed.out, testing::AllOf(HasSubstr("full"), HasSubstr("release")));

  const std::vector<std::string> folders = FoldersIn(dir / "store.checkpoints");
  ASSERT_EQ(folders.size(), 2u);
  // A folder stands for its newest one of the kind that is asked for, and a full one never for a
  // release.
  for (const auto& [kind, packed] :
       {std::pair("", "full"), {"full", "full"}, {"release", "release"}}) {
    const TempDir elsewhere;
    const std::string file = elsewhere / "one.tar.zst";
    std::vector<std::string> pack{"pack", dir / "store.checkpoints", "--output", file};
    if (*kind != '\0') pack.insert(pack.end(), {"--kind", kind});
    ASSERT_EQ(Checkpoint(pack).exit_code, 0) << kind;
    EXPECT_THAT(Checkpoint({"unpack", file, "--path", elsewhere / "one"}).out,
                HasSubstr(std::string("a ") + packed + " checkpoint of commit"));
  }
  for (const std::string& folder : folders) {
    const bool full = fs::path(folder).filename().string().starts_with("full");
    const TempDir elsewhere;
    const Ended packed =
        Checkpoint({"pack", folder, "--kind", "release", "--output", elsewhere / "one.tar.zst"});
    EXPECT_EQ(packed.exit_code, full ? 2 : 0) << packed.err;
    EXPECT_THAT(packed.err, HasSubstr(full ? folder + " is a full checkpoint" : ""));
  }
  for (const std::string& folder : folders) {
    const Ended whole = Checkpoint({"verify", folder});
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    EXPECT_EQ(whole.err, "");
    const TempDir one_dir, other_dir;  // without the log that the configuration names
    Service one(one_dir, SmallRun(), {"--serve-only", "--checkpoint", folder});
    Service other(other_dir, SmallRun(), {"--serve-only", "--checkpoint", folder});
    for (Service* server : {&one, &other}) {
      ASSERT_TRUE(server->WaitFor("/readyz"));
      const auto answer = server->Ask("POST", "/v1/score", kRows);
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->body, expected->body);
      EXPECT_EQ(server->Ask("GET", "/v1/privacy")->body, daemon.Ask("GET", "/v1/privacy")->body);
    }
    const Ended ledger = test::Run({TACIT, "ledger", "verify", "--checkpoint", folder});
    EXPECT_EQ(ledger.exit_code, 0) << ledger.err;
    EXPECT_THAT(ledger.err, testing::Not(HasSubstr("no witness")));
    const Ended trained = test::Run(
        {TACITD, "--config", dir / "store.yaml", "--set", "store.path=" + folder, "--until-end"});
    EXPECT_EQ(trained.exit_code, 3) << trained.err;
  }
}

TEST(CheckpointTest, DamageIsNamedAndNothingIsServedFromIt) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  const std::string at_operator = "unix:" + (dir / "operator");
  {
    Service daemon(dir, SmallRun(), {"--set", "serve.operator_listen=" + at_operator});
    ASSERT_TRUE(daemon.WaitForSteps(8));
    ASSERT_EQ(Checkpoint({"create", "--url", at_operator}).exit_code, 0);
  }
  const std::string folder = FoldersIn(dir / "store.checkpoints").at(0);
  std::ofstream(folder + "/CURRENT", std::ios::app) << "x";
  const Ended damaged = Checkpoint({"verify", folder});
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.err, HasSubstr(folder + "/CURRENT"));
  const Ended served =
      test::Run({TACITD, "--config", dir / "store.yaml", "--serve-only", "--checkpoint", folder});
  EXPECT_NE(served.exit_code, 0);
  EXPECT_THAT(served.err, HasSubstr(folder + "/CURRENT"));
  // One that cannot be read may be the newest: its folder does not stand for another.
  test::WriteFile(folder + "/checkpoint.manifest", "no manifest");
  const Ended unread =
      Checkpoint({"pack", dir / "store.checkpoints", "--output", dir / "full.tar.zst"});
  EXPECT_EQ(unread.exit_code, 3) << unread.err;
  EXPECT_THAT(unread.err, HasSubstr("name the checkpoint that you mean"));
}

// A release of a learner that adds no noise is for nobody else, and its maker or checker is
// told.
TEST(CheckpointTest, AReleaseWithoutNoiseIsWarnedOf) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 2000, 3);
  const std::string at_operator = "unix:" + (dir / "operator");
  const auto warned = HasSubstr("adds no noise and promises nothing");
  SmallRun run;
  run.mechanism = "{kind: none}";
  run.privacy = "{unit: event, epsilon: .inf, delta: 1.0e-6}";
  Service daemon(dir, run, {"--set", "serve.operator_listen=" + at_operator});
  ASSERT_TRUE(daemon.WaitForSteps(8));
  for (const char* kind : {"full", "release"}) {
    const bool is_release = kind == std::string_view("release");
    const Ended made = Checkpoint({"create", "--url", at_operator, "--kind", kind});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(made.err, is_release ? testing::Matcher<std::string>(warned) : IsEmpty());
  }
  for (const std::string& folder : FoldersIn(dir / "store.checkpoints")) {
    const Ended whole = Checkpoint({"verify", folder});
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    const bool is_release = fs::path(folder).filename().string().starts_with("release");
    EXPECT_THAT(whole.err, is_release ? testing::Matcher<std::string>(warned) : IsEmpty());
  }
}

// Requests come without a pause while SIGHUP moves a server from one checkpoint to the next: each
// is answered, of one commit or the other.
TEST(CheckpointTest, SighupMovesToANewerOneAndDropsNoRequest) {
  TempDir dir;
  SmallRun run;
  run.endless = true;
  const std::string at_operator = "unix:" + (dir / "operator");
  Service daemon(dir, run, {"--set", "serve.operator_listen=" + at_operator});
  ASSERT_TRUE(daemon.WaitForSteps(2));
  ASSERT_EQ(Checkpoint({"create", "--url", at_operator, "--kind", "release"}).exit_code, 0);
  const std::string folder = FoldersIn(dir / "store.checkpoints").at(0);
  const TempDir there;
  SmallRun serving;
  Service server(there, serving,
                 {"--serve-only", "--checkpoint", folder, "--set", "log.level=info"});
  ASSERT_TRUE(server.WaitFor("/readyz"));

  std::atomic<bool> stop = false;
  std::vector<uint64_t> versions;
  std::atomic<uint64_t> newest = 0;  // of them
  std::vector<std::string> failures;
  std::thread client([&] {
    while (!stop) {
      const auto answer = server.Ask("POST", "/v1/score", kRows);
      if (!answer || answer->status != 200) {
        failures.push_back(answer ? answer->body : answer.error().message);
        continue;
      }
      versions.push_back(
          test::ParseJson(answer->body).at("model").at("version").to_number<uint64_t>());
      newest = versions.back();
    }
  });
  for (int move = 0; move < 3; ++move) {
    const uint64_t had = newest;
    const uint64_t before = server.Privacy().at("learners").at(0).at("steps").to_number<uint64_t>();
    EXPECT_TRUE(daemon.WaitForSteps(before + 5));
    EXPECT_EQ(Checkpoint({"create", "--url", at_operator, "--kind", "release"}).exit_code, 0);
    server.process().Signal(SIGHUP);
    EXPECT_TRUE(server.WaitForSteps(before + 1));
    // A busy machine may leave the client out for as long as all moves take.
    EXPECT_TRUE(server.Until("the client has a newer answer", [&] { return newest > had; }));
  }
  stop = true;
  client.join();
  EXPECT_THAT(failures, testing::IsEmpty());
  EXPECT_TRUE(std::is_sorted(versions.begin(), versions.end()));
  EXPECT_GE(std::set<uint64_t>(versions.begin(), versions.end()).size(), 2u);
  // Nothing newer, then something damaged: it goes on as it is.
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(server.WaitForWord("nothing newer than commit"));
  const auto last = server.Ask("POST", "/v1/score", kRows);
  EXPECT_TRUE(daemon.WaitForSteps(
      server.Privacy().at("learners").at(0).at("steps").to_number<uint64_t>() + 5));
  EXPECT_EQ(Checkpoint({"create", "--url", at_operator, "--kind", "release"}).exit_code, 0);
  std::ofstream(FoldersIn(dir / "store.checkpoints").back() + "/CURRENT", std::ios::app) << "x";
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(server.WaitForWord("goes on being served"));
  EXPECT_EQ(server.Ask("POST", "/v1/score", kRows)->body, last->body);
}

// The schedule makes them while training goes on, and keeps as many as it is told.
TEST(CheckpointTest, AScheduleMakesAndPrunes) {
  TempDir dir;
  SmallRun run;
  run.endless = true;
  Service daemon(dir, run,
                 {"--set", "store.checkpoints.every=1s", "--set", "store.checkpoints.keep=2"});
  const std::string parent = dir / "store.checkpoints";
  std::string first;
  ASSERT_TRUE(daemon.Until("there is a checkpoint", [&] {
    if (!fs::exists(parent) || FoldersIn(parent).empty()) return false;
    first = FoldersIn(parent).front();
    return true;
  }));
  ASSERT_TRUE(daemon.Until("the first one is removed", [&] { return !fs::exists(first); }));
  daemon.Stop();
  const std::vector<std::string> left = FoldersIn(parent);
  EXPECT_GE(left.size(), 1u);
  EXPECT_LE(left.size(), 3u);  // one may just have been made
  for (const std::string& folder : left)
    EXPECT_EQ(Checkpoint({"verify", folder}).exit_code, 0) << folder;
}

// The schedule and the forgetting of users look at every folder there, on threads of their own.
TEST(CheckpointTest, AFolderInAManifestsPlaceEndsNoDaemon) {
  TempDir dir;
  SmallRun run;
  run.endless = true;
  const std::string parent = dir / "store.checkpoints";
  fs::create_directories(parent + "/broken/checkpoint.manifest");
  const std::string at_operator = "unix:" + (dir / "operator");
  Service daemon(
      dir, run,
      {"--set", "store.checkpoints.every=1s", "--set", "serve.operator_listen=" + at_operator});
  ASSERT_TRUE(daemon.Until("there is a checkpoint beside it",
                           [&] { return FoldersIn(parent).size() > 1; }));
  const Ended listed = Checkpoint({"list", "--url", at_operator});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out + listed.err, HasSubstr(parent + "/broken/checkpoint.manifest"));
  const auto ended = daemon.Stop();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
}

}  // namespace
}  // namespace tacit
