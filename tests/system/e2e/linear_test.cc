// The linear click model beside the network on one stream, as a user who runs the programs sees it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <random>

#include "http/client.h"
#include "privacy/gaussian.h"
#include "support/eventually.h"
#include "support/json.h"
#include "support/process.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::Eventually;
using test::kPatience;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kClickDays = 6, kClicksADay = 4000, kClickColours = 8;

double EffectOfColour(int colour) { return (colour - 3.5) / 2; }

double LogitOf(int colour, int seen) {
  return -1 + EffectOfColour(colour) + (seen > 20 ? 0.8 : -0.8);
}
// A large number makes an even colour likelier to be clicked, and an odd one less.
double LogitOfBoth(int colour, int seen) {
  return -0.5 + ((colour % 2 == 0) == (seen > 22) ? 1.2 : -1.2);
}

// By default a click is likelier for a later colour and for a larger number; the rest is chance.
std::string DayOfClicks(int day, double (*logit_of)(int colour, int seen) = LogitOf) {
  std::mt19937_64 random(static_cast<uint64_t>(day) + 1);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::string text;
  for (int i = 0; i < kClicksADay; ++i) {
    const int colour = static_cast<int>(random() % kClickColours);
    const int seen = static_cast<int>(random() % 50);
    const double logit = logit_of(colour, seen);
    text += fmt::format(
        R"({{"label":{},"timestamp_ms":{},"user":"u{}","features":{{"seen":{},"colour":"c{}"}}}})"
        "\n",
        uniform() < 1 / (1 + std::exp(-logit)) ? 1 : 0, 1000 + day * 1000, random() % 500, seen,
        colour);
  }
  return text;
}

class LinearE2e : public ::testing::Test {
 protected:
  void WriteDays(int from, int to) {
    for (int day = from; day < to; ++day)
      test::WriteFile(dir_ / fmt::format("day-{}.jsonl", day), DayOfClicks(day));
  }

  struct Learner {
    std::string model = "{kind: linear}";
    std::string mechanism = "{kind: sums}";
    std::string privacy = "{unit: event, epsilon: 4, delta: 1.0e-6}";
    std::string participation = "{mode: once, batch: 4000}";
  };
  void WriteConfig(const Learner& learner, const std::string& store = "store") {
    test::WriteFile(
        dir_ / "clicks.yaml",
        fmt::format(
            "source: {{kind: log, files: {}, format: json}}\n"
            "schema: {{features: [{{name: seen, kind: dense}}, {{name: colour, kind: categorical, "
            "buckets: 64}}]}}\n"
            "store: {{path: {}, commit_interval_ms: 10}}\n"
            "serve: {{listen: \"{}\", operator_listen: \"{}-operators\"}}\n"
            "training: {{idle_priority: false}}\n"
            "memory: {{total_bytes: 500MiB}}\n"
            "learners:\n"
            "  - id: sums\n    model: {}\n    mechanism: {}\n"
            "    participation: {}\n    privacy: {}\n"
            "  - id: network\n    model: {{kind: pctr, hidden: [4]}}\n"
            "    mechanism: {{kind: none}}\n    participation: {{mode: once, batch: 500}}\n"
            "    privacy: {{unit: event, epsilon: .inf, delta: 1.0e-6}}\n",
            dir_ / "day-*.jsonl", dir_ / store, url_, url_, learner.model, learner.mechanism,
            learner.participation, learner.privacy));
  }
  Ended Tacitd() { return test::Run({TACITD, "--config", dir_ / "clicks.yaml", "--until-end"}); }
  std::vector<std::string> Tacit(std::vector<std::string> words, const std::string& store) {
    words.insert(words.begin(), TACIT);
    words.insert(words.end(),
                 {"--config", dir_ / "clicks.yaml", "--checkpoint", dir_ / store, "--json"});
    return words;
  }
  // The account of the linear learner.
  static json::object Account(const json::object& ledger) {
    for (const json::value& learner : ledger.at("learners").as_array())
      if (learner.at("learner") == "sums") return learner.as_object();
    ADD_FAILURE() << "no account of 'sums'";
    return {};
  }
  json::object Weights(const std::string& store = "store") {
    return test::Json(test::Run(Tacit({"weights", "--learner", "sums", "--top", "1000"}, store)));
  }

