// A click model whose features change goes on, as a user sees it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <random>

#include "support/json.h"
#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using ::testing::HasSubstr;

class GrowthE2e : public ::testing::Test {
 protected:
  static constexpr int kColours = 8, kEvents = 3000;

  // A click is likelier for a later colour; `hour` and `price` are there from day 2 on.
  void WriteDay(int day) {
    std::mt19937_64 random(static_cast<uint64_t>(day) + 1);
    const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    std::string text;
    for (int i = 0; i < kEvents; ++i) {
      const uint64_t colour = random() % kColours, seen = random() % 50, hour = random() % 24;
      const double logit = -1 + (static_cast<double>(colour) - 3.5) / 2 +
                           (day >= 2 ? (hour < 12 ? 1.0 : -1.0) : 0.0);
      const std::string later =
          day < 2 ? "" : fmt::format(R"(,"hour":"h{}","price":{})", hour, random() % 9);
      text += fmt::format(
          R"({{"label":{},"timestamp_ms":{},"features":{{"seen":{},"colour":"c{}"{}}}}})"
          "\n",
          uniform() < 1 / (1 + std::exp(-logit)) ? 1 : 0, 1000 + day * 1000, seen, colour, later);
    }
    test::WriteFile(dir_ / fmt::format("day-{}.jsonl", day), text);
  }

