// A store is lost, and an operator goes on from a checkpoint or from an older copy: what was learnt
// meanwhile stays charged, and is not learnt from again.
#include "store/care/restore.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <functional>
#include <map>

#include "service.h"
#include "store/disk/unfinished_restore.h"
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
using testing::Not;

// Records of users in turn; `first` is the first user's number.
void WriteDay(const TempDir& dir, int day, int records, int first, int users) {
  std::string text;
  for (int i = 0; i < records; ++i)
    text += fmt::format(
        R"({{"label":{},"user":"u{}","event_id":"e{}-{}","features":{{"I1":{},"C1":"{}"}}}}{})",
        i % 2, first + i * 7 % users, day, i, i % 50, i % 60, '\n');
  test::WriteFile(dir / fmt::format("day-{}.jsonl", day), text);
}

SmallRun UserRun() {
  SmallRun run;
  run.files = "day-*.jsonl";
  run.source = ", format: json, dedupe: {window: 300}";
  run.privacy = "{unit: user, epsilon: 8, delta: 1.0e-6}";
  run.participation = "{mode: once, batch: 50, max_participations: 8}";
  return run;
}

SmallRun EventRun() {
  SmallRun run = UserRun();
  run.source = ", format: json";
  run.privacy = "{unit: event, epsilon: 8, delta: 1.0e-6}";
  run.participation = "{mode: once, batch: 50, max_participations: 1}";
  return run;
}

Ended Daemon(const std::string& config, std::vector<std::string> more = {}) {
  std::vector<std::string> words{TACITD, "--config", config, "--until-end"};
  words.insert(words.end(), more.begin(), more.end());
  return test::Run(words);
}

struct Spent {
  double epsilon = 0;
  uint64_t steps = 0;
};
Spent SpentOf(const std::string& store) {
  const Ended shown = test::Run({TACIT, "ledger", "show", "--json", "--store", store});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  if (shown.exit_code != 0) return {};
  const json::object ledger = json::parse(shown.out).as_object();
  return {ledger.at("total").at("epsilon").to_number<double>(),
          ledger.at("learners").at(0).at("steps").to_number<uint64_t>()};
}

// All accounts of a ledger, by name; those of all together under "".
std::map<std::string, Spent> AccountsOf(const std::string& store) {
  const Ended shown = test::Run({TACIT, "ledger", "show", "--json", "--store", store});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  std::map<std::string, Spent> accounts;
  if (shown.exit_code != 0) return accounts;
  const json::object ledger = json::parse(shown.out).as_object();
  accounts[""].epsilon = ledger.at("total").at("epsilon").to_number<double>();
  for (const json::value& learner : ledger.at("learners").as_array())
    accounts[std::string(learner.at("learner").as_string())] = {
        learner.at("epsilon").to_number<double>(), learner.at("steps").to_number<uint64_t>()};
  return accounts;
}

// A store that learnt day 0, a full checkpoint of it, and day 1 learnt after that. Then it is
// moved away.
class RestoreTest : public testing::Test {
 protected:
  void LoseStore(const SmallRun& run) {
    config_ = run.WriteConfig(dir_);
    WriteDay(dir_, 0, 1000, 0, 40);
    ASSERT_EQ(Daemon(config_).exit_code, 0);
    {
      const std::string at_operator = "unix:" + (dir_ / "operator");
      Service daemon(dir_, run, {"--set", "serve.operator_listen=" + at_operator});
      ASSERT_TRUE(daemon.WaitForSteps(20));
      const Ended made = test::Run({TACIT, "checkpoint", "create", "--url", at_operator});
      ASSERT_EQ(made.exit_code, 0) << made.err;
      if (after_checkpoint_) after_checkpoint_(at_operator);
      daemon.Stop();
    }
    run.WriteConfig(dir_);
    if (before_day_1_) before_day_1_();
    for (const auto& entry : fs::directory_iterator(dir_ / "store.checkpoints"))
      if (entry.path().filename().string().starts_with("full")) checkpoint_ = entry.path();
    WriteDay(dir_, last_day_, last_records_, 20,
             40);  // users 20 to 39 were there before, 40 to 59 are new
    ASSERT_EQ(Daemon(config_).exit_code, 0);
    if (before_loss_) before_loss_();
    before_ = SpentOf(dir_ / "store");
    accounts_before_ = AccountsOf(dir_ / "store");
    ASSERT_EQ(before_.steps, 40u);
    fs::rename(dir_ / "store", dir_ / "store.lost");
    const Ended refused = Daemon(config_);
    ASSERT_EQ(refused.exit_code, 3) << refused.err;
  }