  const test::TempDir dir_;
  const std::string url_ = "unix:" + (dir_ / "socket");
};

// The ledger bills what is promised: each event is in one release, with any periods.
TEST_F(LinearE2e, LearnsTheTruthUnderItsPromise) {
  WriteDays(0, kClickDays);
  WriteConfig({});
  const Ended ended = Tacitd();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("learner sums"));
  const Ended verified =
      test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"});
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  const json::object ledger =
      test::Json(test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"}));
  const json::object sums = Account(ledger);
  EXPECT_EQ(sums.at("steps").to_number<int>(), kClickDays + 1) << "and the opening";
  EXPECT_NEAR(sums.at("epsilon").to_number<double>(), 4, 1e-3);
  EXPECT_LE(sums.at("epsilon").to_number<double>(), 4);

  const Ended inspected =
      test::Run({TACIT, "inspect", dir_ / "day-0.jsonl", "--names", dir_ / "names.txt"});
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  const Ended named = test::Run({TACIT, "weights", "--learner", "sums", "--config",
                                 dir_ / "clicks.yaml", "--checkpoint", dir_ / "store", "--column",
                                 "colour", "--names", dir_ / "names.txt"});
  ASSERT_EQ(named.exit_code, 0) << named.err;
  EXPECT_THAT(named.out, HasSubstr("c7"));
  EXPECT_THAT(named.out, HasSubstr("c0"));
  EXPECT_THAT(named.out, HasSubstr("log-odds of label 1: bias "));
  EXPECT_THAT(named.out, HasSubstr("after 7 periods"));
  EXPECT_THAT(named.out, Not(HasSubstr("--names"))) << "each value has its name";
  const Ended numbered =
      test::Run({TACIT, "weights", "--learner", "sums", "--config", dir_ / "clicks.yaml",
                 "--checkpoint", dir_ / "store", "--column", "colour"});
  EXPECT_THAT(numbered.out, HasSubstr("tacit inspect --names writes that list"));
  EXPECT_THAT(test::Run({TACIT, "weights", "--help"}).out, HasSubstr("needs --config"));
  // All colours have a weight, and the truth lies near it.
  const json::object weights = Weights();
  EXPECT_EQ(weights.at("periods").to_number<int>(), kClickDays + 1);
  int colours = 0;
  std::map<double, double> by_effect;
  for (const json::value& each : weights.at("weights").as_array())
    if (each.at("column") == "colour" && each.at("events").to_number<double>() > kClicksADay / 2) {
      ++colours;
      EXPECT_GT(std::fabs(each.at("weight").to_number<double>()), 0.05) << each;
      EXPECT_LT(each.at("deviation").to_number<double>(), 0.3) << each;
    }
  EXPECT_GE(colours, kClickColours - 1) << "two may share a bucket";
}