  struct Setup {
    std::string features;
    std::string linear = "{kind: linear}";
    std::string hidden = "[8]";
  };
  static std::string Before(const std::string& more = "", int buckets = 64, int dim = 4) {
    return fmt::format(
        "{{name: seen, kind: dense}}, {{name: colour, kind: categorical, buckets: {}, dim: {}}}{}",
        buckets, dim, more);
  }
  static std::string After(int buckets = 127) {
    return Before(
        ", {name: hour, kind: categorical, buckets: 50, dim: 4}, {name: price, kind: dense}",
        buckets);
  }
  void WriteConfig(const Setup& setup) {
    test::WriteFile(dir_ / "clicks.yaml",
                    fmt::format("source: {{kind: log, files: {}, format: json}}\n"
                                "schema: {{features: [{}]}}\n"
                                "store: {{path: {}, commit_interval_ms: 10}}\n"
                                "serve: {{listen: \"\"}}\n"
                                "training: {{idle_priority: false}}\n"
                                "memory: {{total_bytes: 600MiB}}\n"
                                "learners:\n"
                                "  - id: sums\n    model: {}\n    mechanism: {{kind: sums}}\n"
                                "    participation: {{mode: once, batch: 1000}}\n"
                                "    privacy: {{unit: event, epsilon: 8, delta: 1.0e-6}}\n"
                                "  - id: net\n    model: {{kind: pctr, hidden: {}}}\n"
                                "    mechanism: {{kind: adafest, threshold: 1.0, sigma_ratio: 5}}\n"
                                "    participation: {{mode: once, batch: 250}}\n"
                                "    optimizer: {{kind: adam, ema: 0.9}}\n"
                                "    privacy: {{unit: event, epsilon: 8, delta: 1.0e-6}}\n",
                                dir_ / "day-*.jsonl", setup.features, dir_ / "store", setup.linear,
                                setup.hidden));
  }
  Ended Tacitd() { return test::Run({TACITD, "--config", dir_ / "clicks.yaml", "--until-end"}); }
  Ended Migrate(std::vector<std::string> arguments = {}) {
    std::vector<std::string> command = {TACIT, "store", "migrate", "--config",
                                        dir_ / "clicks.yaml"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return test::Run(command);
  }
  std::vector<double> Scores(const std::string& learner, const std::string& more = "") {
    std::vector<double> scores;
    for (int colour = 0; colour < kColours; ++colour) {
      const std::string row = fmt::format(
          R"({{"label":0,"features":{{"seen":{},"colour":"c{}"{}}}}})", 5 * colour, colour, more);
      const json::object answer = test::Json(
          test::Run({TACIT, "query", "score", "--config", dir_ / "clicks.yaml", "--checkpoint",
                     dir_ / "store", "--learner", learner, "--row", row, "--json"}));
      scores.push_back(answer.at("scores").at(0).to_number<double>());
    }
    return scores;
  }
  json::object Ledger() {
    return test::Json(test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"}));
  }
  double Epsilon(const std::string& learner) {
    const json::object ledger = Ledger();
    for (const json::value& account : ledger.at("learners").as_array())
      if (account.at("learner").as_string() == learner)
        return account.at("epsilon").to_number<double>();
    ADD_FAILURE() << "no learner " << learner;
    return 0;
  }
  void ExpectLedger() {
    const Ended verified =
        test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"});
    EXPECT_EQ(verified.exit_code, 0) << verified.err;
  }

  const test::TempDir dir_;
};

TEST_F(GrowthE2e, NewFeaturesAndALargerTableAreTakenOverAtTheStart) {
  WriteDay(0);
  WriteDay(1);
  WriteConfig({.features = Before()});
  ASSERT_EQ(Tacitd().exit_code, 0);
  std::map<std::string, std::vector<double>> before;
  std::map<std::string, double> epsilon;
  for (const std::string learner : {"sums", "net"}) {
    before[learner] = Scores(learner);
    epsilon[learner] = Epsilon(learner);
  }
  EXPECT_GT(before["sums"].back() - before["sums"].front(), 0.15) << "it has learnt";

  WriteConfig({.features = After(), .linear = "{kind: linear, crosses: [colour*hour]}"});
  const Ended dry = Migrate({"--dry-run"});
  ASSERT_EQ(dry.exit_code, 0) << dry.err;
  for (const char* text :
       {"learner 'sums' goes on as the configured model, for no epsilon",
        "feature 'hour', of 50 rows, is new and begins at 0",
        "feature 'colour' has 127 rows where it had 64: each becomes 2, which begin as it was",
        "number 'price' is new and has no weight yet", "cross 'colour*hour'"})
    EXPECT_THAT(dry.out, HasSubstr(text));

  const Ended ended = Tacitd();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("learner 'net' is taken over: feature 'hour', of 50 rows"));
  for (const std::string learner : {"sums", "net"}) {
    const std::vector<double> after = Scores(learner);
    for (size_t i = 0; i < after.size(); ++i)
      EXPECT_NEAR(after[i], before[learner][i], 1e-6) << learner << " " << i;
    EXPECT_EQ(Epsilon(learner), epsilon[learner]);
  }
  ExpectLedger();
  EXPECT_EQ(test::Run({TACIT, "store", "verify", "--store", dir_ / "store"}).exit_code, 0);
  EXPECT_THAT(Migrate().out, HasSubstr("nothing is taken over"));

  // It learns what is new.
  for (int day = 2; day < 8; ++day) WriteDay(day);
  WriteConfig({.features = After(), .linear = "{kind: linear, crosses: [colour*hour]}"});
  const Ended later = Tacitd();
  ASSERT_EQ(later.exit_code, 0) << later.err;
  const std::vector<double> early = Scores("sums", R"(,"hour":"h3")");
  const std::vector<double> late = Scores("sums", R"(,"hour":"h20")");
  double gap = 0;
  for (size_t i = 0; i < early.size(); ++i) gap += (early[i] - late[i]) / kColours;
  EXPECT_GT(gap, 0.15) << "the truth is about .35";
  EXPECT_GT(early.back() - early.front(), 0.2) << "and keeps what was known";
  EXPECT_EQ(Epsilon("sums"), epsilon["sums"]) << "each event is in one release";
  ExpectLedger();
}

// Longer rows are taken over at the start, also of a larger table; predictions stay, and it learns
// on. Shorter ones lose something.
TEST_F(GrowthE2e, RowsBecomeLonger) {
  WriteDay(0);
  WriteConfig({.features = Before()});
  ASSERT_EQ(Tacitd().exit_code, 0);
  const std::vector<double> before = Scores("net");
  const double epsilon = Epsilon("net");
  WriteConfig({.features = Before("", 127, 9)});
  const Ended ended = Tacitd();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.err,
              HasSubstr("feature 'colour' has rows of 9 numbers where they had 4: the new "
                        "ones begin as in a row that was never written"));
  const std::vector<double> after = Scores("net");
  for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-6) << i;
  EXPECT_EQ(Epsilon("net"), epsilon);
  ExpectLedger();
  EXPECT_EQ(test::Run({TACIT, "store", "verify", "--store", dir_ / "store"}).exit_code, 0);
  WriteDay(1);
  WriteConfig({.features = Before("", 127, 9)});
  ASSERT_EQ(Tacitd().exit_code, 0);
  EXPECT_NE(Scores("net"), after) << "it learns on";

  WriteConfig({.features = Before("", 127, 6)});
  const Ended refused = Tacitd();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err,
              testing::AllOf(HasSubstr("feature 'colour' keeps the first 6 numbers of each row and "
                                       "loses 3"),
                             HasSubstr("for no epsilon"),
                             HasSubstr("tacit store migrate --accept-losses")));
  ASSERT_EQ(Migrate({"--accept-losses"}).exit_code, 0);
  ASSERT_EQ(Tacitd().exit_code, 0);
  ExpectLedger();
}

