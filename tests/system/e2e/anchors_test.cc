// Heads of a ledger in a file of anchors: written by a daemon and by an operator, signed, and held
// against ledgers that were rolled back, copied or changed. And a ledger's words, wherever they are
// read.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/files/unique_fd.h"
#include "ledger_keys.h"
#include "service.h"

namespace tacit {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;
using test::Ended;
using test::ReadFile;
using test::Service;
using test::SmallRun;
using testing::HasSubstr;

class AnchorsTest : public testing::Test {
 protected:
  AnchorsTest() {
    test::WriteSmallLog(dir_, 4, 1500, 1);
    test::WriteLedgerKey(dir_, "ours");
    test::WriteLedgerKey(dir_, "theirs");
  }

  // Learns from this many days, to their end.
  Ended Learn(int days, std::vector<std::string> more = {}) {
    run_.files = days == 1   ? "day-0.tsv"
                 : days == 2 ? "day-[01].tsv"
                 : days == 3 ? "day-[012].tsv"
                             : "day-*.tsv";
    std::vector<std::string> command = {TACITD,
                                        "--config",
                                        run_.WriteConfig(dir_),
                                        "--until-end",
                                        "--set",
                                        "store.anchors.path=" + anchors_,
                                        "--set",
                                        "store.anchors.key=" + (dir_ / "ours.key")};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }

  Ended Verify(std::vector<std::string> more, const std::string& store = "store") {
    std::vector<std::string> command = {TACIT, "ledger", "verify", "--store", dir_ / store};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }
  Ended VerifyWith(const std::string& key, const std::string& store = "store") {
    return Verify({"--anchors", anchors_, "--public-key", dir_ / (key + ".pub")}, store);
  }

  // Expects that verification fails so, with the status of a store that is refused.
  void Refused(const Ended& ended, const std::string& why) {
    EXPECT_EQ(ended.exit_code, 3) << ended.out;
    EXPECT_THAT(ended.err, HasSubstr(why));
  }

