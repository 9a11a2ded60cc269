// A click model and models of the next item on one stream, under one ledger, as a user who runs
// the programs sees them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>

#include "privacy/gaussian.h"
#include "serve/client.h"
#include "support/eventually.h"
#include "support/json.h"
#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::Eventually;
using test::kPatience;
using test::TempDir;
using ::testing::HasSubstr;

constexpr int kItems = 20, kUsers = 60, kDays = 3, kClicks = 8;

// Every user goes round a circle of items, each from his own place, a few steps a day; what is
// shown besides is passed over.
void WriteShop(const TempDir& dir) {
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
const Guard kPrivate{.privacy = "{unit: user, epsilon: 4, delta: 1.0e-6}",
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
    Result<serve::Response> answer = Fail(ErrorCode::kUnavailable, "not asked");
    const auto answered = Eventually(fmt::format("{} answers {}", body, status), [&] {
      answer = serve::Fetch(url_ + listener + ":/v1/recommend", "POST", body, kPatience);
      return answer && answer->status == status;
    });
    EXPECT_TRUE(answered) << (answer ? answer->body : answer.error().message);
    return answered ? test::ParseJson(answer->body) : json::object{};
  }
  static std::string Best(const json::object& answer) {
    if (!answer.contains("items") || answer.at("items").as_array().empty()) return "";
    return std::string(answer.at("items").at(0).at("id").as_string());
  }

  const TempDir dir_;
  const std::string url_ = "unix:" + (dir_ / "socket");
};

// Without noise a circle is foreseen by both, from any of its places.
TEST_F(RecommendTest, WhatFollowsIsLearntFromTheStream) {
  WriteConfig({});
  const Ended ended = Tacitd();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("learner counts"));
  EXPECT_THAT(ended.out, HasSubstr("HIT@10"));
  test::Process daemon(
      {TACITD, "--config", dir_ / "shop.yaml", "--serve-only", "--checkpoint", dir_ / "store"});
  for (int item = 0; item < kItems; item += 3) {
    const std::string sequence =
        fmt::format(R"("sequence":["item-{}","item-{}"],"k":1)", item, (item + 1) % kItems);
    const std::string expected = fmt::format("item-{}", (item + 2) % kItems);
    EXPECT_EQ(Best(Recommend(R"({"learner":"counts",)" + sequence + "}")), expected);
    EXPECT_EQ(Best(Recommend(R"({"learner":"next",)" + sequence + "}")), expected);
  }
  // A directory is asked as a daemon is.
  const json::object told = Recommend(R"({"learner":"counts","sequence":["item-5"]})");
  const std::vector<std::string> ask = {
      TACIT,          "query",        "recommend", "--config", dir_ / "shop.yaml",
      "--checkpoint", dir_ / "store", "--learner", "counts"};
  const auto query = [&](const std::string& option, const std::string& value) {
    std::vector<std::string> words = ask;
    words.insert(words.end(), {option, value, "--json"});
    return test::Run(words);
  };
  json::object without = test::Json(query("--sequence", "item-5"));
  EXPECT_TRUE(without.at("witness").is_bool());
  without.erase("witness");
  EXPECT_EQ(without, told);
  const Ended of_user = query("--user", "u1");
  EXPECT_EQ(of_user.exit_code, 2);
  EXPECT_THAT(of_user.err, HasSubstr("--user needs --url"));

  // No caller may ask a checkpoint which users it knows.
  const json::object refused = Recommend(R"({"learner":"next","user":"u1"})", 403);
  EXPECT_TRUE(refused.contains("error"));
}

