#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "http/client.h"
#include "support/eventually.h"
#include "support/json.h"
#include "support/process.h"

// A shop whose items models of the next item recommend, and its daemon.
namespace tacit::shop {

namespace json = boost::json;
using test::Ended;
using test::Eventually;
using test::kPatience;
using test::TempDir;

inline constexpr int kItems = 20, kUsers = 60, kDays = 3, kClicks = 8;

// Every user goes round a circle of items, each from his own place, a few steps a day; what is
// shown besides is passed over.
inline void WriteShop(const TempDir& dir) {
  std::string catalogue;
  for (int i = 0; i < kItems; ++i) catalogue += fmt::format("item-{}\n", i);
  test::WriteFile(dir / "items.dat", catalogue);
  for (int day = 0; day < kDays; ++day) {
    std::string text;
    for (int click = 0; click < kClicks; ++click) {
      for (int user = 0; user < kUsers; ++user) {
        const int item = (3 * user + day * kClicks + click) % kItems;
        const auto line = [&](int shown, int label) {
          text += fmt::format(
              R"({{"label":{},"user":"u{}","item":"item-{}","timestamp_ms":{},"features":{{"x":{},"c":"{}"}}}})"
              "\n",
              label, user, shown, 1000 + day * 1000 + click, shown, shown % 7);
        };
        line((item + 7) % kItems, 0);
        line(item, 1);
      }
    }
    test::WriteFile(dir / fmt::format("day-{}.jsonl", day), text);
  }
}

struct Guard {
  std::string privacy = "{unit: user, epsilon: .inf, delta: 1.0e-6}";
  std::string counts = "{kind: none}", next = "{kind: none}", clicks = "{kind: none}";
};
inline const Guard kPrivate{.privacy = "{unit: user, epsilon: 4, delta: 1.0e-6}",
                            .counts = "{kind: counts}",
                            .next = "{kind: dp-sgd}",
                            .clicks = "{kind: dp-sgd}"};

class RecommendTest : public ::testing::Test {
 protected:
  RecommendTest() { WriteShop(dir_); }