// All ways to ask give one answer, and only operators may list.
TEST_F(LinearE2e, ServesWhatItHasReleased) {
  WriteDays(0, 2);
  WriteConfig({});
  ASSERT_EQ(Tacitd().exit_code, 0);
  const std::string line = R"({"label":0,"features":{"seen":40,"colour":"c7"}})";
  const json::object asked =
      test::Json(test::Run(Tacit({"query", "score", "--learner", "sums", "--row", line}, "store")));
  EXPECT_EQ(asked.at("predicts"), "label 1");
  test::Process daemon(
      {TACITD, "--config", dir_ / "clicks.yaml", "--serve-only", "--checkpoint", dir_ / "store"});
  const auto fetch = [&](const std::string& listener, const std::string& path,
                         const std::string& method = "GET", const std::string& body = "") {
    auto answer = http::Fetch(url_ + listener + ":" + path, method, body, kPatience);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : http::Response{};
  };
  ASSERT_TRUE(Eventually("the daemon is ready", [&] {
    const auto ready = http::Fetch(url_ + ":/readyz", "GET", "", kPatience);
    return ready && ready->status == 200;
  }));
  const std::string request = R"({"learner":"sums","rows":[{"dense":[40],"categorical":["c7"]}]})";
  const http::Response scored = fetch("", "/v1/score", "POST", request);
  ASSERT_EQ(scored.status, 200u) << scored.body;
  EXPECT_EQ(test::ParseJson(scored.body).at("scores"), asked.at("scores"));

  EXPECT_EQ(fetch("", "/v1/weights?learner=sums").status, 403u) << "not for the public";
  const http::Response listed = fetch("-operators", "/v1/weights?learner=sums&top=1000");
  ASSERT_EQ(listed.status, 200u) << listed.body;
  EXPECT_EQ(test::ParseJson(listed.body).at("weights"), Weights().at("weights"));
  const http::Response few = fetch("-operators", "/v1/weights?learner=sums&top=3&column=seen");
  EXPECT_EQ(test::ParseJson(few.body).at("weights").as_array().size(), 3u);
  const http::Response network = fetch("-operators", "/v1/weights?learner=network");
  EXPECT_EQ(network.status, 400u);
  EXPECT_THAT(network.body, HasSubstr("only a model of kind linear"));
  EXPECT_EQ(fetch("-operators", "/v1/weights?learner=nobody").status, 404u);
  EXPECT_EQ(fetch("-operators", "/v1/weights?learner=sums&column=colours").status, 404u);
  EXPECT_EQ(fetch("-operators", "/v1/weights").status, 400u);
}

// Without noise a run that was stopped and continued ends bit for bit where one in one go does.
TEST_F(LinearE2e, GoesOnWhereItStopped) {
  const Learner open{.model = "{kind: linear, crosses: [colour*seen]}",
                     .mechanism = "{kind: none}",
                     .privacy = "{unit: event, epsilon: .inf, delta: 1.0e-6}"};
  WriteDays(0, 3);
  WriteConfig(open);
  ASSERT_EQ(Tacitd().exit_code, 0);
  WriteDays(3, kClickDays);
  ASSERT_EQ(Tacitd().exit_code, 0);
  const json::object twice = Weights();
  WriteConfig(open, "other");
  ASSERT_EQ(Tacitd().exit_code, 0);
  const json::object once = Weights("other");
  EXPECT_EQ(once.at("weights"), twice.at("weights"));
  EXPECT_EQ(once.at("bias"), twice.at("bias"));
}

// A user's sum of a period is one vector, and the allowance bounds the periods.
TEST_F(LinearE2e, UsersAreUnitsToo) {
  WriteDays(0, kClickDays);
  WriteConfig({.privacy = "{unit: user, epsilon: 4, delta: 1.0e-6}",
               .participation = "{mode: once, batch: 4000, max_participations: 3}"});
  ASSERT_EQ(Tacitd().exit_code, 0);
  const json::object ledger =
      test::Json(test::Run({TACIT, "ledger", "show", "--store", dir_ / "store", "--json"}));
  const json::object sums = Account(ledger);
  EXPECT_EQ(sums.at("unit"), "user");
  EXPECT_LE(sums.at("epsilon").to_number<double>(), 4);
  EXPECT_GT(sums.at("epsilon").to_number<double>(), 3.99);
}

TEST_F(LinearE2e, OtherColumnsAreAnotherModel) {
  WriteDays(0, 1);
  WriteConfig({});
  ASSERT_EQ(Tacitd().exit_code, 0);
  std::string yaml = test::ReadFile(dir_ / "clicks.yaml");
  const size_t at = yaml.find("buckets: 64");
  yaml.replace(at, 11, "buckets: 65");
  test::WriteFile(dir_ / "clicks.yaml", yaml);
  const Ended refused = Tacitd();
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("learner 'sums' differs from the store's model"));
}