  Ended Restore(std::vector<std::string> more = {}) {
    std::vector<std::string> words{TACIT,       "checkpoint", "restore",
                                   checkpoint_, "--config",   config_};
    words.insert(words.end(), more.begin(), more.end());
    return test::Run(words);
  }

  // No account has less than before the loss.
  void ExpectNothingIsDropped() {
    auto after = AccountsOf(dir_ / "store");
    for (const auto& [name, spent] : accounts_before_) {
      EXPECT_GE(after[name].epsilon, spent.epsilon - 1e-12) << name;
      EXPECT_EQ(after[name].steps, spent.steps) << name;
    }
    EXPECT_EQ(after.size(), accounts_before_.size());
  }

  // The restored store has all charges, learns on, and the lost one is out.
  void ExpectItGoesOn() {
    const Spent restored = SpentOf(dir_ / "store");
    EXPECT_GE(restored.epsilon, before_.epsilon - 1e-12);
    EXPECT_EQ(restored.steps, before_.steps);
    const Ended at_end = Daemon(config_);
    EXPECT_EQ(at_end.exit_code, 0) << at_end.err;
    EXPECT_EQ(SpentOf(dir_ / "store").steps, before_.steps);  // nothing is learnt from again
    WriteDay(dir_, 2, 500, 100, 10);
    const Ended on = Daemon(config_);
    EXPECT_EQ(on.exit_code, 0) << on.err;
    EXPECT_EQ(SpentOf(dir_ / "store").steps, before_.steps + 10);
    const Ended verified =
        test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"});
    EXPECT_EQ(verified.exit_code, 0) << verified.err;
    const Ended lost = Daemon(config_, {"--set", "store.path=" + (dir_ / "store.lost"), "--set",
                                        "store.witness=" + (dir_ / "store.witness")});
    EXPECT_EQ(lost.exit_code, 3) << lost.err;
  }

  const TempDir dir_;
  std::function<void(const std::string& at_operator)> after_checkpoint_;
  std::function<void()> before_day_1_, before_loss_;
  int last_day_ = 1, last_records_ = 1000;
  std::string config_, checkpoint_;
  Spent before_;
  std::map<std::string, Spent> accounts_before_;
};

TEST_F(RestoreTest, TheRecordsOfTheGapAreCountedPerUser) {
  LoseStore(UserRun());
  fs::remove_all(dir_ / "store.lost");
  const Ended restored = Restore();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, AllOf(HasSubstr("ctr: 20 steps charged, to 40 users whose records were "
                                            "read again"),
                                  Not(HasSubstr("every user"))));
  const Spent after = SpentOf(dir_ / "store");
  EXPECT_DOUBLE_EQ(after.epsilon, before_.epsilon);
  EXPECT_EQ(after.steps, before_.steps);
}