  void WriteConfig(const Guard& guard, const std::string& history = "{items: 50}") {
    std::string yaml = fmt::format(
        "source: {{kind: log, files: {}, format: json}}\n"
        "catalogue: {{file: {}}}\n"
        "schema: {{features: [{{name: x, kind: dense}}, {{name: c, kind: categorical, buckets: "
        "16}}]}}\n"
        "store: {{path: {}, commit_interval_ms: 10}}\n"
        "serve: {{listen: \"{}\", operator_listen: \"{}-operators\"}}\n"
        "training: {{idle_priority: false}}\n"
        "memory: {{total_bytes: 500MiB}}\n"
        "learners:\n",
        dir_ / "day-*.jsonl", dir_ / "items.dat", dir_ / "store", url_, url_);
    yaml += fmt::format(
        "  - id: counts\n    model: {{kind: transitions}}\n    mechanism: {}\n"
        "    participation: {{mode: once, batch: 100000, max_participations: 3}}\n"
        "    history: {}\n    privacy: {}\n",
        guard.counts, history, guard.privacy);
    yaml += fmt::format(
        "  - id: next\n    model: {{kind: sequence, width: 16, length: 8, blocks: 1, "
        "item_bias: false, mask_seen: false, random_crops: false}}\n"
        "    mechanism: {}\n"
        "    participation: {{mode: poisson, period_files: 1, sampling_rate: 0.5, "
        "steps_per_period: 60, batch: 30, max_participations: 180}}\n"
        "    optimizer: {{kind: adam, learning_rate: 0.02}}\n"
        "    history: {}\n    privacy: {}\n",
        guard.next, history, guard.privacy);
    yaml += fmt::format(
        "  - id: ctr\n    model: {{kind: pctr, hidden: [8]}}\n    mechanism: {}\n"
        "    participation: {{mode: once, batch: 320, max_participations: 9}}\n    privacy: {}\n",
        guard.clicks, guard.privacy);
    test::WriteFile(dir_ / "shop.yaml", yaml);
  }
  Ended Tacitd(std::vector<std::string> words = {"--until-end"}) {
    words.insert(words.begin(), {TACITD, "--config", dir_ / "shop.yaml"});
    return test::Run(words);
  }
  // Asks until there is an answer of this status: states are made after the commits.
  json::object Recommend(const std::string& body, unsigned status = 200,
                         const std::string& listener = "") {
    Result<http::Response> answer = Fail(ErrorCode::kUnavailable, "not asked");
    const auto answered = Eventually(fmt::format("{} answers {}", body, status), [&] {
      answer = http::Fetch(url_ + listener + ":/v1/recommend", "POST", body, kPatience);
      return answer && answer->status == status;
    });
    EXPECT_TRUE(answered) << (answer ? answer->body : answer.error().message);
    return answered ? test::ParseJson(answer->body) : json::object{};
  }
  // Learners under one promise each, over the releases that open periods and the steps after them:
  // counts with a ranker, and transformers that begin with counts or with popularity.
  void WriteRankersConfig() {
    WriteConfig(kPrivate, "{items: 50, serve_users: true}");
    std::string yaml = test::ReadFile(dir_ / "shop.yaml");
    yaml.erase(yaml.find("  - id: counts"));
    yaml.replace(yaml.find("500MiB"), 6, "800MiB");
    const std::string end =
        "    history: {items: 50, serve_users: true}\n    privacy: " + kPrivate.privacy + "\n";
    yaml +=
        "  - id: ranked\n    model: {kind: transitions, ranker: true, ranker_users: 60}\n"
        "    mechanism: {kind: counts}\n"
        "    participation: {mode: once, batch: 100000, max_participations: 3}\n" +
        end;
    for (const std::string start : {"counts", "popularity"})
      yaml += "  - id: from-" + start +
              "\n    model: {kind: sequence, width: 16, length: 8, blocks: 1, start: " + start +
              "}\n    mechanism: {kind: dp-sgd, clipping: automatic}\n"
              "    participation: {mode: poisson, period_files: 1, sampling_rate: 0.5, "
              "steps_per_period: 6, batch: 30, max_participations: 18}\n"
              "    optimizer: {kind: adam, learning_rate: 0.01}\n" +
              end;
    test::WriteFile(dir_ / "shop.yaml", yaml);
  }
  // Has the daemon that is running make a release, and returns its folder.
  std::string MakeRelease() {
    const Ended made = test::Run(
        {TACIT, "checkpoint", "create", "--url", url_ + "-operators", "--kind", "release"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    for (const auto& entry : std::filesystem::directory_iterator(dir_ / "store.checkpoints"))
      if (entry.path().filename().string().starts_with("release")) return entry.path();
    return "";
  }
  // A tensor with a row for each item, as CSV.
  std::map<std::string, std::vector<double>> ReadRows(const std::string& tensor) const {
    std::map<std::string, std::vector<double>> rows;
    std::istringstream lines(test::ReadFile(dir_ / "csv/" + tensor + ".csv"));
    std::string line;
    std::getline(lines, line);
    EXPECT_TRUE(line.starts_with("name,")) << line;
    while (std::getline(lines, line)) {
      std::istringstream fields(line);
      std::string name, field;
      std::getline(fields, name, ',');
      while (std::getline(fields, field, ',')) rows[name].push_back(std::stod(field));
    }
    return rows;
  }
  static std::string Best(const json::object& answer) {
    if (!answer.contains("items") || answer.at("items").as_array().empty()) return "";
    return std::string(answer.at("items").at(0).at("id").as_string());
  }

  const TempDir dir_;
  const std::string url_ = "unix:" + (dir_ / "socket");
};

}  // namespace tacit::shop
