// Each question is asked of models that inspect proposes, for records of each form.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "http/client.h"
#include "support/eventually.h"
#include "support/json.h"
#include "support/process.h"
#include "unit/inspect/logs.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using testing::HasSubstr;
using testing::Not;

constexpr size_t kRecords = 3000;

class QuestionsE2e : public testing::TestWithParam<std::string> {
 protected:
  QuestionsE2e() {
    std::string items;
    for (int sku = 7000; sku < 7100; ++sku) items += fmt::format("{}\n", sku);
    test::WriteFile(dir_ / "items.dat", items);
    const std::string csv = test::DatedShopAsCsv(9, kRecords);
    const std::string text = GetParam() == "csv"   ? csv
                             : GetParam() == "tsv" ? test::DatedShopAsCsv(9, kRecords, 400, '\t')
                             : GetParam() == "numbered" ? Numbered(csv)
                                                        : test::DatedShopAsJson(csv);
    test::WriteFile(log_, text);
    lines_ = test::LinesOf(text);
    first_ = lines_[has_header() ? 1 : 0];
    fields_ = test::SplitAt(test::LinesOf(csv)[1], ',');
  }

  // Puts the numbers of the rows first, in a column without a name, as spreadsheets write them.
  static std::string Numbered(const std::string& csv) {
    std::string text;
    size_t row = 0;
    for (const std::string& line : test::LinesOf(csv))
      text += fmt::format("{},{}\n", row == 0 ? "" : std::to_string(row - 1), line), ++row;
    return text;
  }
  bool has_header() const { return GetParam() != "json"; }
  // Writes values behind the empty keys of both learners.
  void FillIn() {
    std::string yaml = test::ReadFile(dir_ / "shop.yaml");
    for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
             {"unit", "event"}, {"epsilon", "8"}, {"delta", "1e-6"}, {"mode", "once"}}) {
      const std::string open = "\n      " + key + ":";
      size_t at = 0;
      for (int learner = 0; learner < 2; ++learner) {
        at = yaml.find(open, at);
        ASSERT_NE(at, std::string::npos) << key << yaml;
        at += open.size();
        yaml.insert(at, ' ' + (key == "unit" && learner == 1 ? "user" : value));
      }
    }
    test::WriteFile(dir_ / "shop.yaml", yaml);
  }
  std::vector<std::string> Tacitd(std::vector<std::string> more) const {
    std::vector<std::string> command = {TACITD,
                                        "--config",
                                        dir_ / "shop.yaml",
                                        "--set",
                                        "serve.listen=" + url_,
                                        "--set",
                                        "training.idle_priority=false"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  Ended Score(std::vector<std::string> more) const {
    std::vector<std::string> command = {TACIT,
                                        "query",
                                        "score",
                                        "--checkpoint",
                                        dir_ / "shop-data/store",
                                        "--config",
                                        dir_ / "shop.yaml",
                                        "--learner",
                                        "clicks"};
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }
  static double FirstOf(const std::string& answer) {
    return test::ParseJson(answer).at("scores").as_array().at(0).to_number<double>();
  }
  std::string Answer(const std::string& path, const std::string& body) const {
    const auto answer = http::Fetch(url_ + ":" + path, "POST", body, test::kPatience);
    EXPECT_TRUE(answer) << answer.error().message;
    EXPECT_TRUE(answer && answer->status == 200u) << path << (answer ? answer->body : "");
    return answer ? answer->body : "";
  }
  void Learn() {
    const Ended inspected = test::Run(
        {TACIT, "inspect", log_, "--items", dir_ / "items.dat", "--output", dir_ / "shop.yaml"});
    ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
    EXPECT_THAT(inspected.out, HasSubstr("next items: a model of the next item is proposed"));
    EXPECT_THAT(inspected.out, HasSubstr("name no zone"));
    FillIn();
    const Ended learnt = test::Run(Tacitd({"--until-end"}));
    ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
    EXPECT_EQ(test::ReadFile(dir_ / "shop-data/store.dead-letters.jsonl"), "");
  }
  // Asks a daemon; returns the first record's score.
  double AskDaemon() {
    test::Process daemon(Tacitd({}));
    EXPECT_TRUE(test::Eventually("the daemon is ready", [&] {
      const auto ready = http::Fetch(url_ + ":/readyz", "GET", "", test::kPatience);
      return ready && ready->status == 200;
    })) << daemon.Err();
    const double score = FirstOf(Answer("/v1/score/lines?learner=clicks", first_ + "\n"));
    // A whole number is the same as its digits in quotes.
    for (const char* quote : {"", "\""})
      EXPECT_EQ(
          FirstOf(Answer("/v1/score",
                         fmt::format(R"({{"learner":"clicks","rows":[{{"features":)"
                                     R"({{"sku":{0}{1}{0},"shelf":{0}{2}{0},"price":{3}}}}}]}})",
                                     quote, fields_[2], fields_[3], fields_[4]))),
          score);
    const Ended asked = test::Run(
        {TACIT, "query", "score", "--url", url_, "--learner", "clicks", "--row", first_, "--json"});
    EXPECT_EQ(asked.exit_code, 0) << asked.err;
    EXPECT_DOUBLE_EQ(asked.exit_code == 0 ? FirstOf(asked.out) : -1, score);
    const auto next = test::ParseJson(
        Answer("/v1/recommend", R"({"learner":"next","sequence":[7001,7002],"k":3})"));
    EXPECT_EQ(next.at("items").as_array().size(), 3u);
    return score;
  }

  const test::TempDir dir_;
  const std::string url_ = "unix:" + (dir_ / "socket");
  const std::string log_ = dir_ / "shop.log", asked_ = dir_ / "asked.log";
  std::vector<std::string> lines_, fields_;
  std::string first_;  // the first record
};

TEST_P(QuestionsE2e, EachQuestionIsAnsweredAlike) {
  ASSERT_NO_FATAL_FAILURE(Learn());
  const double score = AskDaemon();
  ASSERT_GT(score, 0);
  // The configuration alone says how a line is read: the log is elsewhere.
  std::filesystem::rename(log_, asked_);
  const Ended row = Score({"--row", first_, "--json"});
  ASSERT_EQ(row.exit_code, 0) << row.err;
  EXPECT_DOUBLE_EQ(FirstOf(row.out), score);
  const Ended range =
      Score({"--tsv", asked_, "--first", has_header() ? "1" : "0", "--count", "2", "--json"});
  ASSERT_EQ(range.exit_code, 0) << range.err;
  EXPECT_DOUBLE_EQ(FirstOf(range.out), score);
  std::vector<std::string> whole = {"--input", asked_, "--output", dir_ / "scores.jsonl"};
  if (has_header()) whole.push_back("--skip-header");
  const Ended file = Score(whole);
  ASSERT_EQ(file.exit_code, 0) << file.err;
  EXPECT_THAT(file.out, HasSubstr("3,000 lines answered, 0 bad"));
  const std::string answered = test::ReadFile(dir_ / "scores.jsonl");
  EXPECT_FLOAT_EQ(test::ParseJson(test::LinesOf(answered)[0]).at("probability").to_number<float>(),
                  static_cast<float>(score));
  if (has_header()) {
    const Ended header = Score({"--tsv", asked_, "--count", "1"});
    EXPECT_NE(header.exit_code, 0) << header.out;
    EXPECT_THAT(header.err, HasSubstr("asked.log:1: it names the columns, and is no record"));
  }
  const Ended next =
      test::Run({TACIT, "query", "recommend", "--checkpoint", dir_ / "shop-data/store", "--config",
                 dir_ / "shop.yaml", "--learner", "next", "--sequence", "7001,7002", "--json"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
}

TEST_P(QuestionsE2e, ItsLearnersAreEvaluated) {
  ASSERT_NO_FATAL_FAILURE(Learn());
  const Ended run = test::Run({TACIT, "evaluate", "--config", dir_ / "shop.yaml", "--set",
                               "serve.listen=" + url_, "--set", "training.idle_priority=false"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("learner next"));
  const auto evaluate = [&] {
    const Ended grid =
        test::Run({TACIT, "evaluate", "ctr", "--config", dir_ / "shop.yaml", "--data", log_});
    EXPECT_EQ(grid.exit_code, 0) << grid.err;
    EXPECT_THAT(grid.err, Not(HasSubstr("could not be read")));
    EXPECT_THAT(grid.out, HasSubstr("clicks"));
  };
  evaluate();
  if (!has_header()) return;
  // The header names the columns where the configuration does not.
  std::string yaml = test::ReadFile(dir_ / "shop.yaml");
  const size_t columns = yaml.find("    columns:\n");
  ASSERT_NE(columns, std::string::npos);
  size_t end = columns + 13;
  while (yaml.compare(end, 8, "      - ") == 0) end = yaml.find('\n', end) + 1;
  test::WriteFile(dir_ / "shop.yaml", yaml.erase(columns, end - columns));
  evaluate();
}

INSTANTIATE_TEST_SUITE_P(Forms, QuestionsE2e, testing::Values("csv", "tsv", "numbered", "json"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tacit