// One ledger: the total is that of one user in everything, and the daemon says what it says.
TEST_F(RecommendTest, AllLearnersAreUnderOneLedger) {
  WriteConfig(kPrivate);
  const Ended ended = Tacitd();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json::object ledger =
      test::Json(test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"}));
  EXPECT_EQ(ledger.at("total").at("unit"), "user");
  double most = 0;
  for (const json::value& learner : ledger.at("learners").as_array()) {
    const double epsilon = learner.at("epsilon").to_number<double>();
    EXPECT_EQ(learner.at("unit"), "user");
    EXPECT_GT(epsilon, 3.9) << learner;
    EXPECT_LE(epsilon, 4) << learner;
    most = std::max(most, epsilon);
  }
  const double total = ledger.at("total").at("epsilon").to_number<double>();
  EXPECT_GT(total, most * 1.2);
  EXPECT_LT(total, 3 * 4.0);
  const Ended verified =
      test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  const Ended exported = test::Run({TACIT, "ledger", "export", "--store", dir_ / "store"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  const Ended plan = test::Run({TACIT, "privacy", "plan", "--config", dir_ / "shop.yaml"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("each period's noised counts are released once"));
}

TEST_F(RecommendTest, AUserIsServedWhereThatIsAskedForAlone) {
  WriteConfig({}, "{items: 50, serve_users: true}");
  test::Process daemon({TACITD, "--config", dir_ / "shop.yaml"});
  // When all is learnt: who has been at every item gets back what he saw longest ago.
  for (const std::string learner : {"counts", "next"}) {
    const std::string ask = R"({"learner":")" + learner + R"(","k":3,"exclude_seen":false,"user":)";
    json::object known;
    // u0 ends at item 3 of the circle, having gone round.
    const std::string expected = fmt::format("item-{}", kDays * kClicks % kItems);
    ASSERT_TRUE(Eventually(learner + " recommends " + expected, [&] {
      known = Recommend(ask + R"("u0"})", 200, "-operators");
      return Best(known) == expected || HasFailure();
    }));
    ASSERT_EQ(Best(known), expected) << learner;
    EXPECT_FALSE(known.at("covered_by_epsilon").as_bool());
    const json::object unknown = Recommend(ask + R"("nobody"})", 200, "-operators");
    EXPECT_EQ(unknown.at("items").as_array().size(), known.at("items").as_array().size());
    ASSERT_EQ(unknown.size(), known.size());
    for (const auto& [key, value] : known) EXPECT_TRUE(unknown.contains(key)) << key;
    EXPECT_EQ(unknown.at("covered_by_epsilon"), known.at("covered_by_epsilon"));
  }
}

// The operator sees all that is held of a user. It is gone when the user asks for it: from what is
// recommended at once, and from every file soon after. Whoever opted out was never there.
TEST_F(RecommendTest, AUserIsForgottenAndAnotherWasNeverLearntFrom) {
  WriteConfig({}, "{items: 50, serve_users: true}");
  test::WriteFile(dir_ / "opt-out", "u7\n");
  const std::string opt_out = "source.opt_out=" + (dir_ / "opt-out");
  test::Process daemon({TACITD, "--config", dir_ / "shop.yaml", "--set", opt_out});
  const auto user = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {TACIT, "user"});
    words.insert(words.end(), {"--url", url_ + "-operators"});
    return test::Run(words);
  };
  const auto history = [&](const std::string& id) {
    const Ended shown = user({"show", id});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    const json::object report = test::ParseJson(shown.out);
    EXPECT_EQ(report.at("opted_out").as_bool(), id == "u7");
    std::map<std::string, std::vector<std::string>> items;
    for (const json::value& of : report.at("histories").as_array())
      for (const json::value& item : of.at("items").as_array())
        items[std::string(of.at("learner").as_string())].emplace_back(
            item.at("id").as_string().c_str());
    return items;
  };
  std::map<std::string, std::vector<std::string>> expected;
  for (int n = 0; n < kDays * kClicks; ++n)
    for (const char* learner : {"counts", "next"})
      expected[learner].push_back(fmt::format("item-{}", (3 * 5 + n) % kItems));
  ASSERT_TRUE(Eventually("the daemon listens", [&] {
    return serve::Fetch(url_ + "-operators:/readyz", "GET", "", kPatience).has_value();
  }));
  ASSERT_TRUE(Eventually("all is learnt", [&] { return history("u5") == expected; }));
  EXPECT_TRUE(history("u7").empty());
  EXPECT_TRUE(history("nobody").empty());
  const json::object report = test::ParseJson(user({"show", "u5"}).out);
  EXPECT_TRUE(report.at("forgotten_before_ms").is_null());
  ASSERT_EQ(report.at("allowances").as_array().size(), 3u);
  EXPECT_EQ(report.at("allowances").at(0),
            test::ParseJson(R"({"learner":"counts","used":3,"of":3})"));

  const std::string ask = R"({"learner":"next","k":3,"exclude_seen":false,"user":)";
  const auto cold = Recommend(ask + R"("nobody"})", 200, "-operators").at("items");
  EXPECT_NE(Recommend(ask + R"("u5"})", 200, "-operators").at("items"), cold);
  const Ended forgotten = user({"forget", "u5", "--wait"});
  ASSERT_EQ(forgotten.exit_code, 0) << forgotten.err;
  const json::object after = test::ParseJson(forgotten.out);
  EXPECT_TRUE(after.at("histories").as_array().empty());
  EXPECT_TRUE(after.at("erased").as_bool());
  EXPECT_EQ(after.at("allowances"), report.at("allowances"));
  EXPECT_TRUE(history("u5").empty());
  EXPECT_EQ(history("u6").size(), 2u);
  EXPECT_EQ(Recommend(ask + R"("u5"})", 200, "-operators").at("items"), cold);

  const Ended nobody = test::Run({TACIT, "user", "show", "", "--url", url_ + "-operators"});
  EXPECT_EQ(nobody.exit_code, 2);
  const Ended by_public = test::Run({TACIT, "user", "show", "u5", "--url", url_});
  EXPECT_EQ(by_public.exit_code, 2);
  EXPECT_THAT(by_public.err, HasSubstr("the operator's"));
}

TEST_F(RecommendTest, AnOptOutFileThatIsMissingStopsTheStart) {
  WriteConfig({});
  const Ended refused = Tacitd({"--until-end", "--set", "source.opt_out=" + (dir_ / "nowhere")});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("source.opt_out"));
  EXPECT_THAT(refused.err, HasSubstr("nowhere cannot be read"));
}

// Nothing but counts: no embeddings, no dense parameters.
TEST_F(RecommendTest, CountsMayBeAlone) {
  WriteConfig(kPrivate);
  std::string yaml = test::ReadFile(dir_ / "shop.yaml");
  yaml.erase(yaml.find("  - id: next"));
  test::WriteFile(dir_ / "shop.yaml", yaml);
  const Ended ended = Tacitd();
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("learner counts"));
}