// Checkpoints of the lost store and of the restored one lie in one folder.
TEST_F(RestoreTest, OfAFolderOfCheckpointsTheNewestFullOneIsMeant) {
  const auto make = [](const std::string& at_operator, const std::string& kind) {
    const Ended made =
        test::Run({TACIT, "checkpoint", "create", "--url", at_operator, "--kind", kind});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  };
  after_checkpoint_ = [&](const std::string& at_operator) { make(at_operator, "release"); };
  LoseStore(UserRun());
  const std::string older = checkpoint_, folder = dir_ / "store.checkpoints";
  const auto lineage_of = [](const std::string& checkpoint) {
    return store::ReadManifest(checkpoint)->lineage.substr(0, 8);
  };
  checkpoint_ = folder;
  const Ended restored = Restore();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.err, AllOf(HasSubstr(older + " is taken: commit "),
                                  HasSubstr("of lineage " + lineage_of(older))));
  ExpectItGoesOn();
  const std::string at_operator = "unix:" + (dir_ / "operator");
  const auto prune = [&](std::vector<std::string> command) {
    command.insert(command.begin(),
                   {TACIT, "checkpoint", "prune", "--path", folder, "--keep", "1"});
    return test::Run(command);
  };
  const std::vector<std::string> others{"--other-lineages", "--store", dir_ / "store"};
  {
    Service daemon(dir_, UserRun(), {"--set", "serve.operator_listen=" + at_operator});
    ASSERT_TRUE(daemon.WaitFor("/readyz"));
    // The restored store has no backup of its own yet: those that it has left stay.
    EXPECT_THAT(prune(others).err,
                HasSubstr("--other-lineages would remove every backup, " + older));
    make(at_operator, "full");
    daemon.Stop();
  }
  std::string newer;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("full") && entry.path() != older)
      newer = entry.path();
  ASSERT_NE(newer, "");
  ASSERT_NE(lineage_of(newer), lineage_of(older));
  const Ended listed = test::Run({TACIT, "checkpoint", "list", "--path", folder});
  EXPECT_THAT(listed.out, AllOf(HasSubstr("lineage"), HasSubstr(lineage_of(newer)),
                                HasSubstr(lineage_of(older))));
  const Ended packed =
      test::Run({TACIT, "checkpoint", "pack", folder, "--output", dir_ / "full.tar.zst"});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(packed.err, AllOf(HasSubstr(newer + " is taken"),
                                HasSubstr(older + " is of an earlier lineage, ")));
  // Nothing goes of a lineage by itself: each keeps one.
  EXPECT_THAT(prune({}).out, HasSubstr("0 checkpoints removed"));
  const std::string left = lineage_of(older);
  const Ended removed = prune(others);
  EXPECT_EQ(removed.exit_code, 0) << removed.err;
  EXPECT_THAT(removed.out, AllOf(HasSubstr(older + " is of lineage " + left + ", which"),
                                 HasSubstr("2 checkpoints removed")));  // the release as well
  EXPECT_TRUE(fs::exists(newer) && !fs::exists(older));
}

// The learner got another name after the checkpoint. What is left of the lost store says so, and
// the copy goes on under the new name, with all that either name was charged.
TEST_F(RestoreTest, ALearnerThatWasRenamedSinceIsChargedUnderItsNewName) {
  before_day_1_ = [&] {
    std::string config = test::ReadFile(config_);
    config.replace(config.find("id: ctr"), 7, "id: clicks");
    test::WriteFile(config_, config);
    const Ended renamed =
        test::Run({TACIT, "store", "migrate", "--config", config_, "--rename", "ctr=clicks"});
    EXPECT_EQ(renamed.exit_code, 0) << renamed.err;
  };
  LoseStore(UserRun());
  const Ended without = Restore();
  EXPECT_EQ(without.exit_code, 3) << without.out;
  EXPECT_THAT(without.err, AllOf(HasSubstr("'clicks'"), HasSubstr("--remains")));
  EXPECT_FALSE(fs::exists(dir_ / "store"));
  const Ended restored = Restore({"--remains", dir_ / "store.lost"});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("clicks: 20 steps charged"));
  ExpectItGoesOn();
}

