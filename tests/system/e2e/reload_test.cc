// SIGHUP: what a running daemon takes over from its configuration, and what it refuses by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "service.h"

namespace tacit {
namespace {

using test::ReadFile;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;

class ReloadTest : public testing::Test {
 protected:
  ReloadTest() { run_.endless = true; }

  // Replaces a text of the daemon's file, which must be there, or appends one.
  void Edit(std::string_view from, std::string_view to) {
    std::string yaml = ReadFile(dir_ / "store.yaml");
    if (from.empty()) yaml += to;
    if (!from.empty()) {
      ASSERT_NE(yaml.find(from), yaml.npos) << yaml;
      yaml.replace(yaml.find(from), from.size(), to);
    }
    test::WriteFile(dir_ / "store.yaml", yaml);
  }
  // Makes the daemon read its file again, and waits until it has said each of these of it.
  void Hup(Service& daemon, const std::vector<std::string>& until) {
    const size_t before = daemon.process().Err().size();
    daemon.process().Signal(SIGHUP);
    for (const std::string& text : until)
      ASSERT_TRUE(daemon.Until("it says \"" + text + "\" of this reload", [&] {
        return daemon.process().Err().find(text, before) != std::string::npos;
      }));
  }
  bool HasCheckpoint() const {
    const std::string folder = dir_ / "store.checkpoints";
    return std::filesystem::exists(folder) && !std::filesystem::is_empty(folder);
  }

  TempDir dir_;
  SmallRun run_;
};

TEST_F(ReloadTest, WhatMayChangeIsTakenAndWhatMayNotIsNamed) {
  Service daemon(dir_, run_, {"--set", "log.level=info", "--set", "store.scrub_days=7"});
  ASSERT_TRUE(daemon.WaitFor("/readyz"));
  Hup(daemon, {"SIGHUP: the configuration is as it was"});
  ASSERT_TRUE(daemon.WaitForSteps(1));
  EXPECT_THAT(daemon.process().Err(), Not(HasSubstr("access: ")));
  EXPECT_FALSE(HasCheckpoint());

  Edit("epsilon: 8", "epsilon: 9");
  Edit("{listen: ", "{access_log: true, listen: ");
  Edit("{path: ", "{checkpoints: {every: 1s, keep: 2}, path: ");
  Edit("", "memory: {total_bytes: 1GiB}\n");
  Hup(daemon, {"memory.total_bytes is 1GiB in the file"});
  const std::string said = daemon.process().Err();
  EXPECT_THAT(said, HasSubstr("SIGHUP: serve.access_log is true now, and was false"));
  EXPECT_THAT(said, HasSubstr("SIGHUP: store.checkpoints.every is 1s now, and was empty"));
  EXPECT_THAT(said, HasSubstr("SIGHUP: learners.0.privacy.epsilon is 9 in the file, and stays 8 "
                              "until tacitd is started anew: a start holds it against the store"));
  EXPECT_EQ(daemon.Ask("GET", "/healthz")->status, 200u);
  EXPECT_TRUE(daemon.WaitForWord("access: public GET /healthz 200"));
  EXPECT_TRUE(daemon.Until("the schedule makes a checkpoint", [&] { return HasCheckpoint(); }));
  // Promises are as they were.
  EXPECT_EQ(daemon.Privacy().at("learners").at(0).at("budget").at("epsilon").to_number<double>(),
            8);

  // Keys that stay are named each time; none is taken twice.
  const size_t before = daemon.process().Err().size();
  Edit("access_log: true", "access_log: false");
  Hup(daemon, {"serve.access_log is false now"});
  ASSERT_TRUE(daemon.Until("the rest is told", [&] {
    return daemon.process().Err().find("memory.total_bytes", before) != std::string::npos;
  }));
  const std::string later = daemon.process().Err().substr(before);
  EXPECT_THAT(later, HasSubstr("learners.0.privacy.epsilon is 9 in the file"));
  EXPECT_THAT(later, Not(HasSubstr("store.checkpoints.every")));
  EXPECT_EQ(daemon.Stop()->exit_code, 0);
}

// The planted faults: files that a start would refuse.
TEST_F(ReloadTest, ABadFileChangesNothingAndSaysWhy) {
  Service daemon(dir_, run_, {"--set", "log.level=info"});
  ASSERT_TRUE(daemon.WaitFor("/readyz"));
  const std::string good = ReadFile(dir_ / "store.yaml");
  const auto refused = [&](const std::string& why) {
    Hup(daemon, {why, "; the configuration stays as it was"});
    test::WriteFile(dir_ / "store.yaml", good);
  };
  Edit("{listen: ", "{access_log: true, lisen: ");
  refused("serve.lisen: unknown key (did you mean 'listen'?)");
  Edit("epsilon: 8", "epsilon: -8");
  refused("learners[0].privacy.epsilon");
  Edit("", "a: [b\n");
  refused("not YAML");
  ASSERT_TRUE(std::filesystem::remove(dir_ / "store.yaml"));
  refused("store.yaml: ");
  // A pipe that nobody writes to does not hold the daemon up.
  ASSERT_TRUE(std::filesystem::remove(dir_ / "store.yaml"));
  ASSERT_EQ(::mkfifo((dir_ / "store.yaml").c_str(), 0600), 0);
  Hup(daemon,
      {"store.yaml: cannot be read: is not a regular file", "; the configuration stays as it was"});
  ASSERT_TRUE(std::filesystem::remove(dir_ / "store.yaml"));
  test::WriteFile(dir_ / "store.yaml", good);
  EXPECT_THAT(daemon.process().Err(), Not(HasSubstr("is true now")));
  ASSERT_TRUE(daemon.WaitForSteps(1));
  Hup(daemon, {"SIGHUP: the configuration is as it was"});
  EXPECT_EQ(daemon.Stop()->exit_code, 0);
}

// A level that is taken over hides what comes after it, and the next shows it again.
TEST_F(ReloadTest, AServerOfCheckpointsTakesOverToo) {
  run_.endless = false;
  test::WriteSmallLog(dir_, 1, 2000, 1);
  ASSERT_EQ(test::Run({TACITD, "--config", run_.WriteConfig(dir_), "--until-end"}).exit_code, 0);
  Service server(dir_, run_, {"--serve-only", "--checkpoint", dir_ / "store"});
  ASSERT_TRUE(server.WaitFor("/readyz"));
  Edit("level: warning", "level: info");
  Edit("{listen: ", "{access_log: true, listen: ");
  Hup(server, {"SIGHUP: serve.access_log is true now, and was false"});
  ASSERT_TRUE(server.WaitForWord("SIGHUP: nothing newer than commit"));
  EXPECT_EQ(server.Ask("GET", "/healthz")->status, 200u);
  EXPECT_TRUE(server.WaitForWord("access: public GET /healthz 200"));
  Edit("level: info", "level: error");
  server.process().Signal(SIGHUP);
  // The level before hides the word of its own change: the end of the lines tells of it.
  ASSERT_TRUE(server.Until("no answer is logged any more", [&] {
    const size_t before = server.process().Err().size();
    EXPECT_EQ(server.Ask("GET", "/healthz")->status, 200u);
    return server.process().Err().size() == before;
  }));
  Edit("level: error", "level: info");
  Hup(server, {"SIGHUP: log.level is info now, and was error"});
  EXPECT_EQ(server.Stop()->exit_code, 0);
}

}  // namespace
}  // namespace tacit