// Counts with a ranker, and transformers that begin with counts or with popularity: one promise
// each, over the releases that open periods and the steps after them.
TEST_F(RecommendTest, RankersAndStartsAreLearnersLikeEveryOther) {
  WriteConfig(kPrivate);
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
  const Ended ended = Tacitd();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  const json::object ledger =
      test::Json(test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"}));
  ASSERT_EQ(ledger.at("learners").as_array().size(), 3u);
  for (const json::value& learner : ledger.at("learners").as_array()) {
    EXPECT_GT(learner.at("epsilon").to_number<double>(), 3.9) << learner;
    EXPECT_LE(learner.at("epsilon").to_number<double>(), 4) << learner;
    // A period's opening is a release beside its six steps.
    EXPECT_EQ(learner.at("steps").to_number<int>(),
              kDays * (learner.at("learner") == "ranked" ? 1 : 7));
  }
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"ledger", "verify", "--full", "--store", dir_ / "store"},
        {"ledger", "export", "--store", dir_ / "store"},
        {"privacy", "plan", "--config", dir_ / "shop.yaml"}}) {
    std::vector<std::string> command = words;
    command.insert(command.begin(), TACIT);
    const Ended said = test::Run(command);
    EXPECT_EQ(said.exit_code, 0) << said.err;
    EXPECT_FALSE(said.out.empty());
  }

  const std::vector<std::string> learners = {"ranked", "from-counts", "from-popularity"};
  std::map<std::string, json::object> of_sequence;
  {
    test::Process daemon(
        {TACITD, "--config", dir_ / "shop.yaml", "--serve-only", "--checkpoint", dir_ / "store"});
    for (const std::string& learner : learners) {
      const std::string ask = R"({"learner":")" + learner + R"(",)";
      of_sequence[learner] = Recommend(ask + R"("sequence":["item-5","item-6"],"k":5})");
      EXPECT_EQ(of_sequence[learner].at("items").as_array().size(), 5u);
      const json::object cold = Recommend(ask + R"("sequence":[],"k":5})");
      EXPECT_EQ(cold.at("items").as_array().size(), 5u);
      // A directory is asked as a daemon is.
      json::object asked =
          test::Json(test::Run({TACIT, "query", "recommend", "--config", dir_ / "shop.yaml",
                                "--checkpoint", dir_ / "store", "--learner", learner, "--sequence",
                                "item-5,item-6", "--k", "5", "--json"}));
      asked.erase("witness");
      EXPECT_EQ(asked, of_sequence[learner]);
    }
  }
  // A daemon that goes on answers the same, and a user by name as well.
  test::Process daemon({TACITD, "--config", dir_ / "shop.yaml"});
  for (const std::string& learner : learners) {
    const std::string ask = R"({"learner":")" + learner + R"(",)";
    EXPECT_EQ(Recommend(ask + R"("sequence":["item-5","item-6"],"k":5})").at("items"),
              of_sequence[learner].at("items"));
    const json::object user = Recommend(ask + R"("user":"u0","k":5})", 200, "-operators");
    EXPECT_FALSE(user.at("covered_by_epsilon").as_bool());
  }
}

TEST_F(RecommendTest, AnotherCatalogueIsAnotherModel) {
  WriteConfig(kPrivate);
  ASSERT_EQ(Tacitd().exit_code, 0);
  test::WriteFile(dir_ / "items.dat", test::ReadFile(dir_ / "items.dat") + "item-new\n");
  const Ended refused = Tacitd();
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_THAT(refused.err,
              HasSubstr("learner 'counts' differs from the store's model of that name"));
  test::WriteFile(dir_ / "items.dat", "item-1\nitem-1\n");
  const Ended bad = Tacitd();
  EXPECT_EQ(bad.exit_code, 2) << bad.err;
  EXPECT_THAT(bad.err, HasSubstr("items.dat:2"));
}

TEST_F(RecommendTest, EvaluateIsForClicks) {
  WriteConfig(kPrivate);
  const Ended refused = test::Run({TACIT, "evaluate", "ctr", "--config", dir_ / "shop.yaml",
                                   "--data", dir_ / "day-0.jsonl", "--learner", "next"});
  EXPECT_EQ(refused.exit_code, 2) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("--learner next: its model is of the next item"));
}

}  // namespace
}  // namespace tacit