// Less noise for half of what was learnt after the checkpoint, and then as much as before: the last
// price says nothing of the dearer steps between, and the witness does.
TEST_F(RestoreTest, APriceThatChangedAndChangedBackIsCharged) {
  SmallRun run = UserRun();
  run.mechanism = "{kind: adafest, threshold: 1.0, sigma_ratio: 5, noise_multiplier: 12}";
  before_day_1_ = [&] {
    const double at_checkpoint = SpentOf(dir_ / "store").epsilon;
    const std::string config = test::ReadFile(config_);
    std::string dearer = config;
    dearer.replace(dearer.find("noise_multiplier: 12"), 20, "noise_multiplier: 4");
    test::WriteFile(config_, dearer);
    WriteDay(dir_, 1, 500, 20, 40);
    const Ended learnt = Daemon(config_);
    EXPECT_EQ(learnt.exit_code, 0) << learnt.err;
    EXPECT_GT(SpentOf(dir_ / "store").epsilon, 2 * at_checkpoint);
    test::WriteFile(config_, config);
  };
  last_day_ = 10;  // it is read after day 1
  last_records_ = 500;
  LoseStore(run);
  fs::remove_all(dir_ / "store.lost");
  const Ended restored = Restore();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("ctr: 20 steps charged"));
  const Spent after = SpentOf(dir_ / "store");
  EXPECT_NEAR(after.epsilon, before_.epsilon, 1e-3 * before_.epsilon);
  EXPECT_EQ(after.steps, before_.steps);
  ExpectItGoesOn();
}

// A log that is shorter than what the lost store has read is no proof that the records are gone:
// the operator says so.
TEST_F(RestoreTest, WithoutTheRecordsEveryUserIsCharged) {
  LoseStore(UserRun());
  fs::remove(dir_ / "day-1.jsonl");
  const Ended refused = Restore();
  EXPECT_EQ(refused.exit_code, 3) << refused.out;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("store.witness: learner 'ctr': position.next: offset "
                                           "2000 is past the end of the log, which has 1000"),
                                 HasSubstr("--skip-records")));
  EXPECT_FALSE(fs::exists(dir_ / "store"));
  const Ended restored = Restore({"--skip-records"});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, AllOf(HasSubstr("up to 20 steps to each user, also to new ones"),
                                  HasSubstr("every user is charged")));
}

TEST_F(RestoreTest, TheDamagedStoresLedgerIsTakenFirst) {
  LoseStore(UserRun());
  fs::path largest;
  for (const fs::path& file : test::FilesBelow(dir_ / "store.lost/rows"))
    if (file.extension() == ".sst" &&
        (largest.empty() || fs::file_size(file) > fs::file_size(largest)))
      largest = file;
  std::string bytes = test::ReadFile(largest);
  for (size_t i = 0; i < bytes.size(); i += 64) bytes[i] = static_cast<char>(bytes[i] ^ 8);
  // The checkpoint may have the same file, by a hard link, and stays whole.
  fs::remove(largest);
  test::WriteFile(largest, bytes);
  const Ended restored = Restore({"--remains", dir_ / "store.lost"});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(
      restored.out,
      AllOf(HasSubstr("by the ledger of " + (dir_ / "store.lost") + ", and its counts of users"),
            HasSubstr("ctr: 20 steps charged; "), Not(HasSubstr("each user"))));
  EXPECT_DOUBLE_EQ(SpentOf(dir_ / "store").epsilon, before_.epsilon);
  ExpectItGoesOn();
}

// A copy that was carried away before a user asked to be forgotten lists nobody; the checkpoint
// that stayed in its folder does.
TEST_F(RestoreTest, WhomTheFolderListsIsForgottenInACopyFromElsewhere) {
  after_checkpoint_ = [&](const std::string& at_operator) {
    fs::copy(dir_ / "store.checkpoints", dir_ / "elsewhere", fs::copy_options::recursive);
    const Ended forgotten =
        test::Run({TACIT, "user", "forget", "u3", "--wait", "--url", at_operator});
    ASSERT_EQ(forgotten.exit_code, 0) << forgotten.err;
  };
  LoseStore(UserRun());
  fs::remove_all(dir_ / "store.lost");
  checkpoint_ = fs::path(dir_ / "elsewhere") / fs::path(checkpoint_).filename();
  const Ended restored = Restore();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("1 user who asked to be forgotten"));
}

