// tacit evaluate sequence as an experimenter runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <random>

#include "support/json.h"
#include "support/process.h"
#include "support/real_data.h"

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
    const json::object answer = test::Json(Evaluate(std::move(more)));
    return answer.contains("rows") ? answer.at("rows").as_array() : json::array();
  }

  test::TempDir dir_;
};

TEST_F(EvaluateSequenceTest, EveryLearnerAtEveryEpsilonSpendsWhatIsPromised) {
  const json::array rows = Rows({"--epsilon", "2,10,none", "--learner",
                                 "transitions,transitions-no-items,popularity,transitions+ranker",
                                 "--set", "ranker_steps=40", "--seeds", "2", "--items",
                                 dir_ / "items.dat", "--item-ids", dir_ / "ids.txt"});
  ASSERT_EQ(rows.size(), 12u);
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
  EXPECT_GT(hit(11), 0.9);
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

TEST_F(EvaluateSequenceTest, LearningIsWatched) {
  const std::vector<std::string> run = {"--epsilon",     "none",
                                        "--learner",     "transformer,transitions",
                                        "--epochs",      "2",
                                        "--set",         "width=8",
                                        "--set",         "blocks=1",
                                        "--curve-every", "0.5",
                                        "--curve-svg",   dir_ / "c.svg",
                                        "--results",     dir_ / "runs.jsonl"};
  const json::array rows = Rows(run);
  const auto& curve = rows[0].at("curve").as_array();
  ASSERT_EQ(curve.size(), 3u) << "a step takes 256 of 400 users";
  EXPECT_EQ(curve.at(2).at("hit10").at("mean"), rows[0].at("hit10").at("mean"));
  EXPECT_FALSE(rows[1].as_object().contains("curve"));
  EXPECT_EQ(Rows(run), rows) << "what is kept is drawn again";
  EXPECT_THAT(test::ReadFile(dir_ / "c.svg"), HasSubstr("HIT@10, transformer, no privacy</text>"));
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
  EXPECT_THAT(refusal({"--epsilon", "5", "--set", "widht=3"}), HasSubstr("did you mean 'width'"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--curve-svg", dir_ / "no/c.svg"}),
              HasSubstr("--curve-svg"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--markdown", dir_ / "no/t.md"}), HasSubstr("--markdown"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--set", "ranker_setps=3"}),
              HasSubstr("did you mean 'ranker_steps'"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--set", "rankr_steps=3"}),
              HasSubstr("did you mean 'ranker_steps'"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--set", "ranker_steps=99999999999999999999"}),
              HasSubstr("it is a whole number of 0 to 18446744073709551615"));
  for (const char* setting : {"ranker_share=0", "ranker_share=1", "ranker_share=0.99999999999",
                              "ranker_steps=0", "ranker_candidates=0", "ranker_candidates_asked=0",
                              "ranker_last_items=100000", "ranker_learning_rate=1e300"})
    EXPECT_THAT(refusal({"--epsilon", "5", "--learner", "transitions+ranker", "--set", setting}),
                HasSubstr(std::string(setting).substr(7, 5)));
  EXPECT_THAT(refusal({}), HasSubstr("needs --epsilon ("));
  std::ofstream(dir_ / "data.txt", std::ios::app) << "one-word\n";
  EXPECT_THAT(refusal({"--epsilon", "5"}), HasSubstr("data.txt:12001: 1 words"));
  std::ofstream(dir_ / "data.txt") << "u a\nu b\nv a\n";
  EXPECT_THAT(refusal({"--epsilon", "5"}), HasSubstr("data.txt: there is no user to ask about"));
}

class EvaluateStreamTest : public testing::Test {
 protected:
  // The same items that follow each other, one user after the other, a few at a time; twenty of
  // them are always there.
  EvaluateStreamTest() {
    std::mt19937_64 random(4);
    std::ofstream data(dir_ / "stream.tsv");
    std::vector<uint64_t> item(400);
    for (int i = 0, time = 0; i < 400 * 20; ++i, ++time) {
      const auto come = static_cast<size_t>(i) / 20 + random() % 4;
      const auto user = random() % 5 == 0 ? random() % 20 : come % item.size();
      data << user << '\t' << item[user] << "\t5\t" << time / 3 << '\n';
      item[user] = (item[user] + 1 + random() % 2) % 50;
    }
  }
  Ended Evaluate(std::vector<std::string> more) {
    std::vector<std::string> command{TACIT, "evaluate", "sequence", "--stream",
                                     dir_ / "stream.tsv"};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }

  test::TempDir dir_;
};

TEST_F(EvaluateStreamTest, EveryRowSpendsWhatIsPromisedOverTheWholeStream) {
  const std::vector<std::string> run = {"--period",
                                        "1000",
                                        "--epsilon",
                                        "3,none",
                                        "--learner",
                                        "transitions,popularity",
                                        "--user-periods",
                                        "1,3",
                                        "--json",
                                        "--results",
                                        dir_ / "runs.jsonl",
                                        "--svg",
                                        dir_ / "f.svg"};
  const Ended ended = Evaluate(run);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json::array rows = json::parse(ended.out).at("rows").as_array();
  ASSERT_EQ(rows.size(), 8u);
  for (const json::value& row : rows) {
    EXPECT_EQ(row.at("tenths").as_array().size(), 10u);
    if (row.at("epsilon").is_null()) continue;
    const auto spent = row.at("epsilon_spent").to_number<double>();
    EXPECT_LE(spent, 3);
    EXPECT_GT(spent, 2.99);
  }
  EXPECT_EQ(rows[2].at("user_periods"), 3);
  const auto hit = [&](size_t i) { return rows[i].at("hit10").at("mean").to_number<double>(); };
  EXPECT_GT(hit(1), 0.8) << "what follows is all but certain";
  EXPECT_GT(hit(1), hit(5)) << "popularity tells less";
  EXPECT_THAT(test::ReadFile(dir_ / "f.svg"), HasSubstr("</svg>"));
  EXPECT_EQ(Evaluate(run).out, ended.out) << "what is finished is not run again";
}

TEST_F(EvaluateStreamTest, TrainedLearnersSpendWhatIsPromisedToo) {
  std::vector<std::string> run = {"--period", "1000", "--user-periods", "2", "--epsilon", "3,none"};
  run.insert(run.end(), {"--learner", "dpformer,transitions+transformer,transitions+ranker"});
  run.insert(run.end(), {"--json", "--set", "ranker_steps=40"});
  run.insert(run.end(), {"--epochs", "10", "--learning-rate", "0.01", "--set", "width=16"});
  run.insert(run.end(), {"--set", "blocks=1", "--set", "dropout_plain=0"});
  run.insert(run.end(), {"--results", dir_ / "runs.jsonl"});
  const Ended ended = Evaluate(run);
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json::array rows = json::parse(ended.out).at("rows").as_array();
  ASSERT_EQ(rows.size(), 6u);
  for (const json::value& row : rows) {
    EXPECT_EQ(row.at("user_periods"), 2);
    if (row.at("epsilon").is_null()) {
      EXPECT_TRUE(row.at("epsilon_spent").is_null());
      EXPECT_GT(row.at("hit10").at("mean").to_number<double>(), 0.5) << "what follows was learnt";
      continue;
    }
    const auto spent = row.at("epsilon_spent").to_number<double>();
    EXPECT_LE(spent, 3);
    EXPECT_GT(spent, 2.99);
  }
  EXPECT_EQ(Evaluate(run).out, ended.out) << "what is finished is not run again";
  // Another constant is another run.
  const auto lines = [&] {
    const std::string text = test::ReadFile(dir_ / "runs.jsonl");
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(), 6);
  run.insert(run.end(), {"--set", "length=4"});
  EXPECT_EQ(Evaluate(run).exit_code, 0);
  EXPECT_EQ(lines(), 10) << "a ranker has no length";
}

TEST_F(EvaluateStreamTest, WhatIsWrongIsNamed) {
  const auto refusal = [&](std::vector<std::string> more) {
    const Ended ended = Evaluate(std::move(more));
    EXPECT_EQ(ended.exit_code, 2) << ended.out;
    return ended.err;
  };
  EXPECT_THAT(refusal({"--epsilon", "5", "--learner", "transitions-transformer"}),
              HasSubstr("did you mean 'transitions+transformer'?"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--learner", "gru", "--set", "histogram_share=1"}),
              HasSubstr("histogram_share 1"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--learner", "gru", "--set", "width=0"}),
              HasSubstr("width"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--validate"}), HasSubstr("--data"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--data", dir_ / "stream.tsv"}),
              HasSubstr("--data and --stream do not go together"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--user-periods", "0"}), HasSubstr("--user-periods"));
  EXPECT_THAT(refusal({"--epsilon", "5", "--period", "1000000"}),
              HasSubstr("are one period of 1000000"));
  std::ofstream(dir_ / "stream.tsv", std::ios::app) << "7 1 5 0\n";
  EXPECT_THAT(refusal({"--epsilon", "5"}), HasSubstr("the line before it is later"));
  const Ended neither = test::Run({TACIT, "evaluate", "sequence", "--epsilon", "5"});
  EXPECT_EQ(neither.exit_code, 2);
  EXPECT_THAT(neither.err, HasSubstr("--data or --stream"));
}

// Real data: predicted as it came.
TEST(EvaluateStream, MovieLensIsPredictedFromCounts) {
  const std::string data = test::RealData("ml-100k_stream.tsv");
  if (data.empty()) GTEST_SKIP() << "needs ../shared/data/ml-100k_stream.tsv";
  const Ended ended = test::Run({TACIT, "evaluate", "sequence", "--stream", data, "--epsilon",
                                 "10,none", "--period", "20000", "--json"},
                                {}, std::chrono::seconds(500));
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json::array rows = json::parse(ended.out).at("rows").as_array();
  EXPECT_EQ(rows[0].at("events"), rows[1].at("events"));
  EXPECT_GT(rows[0].at("ndcg10").at("mean").to_number<double>(), 0.045);
  EXPECT_GT(rows[1].at("ndcg10").at("mean").to_number<double>(), 0.09);
}

// Real data: what the table of README.md says, less what noise may take.
TEST(EvaluateSequence, MovieLensIsRecommendedFromCounts) {
  const std::string data = test::RealData("ml-1m.txt.gz");
  if (data.empty()) GTEST_SKIP() << "needs ../shared/data/ml-1m.txt.gz";
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
