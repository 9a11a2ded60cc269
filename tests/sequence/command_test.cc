// tacit evaluate sequence as an experimenter runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using testing::HasSubstr;
using testing::Not;

class EvaluateSequenceTest : public testing::Test {
 protected:
  // Items that follow each other, and their descriptions.
  EvaluateSequenceTest() {
    std::mt19937_64 random(3);
    std::ofstream data(dir_ / "data.txt");
    for (int user = 0; user < 400; ++user) {
      auto item = random() % 50;
      for (int i = 0; i < 30; ++i, item = (item + 1 + random() % 2) % 50)
        data << user << ' ' << item << '\n';
    }
    std::ofstream items(dir_ / "items.dat"), ids(dir_ / "ids.txt");
    for (int i = 0; i < 50; ++i) {
      items << 100 + i << "::Title " << i << " (" << 1950 + i << ")::" << (i < 25 ? "A|B" : "C")
            << '\n';
      ids << i << ' ' << 100 + i << '\n';
    }
  }
  Ended Evaluate(std::vector<std::string> more) {
    std::vector<std::string> command{TACIT, "evaluate", "sequence", "--data", dir_ / "data.txt"};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }
  json::array Rows(std::vector<std::string> more) {
    more.push_back("--json");
    const Ended ended = Evaluate(std::move(more));
    EXPECT_EQ(ended.exit_code, 0) << ended.err;
    json::error_code error;
    const json::value value = json::parse(ended.out, error);
    EXPECT_FALSE(error) << ended.out;
    return error ? json::array() : value.at("rows").as_array();
  }

  test::TempDir dir_;
};

TEST_F(EvaluateSequenceTest, EveryLearnerAtEveryEpsilonSpendsWhatIsPromised) {
  const json::array rows =
      Rows({"--epsilon", "2,10,none", "--learner", "transitions,transitions-no-items,popularity",
            "--seeds", "2", "--items", dir_ / "items.dat", "--item-ids", dir_ / "ids.txt"});
  ASSERT_EQ(rows.size(), 9u);
  for (const json::value& row : rows) {
    EXPECT_EQ(row.at("users"), 400);
    EXPECT_EQ(row.at("seeds"), 2);
    if (row.at("epsilon").is_null()) {
      EXPECT_TRUE(row.at("epsilon_spent").is_null());
      continue;
    }
    const auto promised = row.at("epsilon").to_number<double>();
    const auto spent = row.at("epsilon_spent").to_number<double>();
    EXPECT_LE(spent, promised);
    EXPECT_GT(spent, 0.999 * promised);
  }
  const auto hit = [&](size_t i) { return rows[i].at("hit10").at("mean").to_number<double>(); };
  EXPECT_GT(hit(2), 0.9) << "what follows is all but certain";
  EXPECT_GT(hit(2), hit(8)) << "popularity tells less";
}

TEST_F(EvaluateSequenceTest, WhatIsFinishedIsNotRunAgain) {
  const std::vector<std::string> run = {"--epsilon", "5", "--results", dir_ / "runs.jsonl"};
  const json::array first = Rows(run);
  const auto lines = [&] {
    const std::string text = test::ReadFile(dir_ / "runs.jsonl");
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(), 1);
  EXPECT_EQ(Rows(run), first);
  EXPECT_EQ(lines(), 1);
  std::vector<std::string> other = run;
  other.push_back("--validate");
  Rows(other);
  EXPECT_EQ(lines(), 2);
}

TEST_F(EvaluateSequenceTest, TablesAndFiguresAreWritten) {
  const Ended ended =
      Evaluate({"--epsilon", "5", "--markdown", dir_ / "t.md", "--svg", dir_ / "f.svg", "--learner",
                "popularity", "--jobs", "2", "--seeds", "2"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("NDCG@10 / HIT@10, %"));
  EXPECT_THAT(test::ReadFile(dir_ / "t.md"), HasSubstr("| popularity |"));
  EXPECT_THAT(test::ReadFile(dir_ / "f.svg"), HasSubstr("</svg>"));
}

TEST_F(EvaluateSequenceTest, WhatIsWrongIsNamed) {
  const auto refusal = [&](std::vector<std::string> more) {
    const Ended ended = Evaluate(std::move(more));
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    return ended.err;
  };
  EXPECT_THAT(refusal({"--epsilon", "0"}), HasSubstr("--epsilon 0: a number above 0, or none"));
  for (const char* learner : {"popularity", "dpformer", "transitions"})
    EXPECT_THAT(refusal({"--epsilon", "1e9", "--learner", learner}), HasSubstr("--epsilon 1e+09"));
  EXPECT_THAT(refusal({"--epsilon", "5,x"}), HasSubstr("--epsilon x"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--learner", "transition"}),
              HasSubstr("(did you mean 'transitions'?)"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--item-ids", dir_ / "ids.txt"}), HasSubstr("--items"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--markdown", dir_ / "no/t.md"}), HasSubstr("--markdown"));
  EXPECT_THAT(refusal({}), HasSubstr("--epsilon is required"));
  std::ofstream(dir_ / "data.txt", std::ios::app) << "one-word\n";
  EXPECT_THAT(refusal({"--epsilon", "5"}), HasSubstr("data.txt:12001: 1 words"));
  std::ofstream(dir_ / "data.txt") << "u a\nu b\nv a\n";
  EXPECT_THAT(refusal({"--epsilon", "5"}), HasSubstr("data.txt: nobody can be asked about"));
}

// Real data: what the table of README.md says, less what noise may take.
TEST(EvaluateSequence, MovieLensIsRecommendedFromCounts) {
  const std::filesystem::path data =
      std::filesystem::path(TACIT_SOURCE_DIR) / "../shared/data/ml-1m.txt.gz";
  if (!std::filesystem::exists(data)) {
    const char* require = std::getenv("TACIT_REQUIRE");
    if (require != nullptr && std::string(require).find("data") != std::string::npos)
      FAIL() << data << " is missing";
    GTEST_SKIP() << data << " is missing";
  }
  const Ended ended =
      test::Run({TACIT, "evaluate", "sequence", "--data", data, "--epsilon", "5", "--json"}, {},
                std::chrono::seconds(500));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json::value row = json::parse(ended.out).at("rows").at(0);
  EXPECT_EQ(row.at("users"), 6040);
  EXPECT_GT(row.at("ndcg10").at("mean").to_number<double>(), 0.09);
}

}  // namespace
}  // namespace tacit