// Users whose allowance ended in the gap are in none of the periods after it.
TEST_F(RestoreTest, WhoeverHadUsedAllIsInNoHeldPeriodAfterwards) {
  SmallRun run = UserRun();
  run.source = ", format: json";
  run.mechanism = "{kind: dp-sgd, noise_multiplier: 6}";
  run.participation =
      "{mode: poisson, batch: 20, sampling_rate: 0.1, steps_per_period: 10, period_files: 1, "
      "max_participations: 20}";
  config_ = run.WriteConfig(dir_);
  const auto learn = [&](int day, int first) {
    WriteDay(dir_, day, 400, first, 40);
    const Ended learnt = Daemon(config_, {"--set", "log.level=info"});
    EXPECT_EQ(learnt.exit_code, 0) << learnt.err;
    return learnt.err;
  };
  learn(0, 100);
  fs::copy(dir_ / "store", dir_ / "copy", fs::copy_options::recursive);
  for (int day : {1, 2}) EXPECT_THAT(learn(day, 0), HasSubstr(" 400 events "));
  EXPECT_THAT(learn(3, 0), HasSubstr(" 0 events ")) << "the allowance has room for two periods";
  fs::remove_all(dir_ / "store");
  fs::rename(dir_ / "copy", dir_ / "store");
  const Ended restored = Daemon(config_, {"--accept-older-copy"});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(learn(4, 0), HasSubstr(" 0 events "));
  EXPECT_THAT(learn(5, 200), HasSubstr(" 400 events ")) << "new users are learnt from";
}

TEST_F(RestoreTest, ARestoredStoreGoesOn) {
  LoseStore(UserRun());
  ASSERT_EQ(Restore().exit_code, 0);
  const Ended over_it = Restore();
  EXPECT_EQ(over_it.exit_code, 3);
  EXPECT_THAT(over_it.err, HasSubstr("is there already"));
  ExpectItGoesOn();
  // The witness is the restored store's by now.
  const Ended again = Restore();
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_THAT(again.err, HasSubstr("do not belong together"));
}

TEST_F(RestoreTest, NothingIsRestoredOnTrust) {
  LoseStore(UserRun());
  fs::rename(dir_ / "store.witness", dir_ / "away");
  const Ended without = Restore();
  EXPECT_EQ(without.exit_code, 3);
  EXPECT_THAT(without.err, HasSubstr("nothing remembers how far store"));
  fs::rename(dir_ / "away", dir_ / "store.witness");
  const Ended dearer = Restore({"--set", "learners.0.participation.max_participations=4"});
  EXPECT_EQ(dearer.exit_code, 3) << dearer.out;
  EXPECT_FALSE(fs::exists(dir_ / "store"));
}

// Unit event: the same road, without users.
TEST_F(RestoreTest, EventsOfTheGapAreCharged) {
  LoseStore(EventRun());
  const Ended restored = Restore();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("ctr: 20 steps charged; "));
  EXPECT_DOUBLE_EQ(SpentOf(dir_ / "store").epsilon, before_.epsilon);
  ExpectItGoesOn();
}

// Charges `store` for a look at the records, with any outcome.
void Inspect(const TempDir& dir, const std::string& epsilon) {
  const Ended looked = test::Run({TACIT,         "inspect",   dir / "day-0.jsonl",
                                  "--private",   epsilon,     "--store",
                                  dir / "store", "--witness", dir / "store.witness",
                                  "--format",    "json",      "--unit",
                                  "event",       "--delta",   "1e-6",
                                  "--epsilon",   "4",         "--mode",
                                  "once",        "--output",  dir / ("proposal-" + epsilon)});
  EXPECT_THAT(looked.out + looked.err, HasSubstr("account tacit.inspect.event"));
}

