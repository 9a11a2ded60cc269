// A click model and models of the next item on one stream, under one ledger, as a user who runs
// the programs sees them.
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

#include "http/client.h"
#include "privacy/gaussian.h"
#include "recommend_shop.h"
#include "support/eventually.h"
#include "support/json.h"
#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;
using shop::kClicks;
using shop::kDays;
using shop::kItems;
using shop::kPrivate;
using shop::kUsers;
using shop::RecommendTest;
using test::Ended;
using test::Eventually;
using test::kPatience;
using test::TempDir;
using ::testing::HasSubstr;

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
// recommended at once, and from every file soon after. Users who opted out were never there.
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
    return http::Fetch(url_ + "-operators:/readyz", "GET", "", kPatience).has_value();
  }));
  ASSERT_TRUE(Eventually("all is learnt", [&] { return history("u5") == expected; }));
  EXPECT_TRUE(history("u7").empty());
  EXPECT_TRUE(history("nobody").empty());
  const json::object report = test::ParseJson(user({"show", "u5"}).out);
  EXPECT_TRUE(report.at("forgotten_before_ms").is_null());
  ASSERT_EQ(report.at("allowances").as_array().size(), 3u);
  EXPECT_EQ(report.at("allowances").at(0),
            test::ParseJson(R"({"learner":"counts","used":3,"of":3})"));

  // True if this user is recommended what a stranger is. Commits follow each other still: both
  // answers are of one.
  const auto is_a_stranger = [&] {
    const std::string ask = R"({"learner":"next","k":3,"exclude_seen":false,"user":)";
    json::object known, stranger;
    EXPECT_TRUE(Eventually("one model answers for both", [&] {
      known = Recommend(ask + R"("u5"})", 200, "-operators");
      stranger = Recommend(ask + R"("nobody"})", 200, "-operators");
      return HasFailure() || known.at("model") == stranger.at("model");
    }));
    return known.at("items") == stranger.at("items");
  };
  EXPECT_TRUE(Eventually("the history tells", [&] { return !is_a_stranger() || HasFailure(); }));
  const Ended forgotten = user({"forget", "u5", "--wait"});
  ASSERT_EQ(forgotten.exit_code, 0) << forgotten.err;
  const json::object after = test::ParseJson(forgotten.out);
  EXPECT_TRUE(after.at("histories").as_array().empty());
  EXPECT_TRUE(after.at("erased").as_bool());
  EXPECT_EQ(after.at("allowances"), report.at("allowances"));
  EXPECT_TRUE(history("u5").empty());
  EXPECT_EQ(history("u6").size(), 2u);
  EXPECT_TRUE(is_a_stranger());

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
  EXPECT_THAT(refused.err, HasSubstr("nowhere: No such file or directory"));
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
  WriteRankersConfig();
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
  daemon.Signal(SIGTERM);
  ASSERT_TRUE(daemon.Wait());
  // All of them go on with a larger catalogue.
  test::WriteFile(dir_ / "items.dat", test::ReadFile(dir_ / "items.dat") + "item-20\nitem-21\n");
  const Ended grown = Tacitd();
  ASSERT_EQ(grown.exit_code, 0) << grown.err;
  for (const std::string& learner : learners) {
    EXPECT_THAT(grown.err, HasSubstr(fmt::format("learner '{}' is taken over: 2 items", learner)));
    const Ended asked = test::Run({TACIT, "query", "recommend", "--config", dir_ / "shop.yaml",
                                   "--checkpoint", dir_ / "store", "--learner", learner,
                                   "--sequence", "item-5,item-6", "--k", "5"});
    EXPECT_EQ(asked.exit_code, 0) << asked.err;
  }
  // And with the same one in another order.
  const auto best = [&](const std::string& learner) {
    std::vector<std::string> ids;
    const json::object answer =
        test::Json(test::Run({TACIT, "query", "recommend", "--config", dir_ / "shop.yaml",
                              "--checkpoint", dir_ / "store", "--learner", learner, "--sequence",
                              "item-5,item-6", "--k", "3", "--json"}));
    for (const json::value& item : answer.at("items").as_array())
      ids.emplace_back(item.at("id").as_string());
    return ids;
  };
  std::map<std::string, std::vector<std::string>> before;
  for (const std::string& learner : learners) before[learner] = best(learner);
  std::string moved;
  for (int i = 0; i < kItems + 2; ++i)
    moved += fmt::format("item-{}\n", (5 * i + 1) % (kItems + 2));
  test::WriteFile(dir_ / "items.dat", moved);
  ASSERT_EQ(Tacitd().exit_code, 0);
  for (const std::string& learner : learners) EXPECT_EQ(best(learner), before[learner]) << learner;
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"}).exit_code,
            0);
}

