// Damage as an operator meets it: named before a request touches it, never a loop of restarts, and
// repaired only where nothing has to be guessed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <filesystem>

#include "service.h"
#include "support/files_below.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using test::Ended;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::AllOf;
using testing::HasSubstr;

std::string LargestIn(const std::string& folder, const std::string& extension) {
  fs::path largest;
  for (const fs::path& file : test::FilesBelow(folder))
    if (file.extension() == extension &&
        (largest.empty() || fs::file_size(file) > fs::file_size(largest)))
      largest = file;
  return largest;
}

void FlipTheMiddle(const std::string& path) {
  std::string bytes = test::ReadFile(path);
  ASSERT_FALSE(bytes.empty());
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  test::WriteFile(path, bytes);
}

Ended Tacit(std::vector<std::string> words) {
  words.insert(words.begin(), TACIT);
  return test::Run(words);
}

class StoreCommandTest : public testing::Test {
 protected:
  void Learn() {
    test::WriteSmallLog(dir_, 1, 2000, 3);
    config_ = SmallRun().WriteConfig(dir_);
    const Ended learnt = test::Run({TACITD, "--config", config_, "--until-end"});
    ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  }

  const TempDir dir_;
  std::string config_;
};

TEST_F(StoreCommandTest, AWholeStoreIsAllRight) {
  Learn();
  const Ended verified = Tacit({"store", "verify", "--store", dir_ / "store"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("every byte read, all right"));
  const Ended as_json = Tacit({"store", "verify", "--json", "--store", dir_ / "store"});
  const json::object check = json::parse(as_json.out).as_object();
  EXPECT_TRUE(check.at("valid").as_bool());
  EXPECT_TRUE(check.at("witness").as_bool());
  EXPECT_TRUE(check.at("damage").as_array().empty());
  const Ended ledger = Tacit({"ledger", "recover", "--store", dir_ / "store"});
  EXPECT_EQ(ledger.exit_code, 0) << ledger.err;
  EXPECT_THAT(ledger.out, AllOf(HasSubstr("ledger entries without a gap"),
                                HasSubstr("that the witness has seen"), HasSubstr("ctr: 8 steps")));
}

TEST_F(StoreCommandTest, ADamagedLogIsRefusedWithItsPlace) {
  SmallRun run;
  run.endless = true;
  {
    Service daemon(dir_, run);
    ASSERT_TRUE(daemon.WaitForSteps(6));
    daemon.process().Signal(SIGKILL);
    daemon.process().Wait();
  }
  const std::string log = LargestIn(dir_ / "store", ".log");
  FlipTheMiddle(log);
  const Ended refused = test::Run({TACITD, "--config", run.WriteConfig(dir_)});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_THAT(refused.err, AllOf(HasSubstr(log + " is damaged at offset "),
                                 HasSubstr("When the store is lost")));
  const Ended verified = Tacit({"store", "verify", "--store", dir_ / "store"});
  EXPECT_EQ(verified.exit_code, 3);
  EXPECT_THAT(verified.err, HasSubstr(log));
}

TEST_F(StoreCommandTest, ADaemonFindsADamagedTableBeforeARequestDoes) {
  Learn();
  const std::string table = LargestIn(dir_ / "store/rows", ".sst");
  FlipTheMiddle(table);
  SmallRun run;
  const std::string at_operator = "unix:" + (dir_ / "operator");
  Service daemon(dir_, run, {"--set", "serve.operator_listen=" + at_operator});
  ASSERT_TRUE(daemon.Until("it has found the damage", [&] {
    const auto ready = http::Fetch(at_operator + ":/readyz", "GET", "", test::kPatience);
    return ready && ready->body.find(table) != std::string::npos;
  }));
  const auto metrics = http::Fetch(at_operator + ":/metrics", "GET", "", test::kPatience);
  ASSERT_TRUE(metrics);
  EXPECT_THAT(metrics->body, HasSubstr("tacit_store_damaged_files 1"));
  EXPECT_THAT(daemon.Ask("GET", "/readyz")->body, testing::Not(HasSubstr(table)));
  daemon.Stop();
  const Ended verified = Tacit({"store", "verify", "--store", dir_ / "store"});
  EXPECT_EQ(verified.exit_code, 3);
  EXPECT_THAT(verified.err, HasSubstr(table));
}

// The daemon writes on to the store's log.
TEST_F(StoreCommandTest, AStoreThatADaemonHasOpenIsNotRecovered) {
  SmallRun run;
  run.endless = true;
  Service daemon(dir_, run);
  ASSERT_TRUE(daemon.WaitForSteps(1));
  const Ended refused = Tacit({"ledger", "recover", "--store", dir_ / "store"});
  EXPECT_NE(refused.exit_code, 0) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("process " + std::to_string(daemon.process().pid()) +
                                     " has store " + (dir_ / "store") + " open: stop it first"));
}