// No configuration has the account of inspections, and the copy does not know it. Each has a price
// of its own.
TEST_F(RestoreTest, InspectionsAfterTheCopyAreCharged) {
  before_loss_ = [&] {
    Inspect(dir_, "2");
    Inspect(dir_, "0.25");
  };
  LoseStore(EventRun());
  ASSERT_EQ(accounts_before_["tacit.inspect.event"].steps, 2u);
  const Ended restored = Restore();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("tacit.inspect.event: 2 inspections charged"));
  ExpectNothingIsDropped();
  EXPECT_DOUBLE_EQ(AccountsOf(dir_ / "store")["tacit.inspect.event"].epsilon,
                   accounts_before_["tacit.inspect.event"].epsilon);
  fs::remove_all(dir_ / "store");
  const Ended by_remains = Restore({"--remains", dir_ / "store.lost"});
  ASSERT_EQ(by_remains.exit_code, 0) << by_remains.err;
  ExpectNothingIsDropped();
  ExpectItGoesOn();
  Inspect(dir_, "0.5");
  EXPECT_EQ(AccountsOf(dir_ / "store")["tacit.inspect.event"].steps, 3u);
}

// The copy knows the account, and another inspection was made after it.
TEST_F(RestoreTest, AnotherInspectionAfterTheCopyIsCharged) {
  before_day_1_ = [&] { Inspect(dir_, "2"); };
  LoseStore(EventRun());
  fs::rename(dir_ / "store.lost", dir_ / "store");
  fs::copy(dir_ / "store", dir_ / "copy", fs::copy_options::recursive);
  Inspect(dir_, "1");
  accounts_before_ = AccountsOf(dir_ / "store");
  fs::rename(dir_ / "store", dir_ / "store.lost");
  fs::rename(dir_ / "copy", dir_ / "store");
  const Ended accepted = Daemon(config_, {"--accept-older-copy"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_THAT(accepted.err, HasSubstr("tacit.inspect.event: 1 inspection charged"));
  ExpectNothingIsDropped();
  ExpectItGoesOn();
}

// The lost store's checkpoints lie where the restored store's do, and may be of later commits.
TEST_F(RestoreTest, ServersOfCheckpointsFollowTheRestoredStore) {
  SmallRun run = EventRun();
  run.commit_interval_ms = 1;
  const std::string at_operator = "unix:" + (dir_ / "operator");
  // Makes a checkpoint of the store as it is, and returns its commit.
  const auto make_checkpoint = [&]() -> uint64_t {
    Service daemon(dir_, run, {"--set", "serve.operator_listen=" + at_operator});
    EXPECT_TRUE(daemon.WaitForSteps(40));
    const Ended made = test::Run({TACIT, "checkpoint", "create", "--json", "--url", at_operator});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    daemon.Stop();
    run.WriteConfig(dir_);
    return made.exit_code == 0
               ? json::parse(made.out).at("made").at("version").to_number<uint64_t>()
               : 0;
  };
  uint64_t dead = 0;
  before_loss_ = [&] { dead = make_checkpoint(); };
  LoseStore(run);
  ASSERT_EQ(Restore().exit_code, 0);
  const uint64_t alive = make_checkpoint();
  ASSERT_GT(dead, alive);
  const TempDir there;
  Service server(there, run, {"--serve-only", "--checkpoint", dir_ / "store.checkpoints"});
  ASSERT_TRUE(server.WaitFor("/readyz"));
  const auto answer =
      server.Ask("POST", "/v1/score", R"({"rows":[{"features":{"I1":3,"C1":"x"}}]})");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(test::ParseJson(answer->body).at("model").at("version").to_number<uint64_t>(), alive);
  EXPECT_THAT(server.process().Err(), HasSubstr("has checkpoints of several stores"));
}

// A learner that the configuration got after the copy begins anew where the lost one stood, and has
// all of its charges.
class NewLearnerTest : public RestoreTest {
 protected:
  void LoseStoreWithTwo(const SmallRun& run) {
    before_day_1_ = [this, two = run]() mutable {
      two.second_learner = fmt::format(
          "  - id: two\n"
          "    model: {{kind: pctr, hidden: [4]}}\n"
          "    mechanism: {{kind: dp-sgd, noise_multiplier: 30}}\n"
          "    participation: {}\n"
          "    privacy: {}\n",
          two.participation, two.privacy);
      two.WriteConfig(dir_);
    };
    LoseStore(run);
    ASSERT_EQ(accounts_before_["two"].steps, 40u);
  }
  void ExpectBothGoOn() {
    ExpectNothingIsDropped();
    ExpectItGoesOn();
    EXPECT_EQ(AccountsOf(dir_ / "store")["two"].steps, 50u);
  }
};

TEST_F(NewLearnerTest, IsChargedByTheWitness) {
  LoseStoreWithTwo(EventRun());
  const Ended restored = Restore();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out,
              AllOf(HasSubstr("ctr: 20 steps charged"), HasSubstr("two: 40 steps charged"),
                    HasSubstr("two: begins anew"), Not(HasSubstr("ctr: begins"))));
  ExpectBothGoOn();
}

TEST_F(NewLearnerTest, IsChargedByWhatIsLeftOfTheLostStore) {
  LoseStoreWithTwo(EventRun());
  const Ended restored = Restore({"--remains", dir_ / "store.lost"});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("two: 40 steps charged"));
  ExpectBothGoOn();
}

