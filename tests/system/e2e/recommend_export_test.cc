// Releases of models of the next item in the hands of other programs: what is exported has the
// order of the daemon's own answers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <limits>
#include <map>
#include <sstream>

#include "recommend_shop.h"

namespace tacit {
namespace {

namespace json = boost::json;
using shop::kItems;
using shop::RecommendTest;
using test::Ended;
using ::testing::HasSubstr;

// A release has what recommendations are made from: each item's scores after each item, and a
// network's item factors, by the items' ids.
TEST_F(RecommendTest, OtherProgramsReadTheScores) {
  WriteConfig({}, "{items: 50, serve_users: true}");
  test::Process daemon({TACITD, "--config", dir_ / "shop.yaml"});
  for (const std::string learner : {"counts", "next"})
    Recommend(R"({"learner":")" + learner + R"(","sequence":["item-1"]})");
  const std::string release = MakeRelease();
  const auto exported = [&](const std::string& format, const std::string& output) {
    return test::Run({TACIT, "checkpoint", "export", release, "--config", dir_ / "shop.yaml",
                      "--format", format, "--output", dir_ / output});
  };
  const Ended csv = exported("csv", "csv");
  ASSERT_EQ(csv.exit_code, 0) << csv.err;
  daemon.Signal(SIGTERM);
  ASSERT_TRUE(daemon.Wait());
  test::Process server(
      {TACITD, "--config", dir_ / "shop.yaml", "--serve-only", "--checkpoint", release});
  for (const std::string learner : {"counts", "next"}) {
    auto rows = ReadRows(learner + "/next.scores");
    ASSERT_EQ(rows.size(), size_t{kItems}) << learner;
    for (int item = 0; item < kItems; item += 7) {
      const std::string id = fmt::format("item-{}", item);
      ASSERT_EQ(rows[id].size(), size_t{kItems});
      const json::object told =
          Recommend(R"({"learner":")" + learner + R"(","k":5,"exclude_seen":false,"sequence":[")" +
                    id + R"("]})");
      double last = std::numeric_limits<double>::infinity();
      for (const json::value& one : told.at("items").as_array()) {
        const int of = std::stoi(std::string(one.at("id").as_string()).substr(5));
        const double score = rows[id][static_cast<size_t>(of)];
        EXPECT_LE(score, last) << "best first";
        last = score;
      }
      const size_t better = static_cast<size_t>(
          std::ranges::count_if(rows[id], [&](double score) { return score > last; }));
      EXPECT_EQ(better, 4u) << learner << ": the five are the best of all";
    }
    EXPECT_TRUE(test::ReadFile(dir_ / "csv/" + learner + "/next.cold_start.csv")
                    .starts_with("name,0\nitem-0,"));
    EXPECT_TRUE(test::ReadFile(dir_ / "csv/" + learner + "/next.scores.csv")
                    .starts_with("name,item-0,item-1,"));
  }
  std::istringstream factors(test::ReadFile(dir_ / "csv/next/items.csv"));
  std::string first;
  std::getline(factors, first);
  EXPECT_TRUE(first.starts_with("name,0,1,2,")) << first;
  std::getline(factors, first);
  EXPECT_TRUE(first.starts_with("item-0,")) << first;
  EXPECT_EQ(std::ranges::count(first, ','), 16) << "a factor a number of the model's width";

  const Ended onnx = exported("onnx", "onnx");
  EXPECT_EQ(onnx.exit_code, 0) << onnx.err;
  EXPECT_THAT(onnx.err,
              testing::AllOf(HasSubstr("learner 'counts' recommends items and is left out"),
                             HasSubstr("--format npy")));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "onnx/counts"));
  const Ended named =
      test::Run({TACIT, "checkpoint", "export", release, "--config", dir_ / "shop.yaml", "--format",
                 "onnx", "--output", dir_ / "none", "--learner", "counts"});
  EXPECT_EQ(named.exit_code, 3);
  EXPECT_THAT(named.err, HasSubstr("learner 'counts' recommends items"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "none"));
}

// The scores of a ranker, and of transformers that begin with a release: the daemon orders all
// items by them, after each item and without a history. Planted: another model's scores give
// another order.
TEST_F(RecommendTest, OtherProgramsReadTheScoresOfRankersAndStarts) {
  WriteRankersConfig();
  std::string release;
  const std::vector<std::string> learners = {"ranked", "from-counts", "from-popularity"};
  {
    test::Process daemon({TACITD, "--config", dir_ / "shop.yaml"});
    for (const std::string& learner : learners)
      Recommend(R"({"learner":")" + learner + R"(","sequence":["item-1"]})");
    release = MakeRelease();
    daemon.Signal(SIGTERM);
    ASSERT_TRUE(daemon.Wait());
  }
  const Ended csv = test::Run({TACIT, "checkpoint", "export", release, "--config",
                               dir_ / "shop.yaml", "--format", "csv", "--output", dir_ / "csv"});
  ASSERT_EQ(csv.exit_code, 0) << csv.err;
  test::Process server(
      {TACITD, "--config", dir_ / "shop.yaml", "--serve-only", "--checkpoint", release});
  // The items that the daemon names, best first, and how often a score is above the one before.
  const auto out_of_order = [&](const std::string& learner, const std::string& sequence,
                                const std::vector<double>& scores) {
    const json::object told =
        Recommend(fmt::format(R"({{"learner":"{}","k":{},"exclude_seen":false,"sequence":[{}]}})",
                              learner, kItems, sequence));
    EXPECT_EQ(told.at("items").as_array().size(), size_t{kItems});
    int out = 0;
    double last = std::numeric_limits<double>::infinity();
    for (const json::value& one : told.at("items").as_array()) {
      const int of = std::stoi(std::string(one.at("id").as_string()).substr(5));
      const double score = scores.at(static_cast<size_t>(of));
      out += score > last ? 1 : 0;
      last = score;
    }
    return out;
  };
  std::map<std::string, std::map<std::string, std::vector<double>>> scores;
  for (const std::string& learner : learners) {
    scores[learner] = ReadRows(learner + "/next.scores");
    ASSERT_EQ(scores[learner].size(), size_t{kItems});
    auto cold = ReadRows(learner + "/next.cold_start");
    std::vector<double> at_first;
    for (int item = 0; item < kItems; ++item)
      at_first.push_back(cold[fmt::format("item-{}", item)].at(0));
    EXPECT_EQ(out_of_order(learner, "", at_first), 0) << learner;
  }
  for (int item = 0; item < kItems; item += 5) {
    const std::string id = fmt::format("item-{}", item), sequence = '"' + id + '"';
    for (const std::string& learner : learners) {
      ASSERT_EQ(scores[learner][id].size(), size_t{kItems});
      EXPECT_EQ(out_of_order(learner, sequence, scores[learner][id]), 0) << learner << id;
    }
    EXPECT_GT(out_of_order("ranked", sequence, scores["from-popularity"][id]), 3);
  }
}

}  // namespace
}  // namespace tacit
