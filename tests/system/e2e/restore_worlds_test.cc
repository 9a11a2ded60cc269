// Two worlds that differ in the records of one user, which are nulled in the second: a store is
// lost in both, and restored. All others have the same charges, and the same parts in later steps.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <map>
#include <regex>

#include "service.h"
#include "store/store.h"

namespace tacit {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using test::Ended;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;

constexpr int kLastDay = 4;

// Users, each with this many records in a day.
struct Group {
  std::string name;
  int users = 0;
  int records = 1;
};

// The accounts, and the counts of everybody but the one user.
struct Outcome {
  json::value accounts;
  UsersByUses by_used;
  std::string learnt;  // events of the day after the restore

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << json::serialize(outcome.accounts) << ", " << outcome.learnt << " events learnt, uses:";
  for (const auto& [used, users] : outcome.by_used) *out << " " << used << " by " << users;
}

enum class Road { kCheckpoint, kCheckpointWithoutRecords, kCheckpointAndRemains, kOlderCopy };

class World {
 public:
  enum class TheOne { kThere, kNulled };

  // Learns day 0, keeps a copy and a checkpoint, and learns three more days. A later copy is of the
  // second of them.
  World(const SmallRun& run, TheOne one) : one_(one), config_(run.WriteConfig(dir_)) {
    WriteDay(0, {{"f0", 20}});
    MustLearn();
    fs::copy(dir_ / "store", dir_ / "copy", fs::copy_options::recursive);
    MakeCheckpoint(run);
    WriteDay(1, {{"f1", 20}});
    WriteDay(2, {{"f2", 20}, {"often", 30, 3}, {"once", 10}});
    MustLearn();
    fs::copy(dir_ / "store", dir_ / "later", fs::copy_options::recursive);
    WriteDay(3, {{"f3", 20}});
    MustLearn();
    counts_of_lost_ = Counts();
    fs::copy(dir_ / "store.witness", dir_ / "witness-of-lost");
  }

  // Loses the store, restores it, and learns one more day. `uses` are those of the one user.
  Outcome Restore(Road road, uint32_t uses) {
    fs::remove_all(dir_ / "store");
    fs::remove(dir_ / fmt::format("day-{}.jsonl", kLastDay));
    fs::copy(dir_ / "witness-of-lost", dir_ / "store.witness",
             fs::copy_options::overwrite_existing);
    if (road == Road::kOlderCopy) {
      fs::copy(dir_ / "copy", dir_ / "store", fs::copy_options::recursive);
      EXPECT_THAT(MustLearn({"--accept-older-copy"}).err, HasSubstr("restored from commit"));
    } else {
      std::vector<std::string> words{TACIT,       "checkpoint", "restore",
                                     checkpoint_, "--config",   config_};
      if (road == Road::kCheckpointWithoutRecords) words.emplace_back("--skip-records");
      if (road == Road::kCheckpointAndRemains)
        words.insert(words.end(), {"--remains", dir_ / "later"});
      const Ended restored = test::Run(words);
      EXPECT_EQ(restored.exit_code, 0) << restored.err;
      // Each user is counted by the later copy up to its last step, and by the records behind it.
      if (road == Road::kCheckpointAndRemains) {
        EXPECT_EQ(Counts(), counts_of_lost_);
      }
    }
    WriteDay(kLastDay, {{"often", 30}, {"once", 10}, {"new", 5}});
    return Look(MustLearn({"--set", "log.level=info"}).err, uses);
  }

 private:
  void WriteDay(int day, const std::vector<Group>& groups) const {
    std::string text;
    const auto add = [&](const std::string& user, int i) {
      text += fmt::format(R"({{"label":{},"user":"{}","features":{{"I1":{},"C1":"{}"}}}}{})", i % 2,
                          user, i % 50, i % 60, '\n');
    };
    for (const Group& group : groups)
      for (int i = 0; i < group.users * group.records; ++i)
        add(fmt::format("{}-{}", group.name, i % group.users), i);
    if (one_ == TheOne::kThere)
      add("the one", day);
    else
      text += "null\n";
    test::WriteFile(dir_ / fmt::format("day-{}.jsonl", day), text);
  }