// Users 0 to 59 have been in some step of `two`, and each of their allowances is still known.
TEST_F(NewLearnerTest, ItsUsersAreCounted) {
  LoseStoreWithTwo(UserRun());
  const Ended restored = Restore();
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("two: 40 steps charged, to 60 users whose records were read "
                                      "again"));
  ExpectBothGoOn();
}

TEST_F(NewLearnerTest, TheLostStoresCountsOfUsersAreTakenOver) {
  LoseStoreWithTwo(UserRun());
  const Ended restored = Restore({"--remains", dir_ / "store.lost"});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out,
              AllOf(HasSubstr("two: 40 steps charged; "), HasSubstr("and its counts of users")));
  ExpectBothGoOn();
}

// A copy of the folder is put back: the way on charges what it lacks.
TEST(OlderCopyTest, IsAcceptedForItsPrice) {
  TempDir dir;
  const SmallRun run = UserRun();
  const std::string config = run.WriteConfig(dir);
  WriteDay(dir, 0, 1000, 0, 40);
  ASSERT_EQ(Daemon(config).exit_code, 0);
  fs::copy(dir / "store", dir / "copy", fs::copy_options::recursive);
  WriteDay(dir, 1, 1000, 20, 40);
  ASSERT_EQ(Daemon(config).exit_code, 0);
  const Spent before = SpentOf(dir / "store");
  fs::remove_all(dir / "store");
  fs::rename(dir / "copy", dir / "store");

  const Ended refused = Daemon(config);
  ASSERT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("tacitd --accept-older-copy"));
  {  // another start is at it
    const auto lock = store::RestoreLock::Take(dir / "store");
    ASSERT_TRUE(lock) << lock.error().message;
    const Ended second = Daemon(config, {"--accept-older-copy"});
    EXPECT_EQ(second.exit_code, 3);
    EXPECT_THAT(second.err, HasSubstr("another process restores store"));
    EXPECT_FALSE(fs::exists(dir / "store.restoring"));
  }
  const Ended accepted = Daemon(config, {"--accept-older-copy"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  EXPECT_THAT(accepted.err, HasSubstr("restored from commit"));
  const Spent after = SpentOf(dir / "store");
  EXPECT_EQ(after.steps, before.steps);
  EXPECT_DOUBLE_EQ(after.epsilon, before.epsilon);
  EXPECT_FALSE(fs::exists(dir / "store.restoring"));
  // A store that is not older is left as it is, with or without the option.
  const Ended again = Daemon(config, {"--accept-older-copy"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr("restored from")));
  EXPECT_EQ(SpentOf(dir / "store").steps, before.steps);
}

}  // namespace
}  // namespace tacit