  const test::TempDir dir_;
  const std::string anchors_ = dir_ / "anchors.jsonl";
  SmallRun run_;
};

TEST_F(AnchorsTest, ADaemonAnchorsItsHeadsAndAnOlderCopyIsNamed) {
  // A commit a run, so that the copy comes as far as the store did, on a busy machine too.
  run_.commit_interval_ms = 60'000;
  const Ended first = Learn(1);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  for (const char* name : {"store", "store.witness"})
    fs::copy(dir_ / name, dir_ / (std::string("old-") + name), fs::copy_options::recursive);
  ASSERT_EQ(Learn(2).exit_code, 0);

  const Ended held = VerifyWith("ours");
  EXPECT_EQ(held.exit_code, 0) << held.err;
  EXPECT_THAT(held.out, HasSubstr("the ledger agrees with"));
  EXPECT_THAT(held.out, HasSubstr("each has a good signature of ed25519:"));
  const json::object told =
      test::Json(Verify({"--anchors", anchors_, "--public-key", dir_ / "ours.pub", "--json"}));
  EXPECT_GE(told.at("anchors").at("anchors").to_number<int>(), 2);
  EXPECT_EQ(told.at("anchors").at("newest").at("head"), told.at("head"));
  EXPECT_EQ(told.at("anchors").at("forks_would_show"), true);

  // The older copy agrees with its own witness, and not with the anchors.
  EXPECT_EQ(Verify({}, "old-store").exit_code, 0);
  Refused(VerifyWith("ours", "old-store"), "the ledger was rolled back, or is an older copy");
  // A start names it, too, and learns nothing.
  const Ended start = Learn(2, {"--set", "store.path=" + (dir_ / "old-store"), "--set",
                                "store.witness=" + (dir_ / "old-store.witness")});
  Refused(start, "was rolled back, or is an older copy");
  // Copies that go on by themselves are told by their terms.
  const Ended alone = test::Run({TACITD, "--config", dir_ / "store.yaml", "--until-end", "--set",
                                 "store.path=" + (dir_ / "old-store"), "--set",
                                 "store.witness=" + (dir_ / "old-store.witness"), "--set",
                                 "source.files=[\"" + (dir_ / "day-*.tsv") + "\"]"});
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  Refused(VerifyWith("ours", "old-store"), "the ledger is not the one that was anchored");
}

TEST_F(AnchorsTest, WhatWasChangedInTheFileIsNamed) {
  ASSERT_EQ(Learn(1).exit_code, 0);
  ASSERT_EQ(Learn(2).exit_code, 0);
  ASSERT_EQ(Learn(3).exit_code, 0);
  const std::string whole = ReadFile(anchors_);
  const size_t second = whole.find('\n') + 1;
  Refused(VerifyWith("theirs"), "is signed with another key");
  EXPECT_EQ(Verify({"--anchors", anchors_}).exit_code, 0);
  EXPECT_THAT(Verify({"--anchors", anchors_}).out, HasSubstr("signatures were not looked at"));

  std::string flipped = whole;
  flipped[whole.find("\"head\":\"sha256:") + 20] ^= 1;
  test::WriteFile(anchors_, flipped);
  Refused(Verify({"--anchors", anchors_}), "anchors " + anchors_ + ": line");
  test::WriteFile(anchors_, whole.substr(0, whole.size() - 30));
  Refused(VerifyWith("ours"), "is cut off");
  test::WriteFile(anchors_, whole.substr(second));
  Refused(VerifyWith("ours"), "where anchor 0 is due: lines are missing");
  std::string forged = whole;
  forged[whole.rfind("\"signature\":\"") + 14] ^= 1;
  test::WriteFile(anchors_, forged);
  EXPECT_EQ(VerifyWith("ours").exit_code, 3);
  EXPECT_THAT(Verify({"--anchors", dir_ / "nowhere"}).err, HasSubstr("No such file"));
  test::WriteFile(anchors_, whole);
  EXPECT_EQ(VerifyWith("ours").exit_code, 0);

  // A crash in the middle of a line: the next start goes on from the last whole one.
  test::WriteFile(anchors_, whole.substr(0, whole.size() - 30));
  const Ended after = Learn(4);
  ASSERT_EQ(after.exit_code, 0) << after.err;
  EXPECT_THAT(after.err, HasSubstr("end in the middle of a line"));
  EXPECT_EQ(VerifyWith("ours").exit_code, 0) << VerifyWith("ours").err;
}

TEST_F(AnchorsTest, AnOperatorSignsFromAfar) {
  run_.endless = true;
  const std::string operators = "unix:" + (dir_ / "operators");
  Service daemon(dir_, run_, {"--set", "serve.operator_listen=" + operators});
  ASSERT_TRUE(daemon.WaitForSteps(3));
  const auto sign = [&](const std::string& key) {
    return test::Run(
        {TACIT, "ledger", "sign", "--url", operators, "--key", dir_ / key, "--anchors", anchors_});
  };
  const Ended signed_once = sign("ours.key");
  ASSERT_EQ(signed_once.exit_code, 0) << signed_once.err;
  EXPECT_THAT(signed_once.out, HasSubstr("anchor 0"));
  EXPECT_EQ(sign("theirs.key").exit_code, 0);
  const Ended held =
      test::Run({TACIT, "ledger", "verify", "--url", operators, "--anchors", anchors_,
                 "--public-key", dir_ / "ours.pub", "--public-key", dir_ / "theirs.pub"});
  EXPECT_EQ(held.exit_code, 0) << held.err;
  EXPECT_THAT(held.out, HasSubstr("only a store or checkpoint has its terms"));
  // A key that others may read is none.
  ASSERT_EQ(::chmod((dir_ / "ours.key").c_str(), 0644), 0);
  const Ended open = sign("ours.key");
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.err, HasSubstr("--key: " + (dir_ / "ours.key") + ": has mode 0644"));
  EXPECT_EQ(sign("ours.pub").exit_code, 2);
  EXPECT_EQ(daemon.Stop()->exit_code, 0);
}