// The store lies in a folder that was made by hand, and the umask lets others read.
TEST_F(StoreCommandTest, OthersMayNotReadWhatCommandsWrite) {
  const mode_t before = umask(022);
  Learn();
  const std::string store = dir_ / "store", packed = dir_ / "packed.tar.zst";
  fs::permissions(store, fs::perms(0755));
  const auto expect_closed = [](const std::string& folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      EXPECT_EQ(entry.status().permissions() & fs::perms::others_all, fs::perms::none)
          << entry.path();
  };
  const auto must = [](const Ended& ended) { EXPECT_EQ(ended.exit_code, 0) << ended.err; };
  must(Tacit({"store", "reshard", "--config", config_, "--set", "store.shards=3"}));
  expect_closed(store);
  must(Tacit({"store", "migrate", "--config", config_, "--set", "store.shards=3"}));
  expect_closed(store);
  {
    const std::string at_operator = "unix:" + (dir_ / "operator");
    Service daemon(dir_, {},
                   {"--set", "store.shards=3", "--set", "serve.operator_listen=" + at_operator});
    ASSERT_TRUE(daemon.WaitFor("/readyz"));
    must(Tacit({"checkpoint", "create", "--url", at_operator}));
    daemon.Stop();
  }
  std::string checkpoint;
  for (const auto& entry : fs::directory_iterator(dir_ / "store.checkpoints"))
    if (entry.path().filename().string().starts_with("full-")) checkpoint = entry.path();
  must(Tacit({"checkpoint", "pack", checkpoint, "--output", packed}));
  must(Tacit({"checkpoint", "unpack", packed, "--path", dir_ / "unpacked"}));
  expect_closed(dir_ / "unpacked");
  fs::rename(store, dir_ / "lost");
  must(
      Tacit({"checkpoint", "restore", checkpoint, "--config", config_, "--set", "store.shards=3"}));
  expect_closed(store);
  umask(before);
}

TEST_F(StoreCommandTest, OnlyWhatFollowsFromTheRestIsRepaired) {
  Learn();
  fs::remove(dir_ / "store/CURRENT");
  const Ended refused = test::Run({TACITD, "--config", config_, "--until-end"});
  EXPECT_NE(refused.exit_code, 0);
  const Ended repaired = Tacit({"store", "repair", "--store", dir_ / "store"});
  ASSERT_EQ(repaired.exit_code, 0) << repaired.err;
  EXPECT_THAT(repaired.out, HasSubstr("CURRENT was made anew"));
  EXPECT_EQ(test::Run({TACITD, "--config", config_, "--until-end"}).exit_code, 0);
  FlipTheMiddle(LargestIn(dir_ / "store/rows", ".sst"));
  const Ended not_guessed = Tacit({"store", "repair", "--store", dir_ / "store"});
  EXPECT_EQ(not_guessed.exit_code, 3);
  EXPECT_THAT(not_guessed.err, HasSubstr("is not repaired"));
}

}  // namespace
}  // namespace tacit