TEST_F(GrowthE2e, ALearnerIsCalledOtherwise) {
  WriteDay(0);
  WriteConfig({.features = Before()});
  ASSERT_EQ(Tacitd().exit_code, 0);
  const std::vector<double> before = Scores("sums");
  const double epsilon = Epsilon("sums");
  const std::string config = test::ReadFile(dir_ / "clicks.yaml");
  const auto call = [&](const std::string& name) {
    std::string other = config;
    other.replace(other.find("id: sums"), 8, "id: " + name);
    test::WriteFile(dir_ / "clicks.yaml", other);
  };
  EXPECT_THAT(Migrate({"--rename", "sums=clicks"}).err, HasSubstr("no such learner"));
  call("clicks");
  EXPECT_THAT(Migrate({"--rename", "summs=clicks"}).err, HasSubstr("has no learner 'summs'"));
  EXPECT_EQ(Migrate({"--rename", "sums"}).exit_code, 2);
  const Ended dry = Migrate({"--rename", "sums=clicks", "--dry-run"});
  EXPECT_THAT(dry.out,
              testing::AllOf(HasSubstr("learner 'clicks' goes on"), HasSubstr("for no epsilon"),
                             HasSubstr("it was called 'sums', and its account goes on")));
  ASSERT_EQ(Migrate({"--rename", "sums=clicks"}).exit_code, 0);
  const Ended ended = Tacitd();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(Scores("clicks"), before);
  EXPECT_EQ(Epsilon("clicks"), epsilon);
  EXPECT_EQ(Ledger().at("learners").as_array().size(), 2u) << "there is no account of the old name";
  ExpectLedger();
  // It is charged on: a day more costs each event as before, and the account has both days' steps.
  WriteDay(1);
  ASSERT_EQ(Tacitd().exit_code, 0);
  EXPECT_NE(Scores("clicks"), before);
  EXPECT_EQ(Epsilon("clicks"), epsilon) << "each event is in one release";
  ExpectLedger();
  EXPECT_EQ(test::Run({TACIT, "store", "verify", "--store", dir_ / "store"}).exit_code, 0);
  EXPECT_EQ(test::Run({TACIT, "ledger", "forecast", "--store", dir_ / "store"}).exit_code, 0);
  const Ended exported = test::Run({TACIT, "ledger", "export", "--store", dir_ / "store"});
  EXPECT_THAT(exported.out,
              testing::AllOf(HasSubstr("\"clicks\""), testing::Not(HasSubstr("\"sums\""))));
  call("sums");
  const Ended old = Tacitd();
  EXPECT_EQ(old.exit_code, 3);
  EXPECT_THAT(old.err, HasSubstr("it is called 'clicks' now"));
}

// The disk failed after the migration's commit was on it, and before its witness was.
TEST_F(GrowthE2e, AMigrationThatWasCutShortIsEndedByTheNext) {
  WriteDay(0);
  WriteConfig({.features = Before()});
  ASSERT_EQ(Tacitd().exit_code, 0);
  const std::string witness = test::ReadFile(dir_ / "store.witness");
  WriteConfig({.features = After()});
  ASSERT_EQ(Migrate().exit_code, 0);
  test::WriteFile(dir_ / "store.witness", witness);
  const auto show = [&] { return test::Run({TACIT, "ledger", "show", "--store", dir_ / "store"}); };
  const Ended refused = show();
  ASSERT_EQ(refused.exit_code, 3) << "or the test shows nothing";
  EXPECT_THAT(refused.err, HasSubstr("tacit store migrate, writes the witness anew"));
  ASSERT_EQ(Migrate({"--dry-run"}).exit_code, 0);
  EXPECT_EQ(show().exit_code, 3) << "nothing is written";
  const Ended again = Migrate();
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("nothing is taken over"));
  const Ended shown = show();
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  ExpectLedger();
}

TEST_F(GrowthE2e, WhatLosesSomethingNeedsThePersonWhoSaysSo) {
  WriteDay(0);
  WriteConfig({.features = Before(", {name: size, kind: categorical, buckets: 20, dim: 4}")});
  ASSERT_EQ(Tacitd().exit_code, 0);
  const auto before = Scores("sums");
  WriteConfig({.features = Before()});
  const Ended refused = Tacitd();
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_THAT(refused.err, testing::AllOf(HasSubstr("feature 'size' is gone"),
                                          HasSubstr("tacit store migrate")));
  const Ended asked = Migrate();
  EXPECT_EQ(asked.exit_code, 3) << asked.out;
  EXPECT_THAT(asked.out, HasSubstr("lost: feature 'size' is gone"));
  EXPECT_THAT(asked.err, HasSubstr("--accept-losses"));
  EXPECT_EQ(Tacitd().exit_code, 3) << "nothing was changed";
  const Ended done = Migrate({"--accept-losses", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(test::Json(done).at("learners").as_array().size(), 2u);
  ASSERT_EQ(Tacitd().exit_code, 0);
  // No event had the feature: its weight was that of the missing value alone.
  for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(Scores("sums")[i], before[i], 0.2);
  ExpectLedger();

  WriteConfig({.features = Before("", 100)});
  EXPECT_THAT(Tacitd().err,
              HasSubstr("feature 'colour' begins anew: a table of 64 rows can become one of 127, "
                        "190 and so on, not of 100"));
  WriteConfig({.features = Before(), .hidden = "[9]"});
  EXPECT_THAT(Tacitd().err, testing::AllOf(HasSubstr("learner 'net' differs"),
                                           HasSubstr("it had hidden layers [8]"),
                                           HasSubstr("would have hidden layers [9]")));
  WriteConfig({.features = Before()});
  EXPECT_EQ(Tacitd().exit_code, 0);
}

}  // namespace
}  // namespace tacit
