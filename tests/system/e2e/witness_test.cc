// Tests where a store's proof lies, and what becomes of it while the daemon runs.
#include "store/witness/witness.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "service.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
using test::Ended;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;

Ended Learn(const TempDir& dir, const SmallRun& run, std::vector<std::string> more = {},
            std::vector<std::string> environment = {}) {
  std::vector<std::string> command{TACITD, "--config", run.WriteConfig(dir), "--until-end"};
  command.insert(command.end(), more.begin(), more.end());
  return test::Run(command, std::move(environment));
}

TEST(WitnessTest, AServiceNamesItsPlace) {
  const TempDir dir;
  test::WriteSmallLog(dir, 1, 300, 1);
  // systemd's, which is not read here.
  const std::string manager = "NOTIFY_SOCKET=" + dir / "notify";
  const Ended refused = Learn(dir, {}, {}, {manager});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("store.witness: not set"));
  EXPECT_FALSE(fs::exists(dir / "store"));
  const std::string chosen = "store.witness=" + dir / "apart/store.witness";
  const Ended learnt = Learn(dir, {}, {"--set", chosen}, {manager});
  EXPECT_EQ(learnt.exit_code, 0) << learnt.err;
  EXPECT_TRUE(fs::exists(dir / "apart/store.witness"));
}

TEST(WitnessTest, AStartWarnsWhereItLiesBesideTheStore) {
  const TempDir dir;
  test::WriteSmallLog(dir, 1, 300, 1);
  const Ended beside = Learn(dir, {});
  EXPECT_THAT(beside.out + beside.err, HasSubstr("lies in one folder with store"));
  SmallRun apart;
  apart.store = "other";
  const std::vector<std::string> set{"--set", "store.witness=" + dir / "apart/other.witness",
                                     "--set", "log.level=info"};
  const Ended told = Learn(dir, apart, set);
  EXPECT_THAT(told.out + told.err, Not(HasSubstr("in one folder")));
  EXPECT_THAT(told.out + told.err, HasSubstr("lies on one disk with store"));
}

// The folder of the store is put back as a whole, as restores do: the witness comes along.
TEST(WitnessTest, TheMarkBesideTheInputNoticesAFolderThatIsPutBack) {
  const TempDir dir;
  fs::create_directories(dir / "var");
  test::WriteSmallLog(dir, 1, 600, 1);
  SmallRun run;
  run.store = "var/store";
  run.source = fmt::format(", mark: \"{}\"", dir / "input.mark");
  ASSERT_EQ(Learn(dir, run).exit_code, 0);
  fs::copy(dir / "var", dir / "backup", fs::copy_options::recursive);
  test::WriteSmallLog(dir, 2, 600, 1);
  ASSERT_EQ(Learn(dir, run).exit_code, 0);
  fs::remove_all(dir / "var");
  fs::copy(dir / "backup", dir / "var", fs::copy_options::recursive);
  const Ended refused = Learn(dir, run);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("its mark " + dir / "input.mark"));
  fs::remove(dir / "input.mark");
  const Ended told = Learn(dir, run);
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out + told.err, HasSubstr("is missing"));
  EXPECT_TRUE(fs::exists(dir / "input.mark"));
}

// Nothing is left that knows how far a newer copy went: no copy can be charged what that has
// learnt.
TEST(WitnessTest, WithoutItNoOlderCopyIsAccepted) {
  const TempDir dir;
  test::WriteSmallLog(dir, 1, 600, 1);
  ASSERT_EQ(Learn(dir, {}).exit_code, 0);
  EXPECT_THAT(test::Run({TACIT, "ledger", "show", "--store", dir / "store"}).out,
              testing::ContainsRegex(" up to commit [1-9][0-9]*, head sha256:"));
  fs::remove(dir / "store.witness");
  const Ended refused = Learn(dir, {}, {"--accept-older-copy"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("neither a witness nor a mark is left to tell how far"));
  EXPECT_THAT(refused.err, Not(HasSubstr("is no older copy")));
}

// Removed while the daemon learns: the next commit notices, writes it anew and says so.
TEST(WitnessTest, OneThatVanishesWhileLearningIsReported) {
  const TempDir dir;
  SmallRun run;
  run.endless = true;
  const std::string operators = "unix:" + dir / "operators";
  Service service(dir, run, {"--set", "serve.operator_listen=" + operators});
  ASSERT_TRUE(service.WaitForSteps(20));
  fs::remove(dir / "store.witness");
  const auto ask = [&](const std::string& path) {
    const auto answer = http::Fetch(operators + ":" + path, "GET", "", test::kPatience);
    return answer ? answer->body : "";
  };
  ASSERT_TRUE(service.Until("the loss is counted", [&] {
    return ask("/metrics").find("tacit_witness_lost_total 1") != std::string::npos;
  }));
  EXPECT_THAT(ask("/readyz"), HasSubstr("the witness was removed 1 times"));
  EXPECT_TRUE(service.WaitForWord("was removed while the store was open"));
  ASSERT_TRUE(service.Stop());
  const auto witness = store::WitnessFile::Read(dir / "store.witness");
  ASSERT_TRUE(witness && *witness);
  EXPECT_GT((*witness)->record.seq.value, 0u);
}

}  // namespace
}  // namespace tacit
