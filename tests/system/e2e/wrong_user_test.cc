// A user who may not see a store or its witness is told so, and never that there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "support/small_run.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
using test::Ended;
using test::SmallRun;
using test::TempDir;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Runs a program as a user who is neither root nor this one, if that can be.
Ended RunAsStranger(std::vector<std::string> command) {
  if (geteuid() == 0)
    command.insert(command.begin(),
                   {"/usr/bin/env", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  return test::Run(std::move(command));
}

class WrongUserTest : public testing::Test {
 protected:
  void SetUp() override {
    test::WriteSmallLog(dir_, 1, 2000, 3);
    config_ = SmallRun().WriteConfig(dir_);
    const Ended learnt = test::Run({TACITD, "--config", config_, "--until-end"});
    ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
    ASSERT_EQ(chmod((dir_ / ".").c_str(), 0755), 0);
    fs::create_directories(dir_ / "s");
  }
  void TearDown() override {
    for (const std::string& folder : closed_) chmod(folder.c_str(), 0755);
  }
  void Close(const std::string& folder) {
    ASSERT_EQ(chmod(folder.c_str(), 0), 0);
    closed_.push_back(folder);
  }
  void OpenToAll(const std::string& folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      fs::permissions(entry,
                      fs::perms::others_read |
                          (entry.is_directory() ? fs::perms::others_exec : fs::perms::none),
                      fs::perm_options::add);
    fs::permissions(folder, fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
  }

  std::vector<std::vector<std::string>> CommandsThatRead(const std::string& store) const {
    const std::string set = "store.path=" + store;
    return {{TACIT, "ledger", "show", "--store", store},
            {TACIT, "ledger", "verify", "--store", store},
            {TACIT, "ledger", "forecast", "--store", store, "--epsilon", "4"},
            {TACIT, "ledger", "recover", "--store", store},
            {TACIT, "privacy", "report", "--store", store},
            {TACIT, "store", "verify", "--store", store},
            {TACIT, "store", "migrate", "--config", config_, "--set", set, "--dry-run"},
            {TACIT, "store", "reshard", "--config", config_, "--set", set},
            {TACIT, "query", "score", "--checkpoint", store, "--config", config_, "--learner",
             "ctr", "--tsv", dir_ / "day-0.tsv"},
            {TACITD, "--config", config_, "--set", "serve.listen=unix:" + (dir_ / "socket"),
             "--serve-only", "--checkpoint", store}};
  }

  void ExpectDenied(const std::vector<std::string>& command, const std::string& path) const {
    const std::string words = testing::PrintToString(command);
    const Ended ended = RunAsStranger(command);
    EXPECT_EQ(ended.exit_code, 2) << words << ended.out;
    EXPECT_THAT(ended.err, AllOf(HasSubstr(path), HasSubstr("Permission denied"),
                                 Not(HasSubstr("there is no")), Not(HasSubstr("no witness")),
                                 Not(HasSubstr("stand still")), Not(HasSubstr("damaged"))))
        << words;
  }

  const TempDir dir_;
  std::string config_;
  std::vector<std::string> closed_;
};

TEST_F(WrongUserTest, AStoreThatMayNotBeReadIsThere) {
  const std::string store = dir_ / "store";
  OpenToAll(store);
  chmod((dir_ / "store.witness").c_str(), 0644);
  ASSERT_EQ(RunAsStranger({TACIT, "ledger", "verify", "--store", store}).exit_code, 0);
  Close(store);
  for (const auto& command : CommandsThatRead(store)) ExpectDenied(command, store);
}

TEST_F(WrongUserTest, AStoreInAFolderThatMayNotBeEnteredMayBeThere) {
  fs::rename(dir_ / "store", dir_ / "s/store");
  fs::rename(dir_ / "store.witness", dir_ / "s/store.witness");
  Close(dir_ / "s");
  for (const auto& command : CommandsThatRead(dir_ / "s/store"))
    ExpectDenied(command, dir_ / "s/store");
  ExpectDenied({TACIT, "checkpoint", "list", "--path", dir_ / "s/checkpoints"},
               dir_ / "s/checkpoints");
}

TEST_F(WrongUserTest, OneUnreadableFileIsNoDamage) {
  const std::string store = dir_ / "store";
  OpenToAll(store);
  chmod((dir_ / "store.witness").c_str(), 0644);
  chmod((store + "/CURRENT").c_str(), 0);
  for (const auto& command : CommandsThatRead(store))
    if (command[2] != "recover") ExpectDenied(command, store);
  // It takes what it can read, and names the rest.
  EXPECT_THAT(RunAsStranger({TACIT, "ledger", "recover", "--store", store}).out,
              AllOf(HasSubstr("/CURRENT: Permission denied"), HasSubstr("witness has seen")));
}

// An older copy of the store may lie there: only the witness knows what was spent.
TEST_F(WrongUserTest, AWitnessThatMayNotBeSeenIsNoMissingOne) {
  const std::string store = dir_ / "s/store";
  fs::create_directories(dir_ / "s-witness");
  fs::rename(dir_ / "store", store);
  fs::rename(dir_ / "store.witness", dir_ / "s-witness/store.witness");
  OpenToAll(dir_ / "s");
  Close(dir_ / "s-witness");
  for (const auto& command : CommandsThatRead(store))
    if (command[2] != "migrate" && command[2] != "reshard")
      ExpectDenied(command, dir_ / "s-witness/store.witness");
}

}  // namespace
}  // namespace tacit