  Ended MustLearn(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{TACITD, "--config", config_, "--until-end"};
    words.insert(words.end(), more.begin(), more.end());
    Ended learnt = test::Run(words);
    EXPECT_EQ(learnt.exit_code, 0) << learnt.err;
    return learnt;
  }

  void MakeCheckpoint(const SmallRun& run) {
    const std::string at_operator = "unix:" + (dir_ / "operator");
    Service daemon(dir_, run, {"--set", "serve.operator_listen=" + at_operator});
    EXPECT_TRUE(daemon.WaitFor("/readyz"));
    const Ended made = test::Run({TACIT, "checkpoint", "create", "--url", at_operator});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    daemon.Stop();
    run.WriteConfig(dir_);
    for (const auto& entry : fs::directory_iterator(dir_ / "store.checkpoints"))
      if (entry.path().filename().string().starts_with("full")) checkpoint_ = entry.path();
  }

  UsersByUses Counts() const {
    const auto store = store::OpenReadOnly(dir_ / "store", dir_ / "store.witness", {});
    EXPECT_TRUE(store) << store.error().message;
    return store ? store->count_users("ctr").value_or(UsersByUses()) : UsersByUses();
  }

  Outcome Look(const std::string& log, uint32_t uses) const {
    Outcome outcome;
    const json::object ledger =
        test::Json(test::Run({TACIT, "ledger", "show", "--json", "--store", dir_ / "store"}));
    outcome.accounts = {ledger.at("learners"), ledger.at("total")};
    outcome.by_used = Counts();
    if (one_ == TheOne::kThere && --outcome.by_used[uses] == 0) outcome.by_used.erase(uses);
    std::smatch events;
    static const std::regex kEvents(R"( (\d+) events )");
    EXPECT_TRUE(std::regex_search(log, events, kEvents)) << log;
    outcome.learnt = events[1];
    return outcome;
  }

  const TempDir dir_;
  const TheOne one_;
  const std::string config_;
  std::string checkpoint_;
  UsersByUses counts_of_lost_;
};

// Users who were in the lost steps often have used all of their allowance, and others have not.
void ExpectNobodyDecidesForOthers(const SmallRun& run, uint32_t allowance) {
  World world(run, World::TheOne::kThere), other(run, World::TheOne::kNulled);
  // Without the records everybody is charged all lost steps, new users too. The later copy knows
  // that users with three records were in one step or period, and records alone do not.
  static const std::map<Road, std::string> kLearnt = {{Road::kCheckpoint, "15"},
                                                      {Road::kCheckpointWithoutRecords, "0"},
                                                      {Road::kCheckpointAndRemains, "45"},
                                                      {Road::kOlderCopy, "15"}};
  for (const auto& [road, learnt] : kLearnt) {
    SCOPED_TRACE(static_cast<int>(road));
    const Outcome outcome = world.Restore(road, allowance);
    EXPECT_EQ(outcome, other.Restore(road, allowance));
    EXPECT_EQ(outcome.learnt, learnt);
  }
}

SmallRun RunOfUsers() {
  SmallRun run;
  run.files = "day-*.jsonl";
  run.source = ", format: json";
  run.privacy = "{unit: user, epsilon: 8, delta: 1.0e-6}";
  return run;
}

TEST(RestoreWorldsTest, NobodyDecidesWhetherOthersAreInLaterSteps) {
  SmallRun run = RunOfUsers();
  run.participation = "{mode: once, batch: 100000, max_participations: 3}";
  ExpectNobodyDecidesForOthers(run, 3);
}

TEST(RestoreWorldsTest, NobodyDecidesWhetherOthersAreInLaterPeriods) {
  SmallRun run = RunOfUsers();
  run.mechanism = "{kind: dp-sgd, noise_multiplier: 6}";
  run.participation =
      "{mode: poisson, batch: 20, sampling_rate: 0.5, steps_per_period: 2, period_files: 1, "
      "max_participations: 6}";
  ExpectNobodyDecidesForOthers(run, 6);
}

}  // namespace
}  // namespace tacit
