// A first start on a stream that cannot be read charges nothing, in each program that makes one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "service.h"
#include "support/small_run.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::Service;
using test::SmallRun;
using test::TempDir;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kWrongPlace[] = "source.json.label=/lable";

class FirstStartTest : public testing::Test {
 protected:
  FirstStartTest() {
    std::string text;
    for (int i = 0; i < 1500; ++i)
      text += fmt::format(R"({{"label":{},"features":{{"I1":{}}}}}{})", i % 2, i % 7, '\n');
    test::WriteFile(dir_ / "day-0.jsonl", text);
    run_.files = "day-*.jsonl";
    run_.source = ", format: json, json: {label: /label}";
  }

  static std::vector<std::string> With(std::vector<std::string> command,
                                       const std::vector<std::string>& settings) {
    for (const std::string& setting : settings) {
      command.push_back("--set");
      command.push_back(setting);
    }
    return command;
  }
  Ended Learn(const std::vector<std::string>& settings = {}, const std::string& store = "store") {
    run_.store = store;
    return test::Run(
        With({TACITD, "--config", run_.WriteConfig(dir_), "--until-end", "--set", "log.level=info"},
             settings));
  }
  json::object Ledger(const std::string& store = "store") const {
    const Ended shown = test::Run({TACIT, "ledger", "show", "--store", dir_ / store, "--json"});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    return test::ParseJson(shown.out);
  }
  uint64_t Version() const { return Ledger().at("version").to_number<uint64_t>(); }

  TempDir dir_;
  SmallRun run_;
};

TEST_F(FirstStartTest, AWrongPlaceCostsNothingAndTheCorrectedStartLearns) {
  const Ended refused = Learn({kWrongPlace});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("of the first 1,000 records, read as format json, 0 can be learnt"),
                    HasSubstr("label (/lable)"), HasSubstr((dir_ / "day-0.jsonl") + ", line 1"),
                    HasSubstr("See source.json.label"), HasSubstr("nothing is charged")));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "store.dead-letters.jsonl"));
  EXPECT_EQ(Learn({kWrongPlace}).exit_code, 2) << "it is a first start still";
  const Ended learnt = Learn();
  EXPECT_EQ(learnt.exit_code, 0) << learnt.err;
  EXPECT_GT(Version(), 0u);
}

TEST_F(FirstStartTest, AnAcceptedStreamIsChargedAndTheEndSaysSo) {
  const Ended charged = Learn({kWrongPlace, "source.accept_unreadable=true"});
  EXPECT_EQ(charged.exit_code, 1);
  EXPECT_THAT(charged.out, HasSubstr("1,500 of 1,500 records could not be learnt from"));
  EXPECT_THAT(charged.out, HasSubstr("The steps that they were in are charged all the same"));
  EXPECT_THAT(charged.err, Not(HasSubstr("nothing left to learn")));
  EXPECT_GT(Ledger().at("total").at("epsilon").to_number<double>(), 7);
  // No later start looks, and the corrected one says why it has nothing to do.
  const Ended unlooked = Learn({kWrongPlace});
  EXPECT_EQ(unlooked.exit_code, 0) << unlooked.err;
  EXPECT_THAT(unlooked.err,
              AllOf(HasSubstr("'ctr' has nothing left to learn"), Not(HasSubstr("have changed"))));
  EXPECT_THAT(Learn().err,
              HasSubstr("'ctr' has nothing left to learn: source or schema have changed since"));
}

// A later start is stopped by no look, however bad the files are that have come since.
TEST_F(FirstStartTest, ALaterStartDoesNotLook) {
  ASSERT_EQ(Learn().exit_code, 0);
  const uint64_t version = Version();
  test::WriteFile(dir_ / "day-1.jsonl", test::ReadFile(dir_ / "day-0.jsonl"));
  EXPECT_EQ(Learn({kWrongPlace}).exit_code, 1) << "all of it is dead";
  EXPECT_GT(Version(), version);
}

TEST_F(FirstStartTest, WithTheLookAndWithoutTheSameIsLearntAndCharged) {
  run_.commit_interval_ms = 60'000;  // one commit: the clock decides how many there are, else
  ASSERT_EQ(Learn({}, "looked").exit_code, 0);
  ASSERT_EQ(Learn({"source.accept_unreadable=true"}, "unlooked").exit_code, 0);
  json::object looked = Ledger("looked"), unlooked = Ledger("unlooked");
  EXPECT_EQ(looked.at("learners"), unlooked.at("learners"));
  EXPECT_EQ(looked.at("total"), unlooked.at("total"));
  // Without noise the models are one.
  run_.mechanism = "{kind: none}";
  run_.privacy = "{unit: event, epsilon: .inf, delta: 1.0e-6}";
  const auto scores = [&](const std::string& store, const std::vector<std::string>& settings) {
    EXPECT_EQ(Learn(settings, store).exit_code, 0);
    const Ended scored =
        test::Run({TACIT, "query", "score", "--checkpoint", dir_ / store, "--config",
                   dir_ / (store + ".yaml"), "--learner", "ctr", "--input", dir_ / "day-0.jsonl",
                   "--output", dir_ / (store + ".scores")});
    EXPECT_EQ(scored.exit_code, 0) << scored.err;
    return test::ReadFile(dir_ / (store + ".scores"));
  };
  EXPECT_EQ(scores("open-looked", {}), scores("open-unlooked", {"source.accept_unreadable=true"}));
}

TEST_F(FirstStartTest, AStandbyThatTakesOverAStoreWithoutACommitLooksToo) {
  const std::string bad = test::ReadFile(dir_ / "day-0.jsonl");
  std::filesystem::remove(dir_ / "day-0.jsonl");
  test::WriteFile(dir_ / "day-0.jsonl", "");  // so that the first daemon has nothing to commit
  Service first(dir_, run_);
  ASSERT_TRUE(first.WaitFor("/healthz"));
  test::Process standby(With({TACITD, "--config", dir_ / "store.yaml", "--standby", "--set",
                              "serve.listen=unix:" + (dir_ / "second")},
                             {kWrongPlace, "log.level=info"}));
  ASSERT_TRUE(test::Eventually(
      "it stands by", [&] { return standby.Err().find("standing by: ") != std::string::npos; }));
  test::WriteFile(dir_ / "day-1.jsonl", bad);
  ASSERT_TRUE(first.Stop());
  const auto ended = standby.Wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 2) << ended->err;
  EXPECT_THAT(ended->err, AllOf(HasSubstr("taking over"), HasSubstr("of the first 1,000 records")));
}

TEST_F(FirstStartTest, AnEvaluationIsRefusedInTheSameWords) {
  const Ended refused = test::Run(
      With({TACIT, "evaluate", "--config", run_.WriteConfig(dir_), "--store", dir_ / "kept"},
           {kWrongPlace}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("of the first 1,000 records, read as format json, 0 can be"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "kept"));
}

TEST_F(FirstStartTest, CheckConfigLooksAndEndsAsTheStartWould) {
  const Ended checked = test::Run(
      With({TACITD, "--config", run_.WriteConfig(dir_), "--check-config"}, {kWrongPlace}));
  EXPECT_EQ(checked.exit_code, 2) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("# WARNING: of the first 1,000 records"));
  EXPECT_THAT(checked.err, HasSubstr("source: of the first 1,000 records"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "store"));
}

}  // namespace
}  // namespace tacit