// Two features that say nothing apart, and much together: only a cross of them learns it. Its
// weights are shown by both values, and a store keeps to its crosses.
TEST_F(LinearE2e, ACrossLearnsWhatTwoFeaturesDoTogether) {
  for (int day = 0; day < kClickDays; ++day)
    test::WriteFile(dir_ / fmt::format("day-{}.jsonl", day), DayOfClicks(day, LogitOfBoth));
  const auto scores = [&](const std::string& store) {
    std::vector<double> all;
    for (const auto& [seen, colour] : {std::pair(40, "c4"), {5, "c4"}, {40, "c7"}, {5, "c7"}}) {
      const std::string row =
          fmt::format(R"({{"label":0,"features":{{"seen":{},"colour":"{}"}}}})", seen, colour);
      const json::object answer = test::Json(
          test::Run(Tacit({"query", "score", "--learner", "sums", "--row", row}, store)));
      all.push_back(answer.at("scores").at(0).to_number<double>());
    }
    return all;
  };
  WriteConfig({}, "plain");
  ASSERT_EQ(Tacitd().exit_code, 0);
  const std::vector<double> plain = scores("plain");
  for (const double score : plain) EXPECT_NEAR(score, 0.42, 0.12) << "nothing to be learnt";

  WriteConfig({.model = "{kind: linear, crosses: [colour*seen]}",
               .privacy = "{unit: event, epsilon: 8, delta: 1.0e-6}"});
  const Ended ended = Tacitd();
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  // The truth is .67 and .15. Of what is learnt, noise moves the second score most: .24, by .01.
  const std::vector<double> crossed = scores("store");
  EXPECT_GT(crossed[0], 0.55);
  EXPECT_LT(crossed[1], 0.33);
  EXPECT_LT(crossed[2], 0.33);
  EXPECT_GT(crossed[3], 0.55);
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--full", "--store", dir_ / "store"}).exit_code,
            0);

  std::string names;
  for (int colour = 0; colour < kClickColours; ++colour)
    names += fmt::format("colour\tc{}\n", colour);
  test::WriteFile(dir_ / "names.txt", names);
  const Ended shown = test::Run({TACIT, "weights", "--learner", "sums", "--config",
                                 dir_ / "clicks.yaml", "--checkpoint", dir_ / "store", "--column",
                                 "colour*seen", "--names", dir_ / "names.txt"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("c4 * >= "));
  int large = 0;
  const json::object weights = Weights();
  for (const json::value& each : weights.at("weights").as_array()) {
    if (each.at("column") != "colour*seen") continue;
    const json::array& of = each.at("of").as_array();
    EXPECT_EQ(of.at(0).at("column"), "colour");
    EXPECT_EQ(of.at(1).at("column"), "seen");
    EXPECT_EQ(each.at("value").to_number<int>(),
              of.at(0).at("value").to_number<int>() * 40 + of.at(1).at("value").to_number<int>());
    large += std::fabs(each.at("weight").to_number<double>()) > 0.3 ? 1 : 0;
  }
  EXPECT_GT(large, 2 * kClickColours);

  WriteConfig({.model = "{kind: linear, crosses: [seen*colour]}"});
  const Ended refused = Tacitd();
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("learner 'sums' differs from the store's model"));
  WriteConfig({.model = "{kind: linear, crosses: [colour*colours]}"}, "none");
  const Ended unknown = Tacitd();
  EXPECT_EQ(unknown.exit_code, 2) << unknown.err;
  EXPECT_THAT(unknown.err, HasSubstr("learner 'sums': model.crosses: 'colour*colours' is not"));
}

}  // namespace
}  // namespace tacit
