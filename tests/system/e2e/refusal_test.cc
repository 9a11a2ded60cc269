// Tests what is refused before anything is served, and what is only warned of; each message names
// learner and key.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/small_run.h"

namespace tacit {
namespace {

using test::Ended;
using test::SmallRun;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;

constexpr char kFest[] =
    "{kind: fest, vocabulary: {source: running, keep: 9, noise_multiplier: 5}}";

class RefusalTest : public testing::Test {
 protected:
  RefusalTest() { test::WriteSmallLog(dir_, 1, 600, 1); }

  Ended Train(std::vector<std::string> more = {}) {
    std::vector<std::string> command{TACITD, "--config", run_.WriteConfig(dir_), "--until-end"};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }

  TempDir dir_;
  SmallRun run_;
};

TEST_F(RefusalTest, AStoreOfAnotherMechanismIsRefusedAtStart) {
  run_.participation =
      "{mode: poisson, batch: 60, sampling_rate: 0.1, steps_per_period: 3, period_files: 1}";
  run_.mechanism = kFest;
  ASSERT_EQ(Train().exit_code, 0);
  for (const auto& [mechanism, what] : std::vector<std::pair<std::string, std::string>>{
           {"{kind: dp-sgd}", "the mechanism 'fest', not of 'dp-sgd'"},
           {"{kind: adafest+, threshold: 1, vocabulary: {source: running, keep: 9, "
            "noise_multiplier: 5}}",
            "the mechanism 'fest', not of 'adafest+'"},
           {"{kind: fest, vocabulary: {source: first-period, keep: 9, noise_multiplier: 5}}",
            "another source"},
           {"{kind: fest, vocabulary: {source: running, keep: 9, query: gumbel, noise_multiplier: "
            "5}}",
            "another query"}}) {
    run_.mechanism = mechanism;
    const Ended ended = Train();
    EXPECT_EQ(ended.exit_code, 3) << mechanism << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("learner 'ctr': the stored state of its mechanism: "));
    EXPECT_THAT(ended.err, HasSubstr(what));
  }
  // These settings may change between two runs.
  run_.mechanism =
      "{kind: fest, gradient_clip: 2, vocabulary: {source: running, keep: 7, noise_multiplier: 6}}";
  const Ended ended = Train();
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
}

// A device would be read without an end, or keep no letter.
TEST_F(RefusalTest, DeadLettersGoIntoAFile) {
  for (const std::string device : {"/dev/null", "/dev/full", "/dev/zero"}) {
    test::Process process({TACITD, "--config", run_.WriteConfig(dir_), "--until-end", "--set",
                           "dead_letters.path=" + device});
    const auto ended = process.Wait();
    ASSERT_TRUE(ended) << device << ": it waits";
    EXPECT_EQ(ended->exit_code, 2) << ended->err;
    EXPECT_THAT(ended->err,
                HasSubstr("dead_letters.path: opening " + device + ": is not a regular file"));
  }
}

TEST_F(RefusalTest, ABudgetThatNotOneStepFitsInIsAMistakeInANewStoreOnly) {
  run_.more = "budget: {epsilon: 0.01, delta: 1.0e-6}\n";
  const auto expect_refused = [&](const char* when) {
    const Ended check = Train({"--check-config"});
    EXPECT_EQ(check.exit_code, 2) << when;
    EXPECT_THAT(check.out, HasSubstr("# WARNING: budget.epsilon: 0.01 is less than"));
    EXPECT_THAT(check.err, HasSubstr("tacitd: budget.epsilon: 0.01 is less than"));
  };
  expect_refused("before the store is made");
  const Ended fresh = Train();
  EXPECT_EQ(fresh.exit_code, 2) << fresh.err;
  EXPECT_THAT(fresh.err, HasSubstr("not one step can be taken"));
  EXPECT_THAT(fresh.err, HasSubstr("learner 'ctr'"));
  expect_refused("while the store has no commit");
  run_.more = "";
  ASSERT_EQ(Train().exit_code, 0) << "another budget, and the same store is as good as new";
  // Now it is spent: lowering is no mistake, but has to be reported.
  run_.more = "budget: {epsilon: 0.01, delta: 1.0e-6}\n";
  EXPECT_EQ(Train({"--check-config"}).exit_code, 0) << "a start goes on with it";
  const Ended spent = Train();
  EXPECT_EQ(spent.exit_code, 0) << spent.err;
  EXPECT_THAT(spent.err, HasSubstr("budget.epsilon: 0.01 is less than"));
  EXPECT_THAT(spent.err, HasSubstr("spent already"));
  run_.more = "";
  run_.privacy = "{unit: event, epsilon: 4, delta: 1.0e-6}";
  const Ended lowered = Train();
  EXPECT_EQ(lowered.exit_code, 0) << lowered.err;
  EXPECT_THAT(lowered.err, HasSubstr("learner 'ctr': privacy.epsilon: 4 is less than"));
}

TEST_F(RefusalTest, AnErrorOfAssemblyNamesFileLearnerAndKey) {
  run_.mechanism = "{kind: fest, vocabulary: {source: file, file: /nowhere/v}}";
  const Ended ended = Train();
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err,
              HasSubstr("store.yaml: learner 'ctr': mechanism.vocabulary.file: /nowhere/v: "));
}

TEST_F(RefusalTest, CheckConfigTellsTheQueriesThereAre) {
  run_.mechanism = "{kind: dp-sgd}";
  const std::string dense = Train({"--check-config"}).out;
  EXPECT_THAT(dense, HasSubstr("gradient "));
  EXPECT_THAT(dense, Not(HasSubstr("selection ")));
  EXPECT_THAT(dense, HasSubstr("all 1,664 are written in every step"));
  run_.participation =
      "{mode: poisson, batch: 60, sampling_rate: 0.1, steps_per_period: 3, period_files: 1}";
  run_.mechanism = kFest;
  const std::string fest = Train({"--check-config"}).out;
  EXPECT_THAT(fest, HasSubstr("its histogram: noise multiplier 5.0000"));
  EXPECT_THAT(fest, HasSubstr("up to 9, are written"));
}

TEST_F(RefusalTest, AMissingWitnessIsTold) {
  ASSERT_EQ(Train().exit_code, 0);
  const auto show = [&] {
    return test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"});
  };
  const Ended with = show();
  EXPECT_THAT(with.out, HasSubstr("\"witness\":true"));
  EXPECT_EQ(with.err, "");
  std::filesystem::remove(dir_ / "store.witness");
  const Ended without = show();
  EXPECT_EQ(without.exit_code, 0);
  EXPECT_THAT(without.out, HasSubstr("\"witness\":false"));
  EXPECT_EQ(without.err, fmt::format("no witness beside {}: an older copy would not be noticed\n",
                                     dir_ / "store"));
  const Ended daemon = Train({"--set", "store.witness=none"});
  EXPECT_THAT(daemon.err, HasSubstr("an older copy put in its place would not be noticed"));
}

}  // namespace
}  // namespace tacit