// Items at the end of the catalogue that nobody has had yet change no answer; then they are learnt.
TEST_F(RecommendTest, NewItemsAreTakenOver) {
  WriteConfig({});
  ASSERT_EQ(Tacitd().exit_code, 0);
  const auto follows = [&](int item, const std::string& learner) {
    const Ended asked =
        test::Run({TACIT, "query", "recommend", "--config", dir_ / "shop.yaml", "--checkpoint",
                   dir_ / "store", "--learner", learner, "--sequence",
                   fmt::format("item-{},item-{}", item, item + 1), "--k", "1", "--json"});
    EXPECT_EQ(asked.exit_code, 0) << asked.err;
    return Best(test::Json(asked));
  };
  std::string items = test::ReadFile(dir_ / "items.dat");
  for (int i = kItems; i < kItems + 3; ++i) items += fmt::format("item-{}\n", i);
  test::WriteFile(dir_ / "items.dat", items);
  const Ended ended = Tacitd();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  for (const char* learner : {"counts", "next"}) {
    EXPECT_THAT(ended.err, HasSubstr(fmt::format("learner '{}' is taken over: 3 items of the "
                                                 "catalogue are new, after the 20 that there were",
                                                 learner)));
    for (int item = 0; item < kItems - 2; item += 4)
      EXPECT_EQ(follows(item, learner), fmt::format("item-{}", item + 2)) << learner;
  }
  // From now on the circle is larger.
  for (int day = kDays; day < kDays + 4; ++day) {
    std::string text;
    for (int click = 0; click < 12; ++click)
      for (int user = 0; user < kUsers; ++user)
        text += fmt::format(
            R"({{"label":1,"user":"new{}","item":"item-{}","timestamp_ms":{},"features":{{"x":1,"c":"1"}}}})"
            "\n",
            user, (3 * user + day * 12 + click) % (kItems + 3), 1000 + day * 1000 + click);
    test::WriteFile(dir_ / fmt::format("day-{}.jsonl", day), text);
  }
  const Ended later = Tacitd();
  ASSERT_EQ(later.exit_code, 0) << later.err;
  for (const char* learner : {"counts", "next"})
    EXPECT_EQ(follows(kItems - 1, learner), fmt::format("item-{}", kItems + 1)) << learner;
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"}).exit_code,
            0);
}

// Items are known by their ids: in another order, with new ones among them, answers stay, those to
// users whose histories were stored before too.
TEST_F(RecommendTest, ItemsMayStandAnywhereInTheCatalogue) {
  WriteConfig({}, "{items: 50, serve_users: true}");
  ASSERT_EQ(Tacitd().exit_code, 0);
  const auto asked = [&] {
    std::map<std::string, std::string> best;
    test::Process daemon({TACITD, "--config", dir_ / "shop.yaml"});
    for (const std::string learner : {"counts", "next"}) {
      for (const char* user : {"u0", "u1", "u5"})
        best[learner + user] = Best(Recommend(R"({"learner":")" + learner + R"(","user":")" + user +
                                                  R"(","k":1,"exclude_seen":false})",
                                              200, "-operators"));
      for (int item = 0; item < kItems - 2; item += 4)
        best[fmt::format("{}{}", learner, item)] = Best(
            Recommend(fmt::format(R"({{"learner":"{}","sequence":["item-{}","item-{}"],"k":1}})",
                                  learner, item, item + 1)));
    }
    daemon.Signal(SIGTERM);
    EXPECT_TRUE(daemon.Wait());
    return best;
  };
  const auto before = asked();
  EXPECT_EQ(before.at("counts4"), "item-6");
  std::string items = "item-new\n";
  for (int i = 0; i < kItems; ++i) items += fmt::format("item-{}\n", (7 * i + 3) % kItems);
  test::WriteFile(dir_ / "items.dat", items + "item-newer\n");
  const Ended dry =
      test::Run({TACIT, "store", "migrate", "--config", dir_ / "shop.yaml", "--dry-run"});
  EXPECT_THAT(dry.out, testing::AllOf(HasSubstr("2 items of the catalogue are new, among the 20"),
                                      HasSubstr("keep all that is known of them")));
  const Ended ended = Tacitd();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(asked(), before);
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"}).exit_code,
            0);
  EXPECT_EQ(test::Run({TACIT, "store", "verify", "--store", dir_ / "store"}).exit_code, 0);
}

TEST_F(RecommendTest, AnotherCatalogueIsAnotherModel) {
  WriteConfig(kPrivate);
  ASSERT_EQ(Tacitd().exit_code, 0);
  const std::string items = test::ReadFile(dir_ / "items.dat");
  test::WriteFile(dir_ / "items.dat", items.substr(items.find('\n') + 1));
  const Ended refused = Tacitd();
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_THAT(
      refused.err,
      testing::AllOf(HasSubstr("learner 'counts' differs from the store's model of that name"),
                     HasSubstr("1 of the 20 items that the catalogue had is not in it any more"),
                     HasSubstr("at the whole price")));
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