// A reader of the anchors who locks them stops neither the daemon nor its end, and is told of. The
// head is written once the lock is gone.
TEST_F(AnchorsTest, ALockOfAReaderIsToldOf) {
  test::WriteFile(anchors_, "");
  UniqueFd reader(::open(anchors_.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(reader.get(), LOCK_SH), 0);
  run_.endless = true;
  const std::string operators = "unix:" + (dir_ / "operators");
  const auto start = [&](const std::string& every) {
    return std::make_unique<Service>(
        dir_, run_,
        std::vector<std::string>{"--set", "serve.operator_listen=" + operators, "--set",
                                 "store.anchors.path=" + anchors_, "--set",
                                 "store.anchors.every=" + every, "--set", "log.level=info"});
  };
  const std::string locked = "anchors " + anchors_ + ": another process keeps the file locked";
  auto daemon = start("1s");
  ASSERT_TRUE(daemon->Until("operators are told", [&] {
    const auto ready = http::Fetch(operators + ":/readyz", "GET", "", test::kPatience);
    return ready && ready->status == 200 && ready->body.find(locked) != std::string::npos;
  }));
  const Ended sign = test::Run({TACIT, "ledger", "sign", "--url", operators, "--key",
                                dir_ / "ours.key", "--anchors", anchors_});
  EXPECT_EQ(sign.exit_code, 3);
  EXPECT_THAT(sign.err, HasSubstr(locked));
  const auto ended = daemon->Stop();
  ASSERT_TRUE(ended.has_value()) << "it waits for the lock";
  EXPECT_EQ(ended->exit_code, 0) << ended->err;
  EXPECT_EQ(ReadFile(anchors_), "");

  // A head that was refused is not left for the next interval.
  daemon = start("1h");
  ASSERT_TRUE(daemon->WaitForWord(locked));
  reader = UniqueFd();
  ASSERT_TRUE(daemon->WaitForWord("the ledger's head is anchored again"));
  EXPECT_EQ(daemon->Stop()->exit_code, 0);
  EXPECT_EQ(Verify({"--anchors", anchors_}).exit_code, 0);
}

TEST_F(AnchorsTest, AReportTellsOfItsChecks) {
  ASSERT_EQ(Learn(1).exit_code, 0);
  test::WriteFile(dir_ / "audit.json",
                  R"({"rows":[{"learner":"ctr","kind":"white-box","runs":2000,)"
                  R"("delta":1e-6,"epsilon":{"charged":8,"proved":3.25},)"
                  R"("exceeds":false}],"refused":[],"confidence":0.95,)"
                  R"("exceeds":false,"complete":true,"made_by":"tacit 9"})");
  const auto report = [&](const std::string& format) {
    return test::Run({TACIT, "privacy", "report", "--store", dir_ / "store", "--format", format,
                      "--anchors", anchors_, "--public-key", dir_ / "ours.pub", "--audit",
                      dir_ / "audit.json"});
  };
  for (const char* format : {"markdown", "html"}) {
    const Ended made = report(format);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr("was recomputed: all are right"));
    EXPECT_THAT(made.out, HasSubstr("The ledger agrees with its witness"));
    EXPECT_THAT(made.out, HasSubstr("Heads written down elsewhere: the ledger agrees with"));
    EXPECT_THAT(made.out, HasSubstr("each has a good signature of ed25519:"));
    EXPECT_THAT(made.out, HasSubstr("2,000 runs prove an epsilon of at least 3.25 at delta 1e-06, "
                                    "and 8 was charged"));
    EXPECT_THAT(made.out, HasSubstr("audited by tacit 9"));
    EXPECT_THAT(made.out, HasSubstr("This statement was made by tacit "));
  }
  const json::object object = test::Json(report("json"));
  EXPECT_GE(object.at("anchors").at("anchors").to_number<int>(), 1);
  EXPECT_EQ(object.at("audits").at(0).at("epsilon").at("proved").to_number<double>(), 3.25);

  // Without them it says so, and what does not hold makes no statement.
  const Ended bare = test::Run({TACIT, "privacy", "report", "--store", dir_ / "store"});
  EXPECT_THAT(bare.out, HasSubstr("(anchors) were at hand"));
  EXPECT_THAT(bare.out, HasSubstr("No results of an audit were at hand."));
  test::WriteFile(dir_ / "audit.json", R"({"rows":[],"confidence":0.95,"complete":false})");
  EXPECT_THAT(report("json").err, HasSubstr("was stopped before all runs were made"));
  test::WriteFile(dir_ / "audit.json", "{}");
  EXPECT_THAT(report("json").err, HasSubstr("is nothing that `tacit audit --json` has printed"));
}

// Neighbours are told with the same words, by each command and place.
TEST_F(AnchorsTest, NeighboursAreTheSameInWordsEverywhere) {
  for (const bool users : {false, true}) {
    SCOPED_TRACE(users);
    const std::string name = users ? "users" : "events";
    SmallRun run;
    run.store = name;
    if (users) {
      std::string lines;
      for (int i = 0; i < 2000; ++i)
        lines += R"({"label":)" + std::to_string(i % 2) + R"(,"user":"u)" +
                 std::to_string(i % 500) + R"(","features":{"I1":)" + std::to_string(i % 7) +
                 "}}\n";
      test::WriteFile(dir_ / "users.jsonl", lines);
      run.files = "users.jsonl";
      run.source = ", format: json";
      run.privacy = "{unit: user, epsilon: 8, delta: 1.0e-6}";
      run.max_participations = 4;
    } else {
      run.files = "day-0.tsv";
    }
    const std::string operators = "unix:" + (dir_ / (name + "-operators"));
    run.listen = "unix:" + (dir_ / "socket");
    Service daemon(dir_, run, {"--set", "serve.operator_listen=" + operators});
    ASSERT_TRUE(daemon.WaitForSteps(2));
    const json::object exported =
        test::Json(test::Run({TACIT, "ledger", "export", "--url", operators}));
    const std::string words(exported.at("learners").at(0).at("neighbours").as_string());
    EXPECT_THAT(words, HasSubstr(users ? "all records of one user" : "the content of one event"));
    EXPECT_EQ(daemon.Privacy().at("learners").at(0).at("neighbours").as_string(), words);
    const auto report = [&](const std::string& format) {
      return test::Run({TACIT, "privacy", "report", "--url", operators, "--format", format});
    };
    EXPECT_EQ(test::Json(report("json")).at("learners").at(0).at("neighbours").as_string(), words);
    EXPECT_THAT(report("markdown").out, HasSubstr(words));
    EXPECT_THAT(report("html").out, HasSubstr(words));
    EXPECT_EQ(daemon.Stop()->exit_code, 0);
  }
}

}  // namespace
}  // namespace tacit
