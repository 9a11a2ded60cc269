// From a file to a served model by the real programs, with no other edit than the privacy keys.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <boost/json.hpp>
#include <filesystem>
#include <numeric>

#include "http/client.h"
#include "support/eventually.h"
#include "support/json.h"
#include "support/process.h"
#include "support/real_data.h"
#include "unit/inspect/logs.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using testing::HasSubstr;

std::string Unpacked(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  std::string bytes, buffer(1 << 20, '\0');
  for (int got; (got = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0;)
    bytes.append(buffer, 0, static_cast<size_t>(got));
  gzclose(file);
  return bytes;
}

class InspectE2e : public testing::Test {
 protected:
  Ended Inspect(std::vector<std::string> words, const std::string& output) {
    words.insert(words.begin(), {TACIT, "inspect"});
    if (!output.empty()) words.insert(words.end(), {"--output", dir_ / output});
    return test::Run(words);
  }
  // tacitd with nothing set but what is this machine's: the listener, and that others are busy.
  std::vector<std::string> Command(const std::string& config) const {
    return {TACITD,
            "--config",
            dir_ / config,
            "--set",
            "serve.listen=" + url_,
            "--set",
            "training.idle_priority=false"};
  }
  Ended Tacitd(const std::string& config, std::vector<std::string> more) {
    std::vector<std::string> command = Command(config);
    command.insert(command.end(), more.begin(), more.end());
    return test::Run(command);
  }
  // Writes values behind the empty privacy keys of a proposal, as a person would.
  void FillIn(const std::string& config, const std::string& unit) {
    std::string yaml = test::ReadFile(dir_ / config);
    for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
             {"unit", unit}, {"epsilon", "8"}, {"delta", "1e-6"}, {"mode", "once"}}) {
      const std::string open = "\n      " + key + ":";
      const size_t at = yaml.find(open);
      ASSERT_NE(at, std::string::npos) << key;
      const char next = yaml[at + open.size()];
      if (next == '\n' || yaml.substr(at + open.size(), 3) == "  #")
        yaml.insert(at + open.size(), ' ' + value);
    }
    test::WriteFile(dir_ / config, yaml);
  }
  // The normalised entropy of each file, as the daemon prints it.
  static std::vector<double> EntropyOfDays(const Ended& ended, const std::string& begins) {
    std::vector<double> entropy;
    for (const std::string& line : test::LinesOf(ended.out)) {
      if (!line.starts_with(begins)) continue;
      std::istringstream in(line);
      std::string name, events, steps, loss, ne;
      in >> name >> events >> steps >> loss >> ne;
      entropy.push_back(std::atof(ne.c_str()));
    }
    return entropy;
  }
  // Asks a daemon that serves the model for scores of lines as the log has them.
  void ExpectServed(const std::string& config, const std::string& lines, size_t count) {
    test::Process daemon(Command(config));
    ASSERT_TRUE(test::Eventually("the daemon is ready", [&] {
      const auto ready = http::Fetch(url_ + ":/readyz", "GET", "", test::kPatience);
      return ready && ready->status == 200;
    })) << daemon.Err();
    const auto answer =
        http::Fetch(url_ + ":/v1/score/lines?learner=clicks", "POST", lines, test::kPatience);
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_EQ(answer->status, 200u) << answer->body;
    EXPECT_EQ(test::ParseJson(answer->body).at("scores").as_array().size(), count);
  }

  const test::TempDir dir_;
  const std::string url_ = "unix:" + (dir_ / "socket");
};

// The keys that only a person can fill in are all that is missing.
TEST_F(InspectE2e, MovieLensUnderNamesDrawnAtRandom) {
  const std::string data = test::RealData("ml-latest-small_stream.csv");
  if (data.empty()) GTEST_SKIP() << "needs ../shared/data/ml-latest-small_stream.csv";
  const test::MovieNames names(17);
  const std::string text = test::MoviesAsJson(test::ReadFile(data), names);
  test::WriteFile(dir_ / "ratings.jsonl", text);
  const Ended inspected = Inspect({dir_ / "ratings.jsonl", "--unit", "event"}, "movies.yaml");
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_TRUE(inspected.out.starts_with("tacit inspect looks at RAW records")) << inspected.out;
  EXPECT_THAT(inspected.out, HasSubstr("100,836 of them, by the codec"));
  EXPECT_THAT(inspected.out, testing::AllOf(HasSubstr("GUESSED: it is 1 from 4 on, "),
                                            HasSubstr("; 48.2 % are 1")));

  const Ended refused = Tacitd("movies.yaml", {"--check-config"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("learners[0].privacy.epsilon: has no value"));
  FillIn("movies.yaml", "event");
  const Ended checked = Tacitd("movies.yaml", {"--check-config"});
  ASSERT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("learner clicks: epsilon 8 at delta 1e-06 per event"));

  const Ended learnt = Tacitd("movies.yaml", {"--until-end"});
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  EXPECT_EQ(test::ReadFile(dir_ / "movies-data/store.dead-letters.jsonl"), "");
  const std::vector<double> entropy = EntropyOfDays(learnt, "ratings.jsonl");
  ASSERT_EQ(entropy.size(), 1u) << learnt.out;
  EXPECT_LT(entropy[0], 1) << "no better than a constant";
  EXPECT_GT(entropy[0], 0.5) << "and not by a leak";
  ExpectServed("movies.yaml", text.substr(0, text.find('\n') + 1), 1);
}

TEST_F(InspectE2e, CriteoUnderNamesDrawnAtRandomIsForetoldBetterThanByAConstant) {
  const std::string data = test::RealData("criteo_dac80k_hash20.tsv.gz");
  if (data.empty()) GTEST_SKIP() << "needs ../shared/data/criteo_dac80k_hash20.tsv.gz";
  const std::vector<std::string> lines = test::LinesOf(Unpacked(data));
  ASSERT_EQ(lines.size(), 80'000u);
  const std::vector<std::string> names = test::CriteoNames(23);
  std::string first;
  for (size_t day = 0; day < 4; ++day) {
    std::string text;
    for (size_t i = 20'000 * day; i < 20'000 * (day + 1); ++i)
      text += test::CriteoAsJson(lines[i], names);
    if (day == 0) first = text.substr(0, text.find('\n') + 1);
    test::WriteFile(dir_ / fmt::format("part-{}.jsonl", day), text);
  }
  const Ended inspected = Inspect(
      {dir_ / "part-0.jsonl", dir_ / "part-1.jsonl", dir_ / "part-2.jsonl", dir_ / "part-3.jsonl"},
      "criteo.yaml");
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  const Ended refused = Tacitd("criteo.yaml", {"--check-config"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("learners[0].privacy.unit: has no value; expected one of"));
  FillIn("criteo.yaml", "event");
  const Ended learnt = Tacitd("criteo.yaml", {"--until-end"});
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  const std::vector<double> entropy = EntropyOfDays(learnt, "part-");
  ASSERT_EQ(entropy.size(), 4u) << learnt.out;
  // Predicted by 1/2 the first part would come to 1.30, and all of them to more than 1. A short
  // opening finds the click rate. The deviation of a part's entropy is below .005.
  EXPECT_LT(entropy[0], 1.1) << learnt.out;
  for (size_t part = 1; part < 4; ++part) EXPECT_LT(entropy[part], 0.95) << learnt.out;
  const double whole = std::accumulate(entropy.begin(), entropy.end(), 0.0) / 4;
  EXPECT_LT(whole, 0.96) << learnt.out;
  EXPECT_GT(entropy[3], 0.5) << "and not by a leak";
  ExpectServed("criteo.yaml", first, 1);
}

TEST_F(InspectE2e, AShopsCsvIsForetoldBetterThanByAConstant) {
  std::vector<std::string> words;
  for (int day = 0; day < 4; ++day) {
    const std::string file = dir_ / fmt::format("day-{}.csv", day);
    test::WriteFile(file, test::ShopAsCsv(100 + static_cast<uint64_t>(day), 15'000));
    words.push_back(file);
  }
  // Printed without --output, the report is a comment and all of it is a configuration.
  words.insert(words.end(),
               {"--unit", "event", "--epsilon", "8", "--delta", "1e-6", "--mode", "once"});
  const Ended printed = Inspect(words, "");
  ASSERT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_TRUE(printed.out.starts_with("# tacit inspect looks at RAW records")) << printed.out;
  const Ended inspected = Inspect(words, "shop.yaml");
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  test::WriteFile(dir_ / "printed.yaml", printed.out);
  EXPECT_EQ(Tacitd("printed.yaml", {"--check-config"}).exit_code, 0);
  const Ended learnt = Tacitd("shop.yaml", {"--until-end"});
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  const std::vector<double> entropy = EntropyOfDays(learnt, "day-");
  ASSERT_EQ(entropy.size(), 4u) << learnt.out;
  for (size_t day = 2; day < 4; ++day) EXPECT_LT(entropy[day], 0.97) << learnt.out;
  EXPECT_GT(entropy[3], 0.5);
  const std::string csv = test::ReadFile(dir_ / "day-0.csv");
  const size_t second = csv.find('\n') + 1;
  ExpectServed("shop.yaml", csv.substr(second, csv.find('\n', second) + 1 - second), 1);
}

// The last line of a report is a command for a shell: after it nothing is a guess, and the proposal
// says the same.
TEST_F(InspectE2e, TheCommandAtTheEndSaysWhatWasGuessed) {
  std::string text, met;
  for (int i = 0; i < 2000; ++i) {
    text += fmt::format(
        R"({{"its":{{"bou\nght":{},"user id":"u{}","$item":"i{}"}},"'ts'":{},"x":{}}})"
        "\n",
        i * 13 % 10 < 3 ? 1 : 0, i * 31 % 97, i * 17 % 499, 1'700'000'000 + i * 60, i * 7 % 1999);
    met += fmt::format("u{},i{}\n", i * 31 % 97, i * 17 % 499);
  }
  test::WriteFile(dir_ / "a log.jsonl", text);
  test::WriteFile(dir_ / "met.csv", "user,item\n" + met);
  const std::string programs = std::filesystem::path(TACIT).parent_path();
  const auto last_line = [](const Ended& ended) { return test::LinesOf(ended.out).back(); };
  const auto run = [&](const std::string& command) {
    return test::Run({"/bin/bash", "-c", fmt::format("PATH={}:$PATH\n{}", programs, command)});
  };
  const auto without_comments = [](const std::string& yaml) {
    std::string kept;
    for (const std::string& line : test::LinesOf(yaml))
      if (const size_t end = line.find('#'); line.find_first_not_of(' ') != end)
        kept += line.substr(0, end) + '\n';
    return kept;
  };
  const Ended guessed =
      Inspect({dir_ / "a log.jsonl", "--rows", "1500", "--epsilon", "8"}, "a.yaml");
  ASSERT_EQ(guessed.exit_code, 0) << guessed.err;
  EXPECT_THAT(guessed.out, HasSubstr("\nGUESSED: the label, the user, the item, the time. Right?"));
  const std::string yaml = test::ReadFile(dir_ / "a.yaml"), command = last_line(guessed);
  EXPECT_THAT(command, HasSubstr(" --rows 1500 --epsilon 8 "));
  EXPECT_THAT(command, HasSubstr(R"( --label $'/its/bou\x0aght' --user '/its/user id')"));
  const Ended said = run(command);
  ASSERT_EQ(said.exit_code, 0) << said.err << command;
  EXPECT_THAT(said.out, testing::Not(HasSubstr("GUESSED")));
  EXPECT_EQ(test::ReadFile(dir_ / "a.yaml.guessed"), yaml) << "no proposal is lost";
  const std::string same = test::ReadFile(dir_ / "a.yaml");
  EXPECT_THAT(yaml, HasSubstr("# GUESSED: by its name"));
  EXPECT_THAT(same, testing::Not(HasSubstr("GUESSED")));
  EXPECT_EQ(without_comments(same), without_comments(yaml));
  // JSON has the same command, and records without a label are a guess too.
  const json::object report =
      test::ParseJson(Inspect({dir_ / "a log.jsonl", "--rows", "1500", "--json"}, "").out);
  const json::object sure = test::ParseJson(run(report.at("command").as_string().c_str()).out);
  for (const char* part : {"label", "user", "item", "time"}) {
    EXPECT_EQ(report.at(part).at("guessed"), true) << part;
    EXPECT_EQ(sure.at(part).at("guessed"), false) << part;
  }
  EXPECT_EQ(sure.at("command"), "");
  const Ended meetings = Inspect({dir_ / "met.csv"}, "met.yaml");
  ASSERT_EQ(meetings.exit_code, 0) << meetings.err;
  EXPECT_THAT(meetings.out, HasSubstr("the item, and that there is no label. Right?"));
  const Ended met_said = run(last_line(meetings));
  ASSERT_EQ(met_said.exit_code, 0) << met_said.err;
  EXPECT_THAT(met_said.out, testing::Not(HasSubstr("GUESSED")));
  const Ended twice = Inspect({dir_ / "met.csv", "--user", "user", "--item", "user"}, "");
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.err, HasSubstr("--user and --item: both name 'user'"));
}

// A field that says the label is left out. Where a person takes it in, tacitd warns of it.
TEST_F(InspectE2e, AFieldThatIsTheLabelIsLeftOutAndToldOfWhereItIsTakenIn) {
  std::mt19937_64 random(31);
  std::vector<std::string> words;
  for (int day = 0; day < 3; ++day) {
    std::string text = "clicked,receipt,shelf\n";
    for (int i = 0; i < 12'000; ++i) {
      const bool clicked = random() % 5 == 0;
      text += fmt::format("{},{},s{}\n", clicked ? 1 : 0, clicked ? "r" : "", random() % 20);
    }
    words.push_back(dir_ / fmt::format("day-{}.csv", day));
    test::WriteFile(words.back(), text);
  }
  words.insert(words.end(),
               {"--unit", "event", "--epsilon", "8", "--delta", "1e-6", "--mode", "once"});
  const Ended inspected = Inspect(words, "leak.yaml");
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("WARNING: \"receipt\" is left out: it is filled in where "
                                       "the label is 1: is it known only afterwards?"));
  std::string yaml = test::ReadFile(dir_ / "leak.yaml");
  const std::string features = "  features:\n";
  yaml.insert(yaml.find(features) + features.size(),
              "    - {name: receipt, kind: categorical, buckets: 256}\n");
  test::WriteFile(dir_ / "leak.yaml", yaml);
  const Ended learnt = Tacitd("leak.yaml", {"--until-end"});
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  EXPECT_THAT(learnt.err + learnt.out, HasSubstr("does a feature hold what is known only after"));
}

// Users, items and nothing else: counts of what follows what, out of a list that a person names.
TEST_F(InspectE2e, UsersAndItemsAloneHaveAModelOfTheNextItem) {
  const Ended made = test::Run({TACIT, "generate", "interactions", "--days", "4", "--users", "400",
                                "--items", "100", "--rows", "4000", "--out", dir_ / "shop"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::string text;
  for (int day = 0; day < 4; ++day)
    for (const std::string& line :
         test::LinesOf(Unpacked(dir_ / fmt::format("shop/day-{:02}.jsonl.gz", day)))) {
      const json::object record = json::parse(line).as_object();
      text += json::serialize(json::object{{"customer", record.at("user")},
                                           {"sku", record.at("item")},
                                           {"at", record.at("timestamp_ms")},
                                           {"bought", record.at("label")}}) +
              '\n';
    }
  test::WriteFile(dir_ / "shop.jsonl", text);
  const Ended open = Inspect({dir_ / "shop.jsonl"}, "open.yaml");
  ASSERT_EQ(open.exit_code, 0) << open.err;
  const Ended refused = Tacitd("open.yaml", {"--check-config"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("catalogue.file: has no value"));
  const Ended inspected =
      Inspect({dir_ / "shop.jsonl", "--items", dir_ / "shop/items.dat"}, "next.yaml");
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  FillIn("next.yaml", "user");
  const Ended learnt = Tacitd("next.yaml", {"--until-end"});
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  EXPECT_THAT(learnt.out, HasSubstr("learner next"));
  const Ended asked =
      test::Run({TACIT, "query", "recommend", "--checkpoint", dir_ / "next-data/store", "--config",
                 dir_ / "next.yaml", "--learner", "next", "--sequence", "1,2,3", "--json"});
  EXPECT_EQ(asked.exit_code, 0) << asked.err;
}

// Records that say only who met what, grouped by user, become a model of the next item with no
// edit.
TEST_F(InspectE2e, MeetingsWithoutALabelHaveAModelOfTheNextItem) {
  std::mt19937_64 random(8);
  std::string text, items;
  for (int i = 0; i < 1500; ++i) items += fmt::format("i{}\n", i);
  int line = 0;
  for (int user = 0; user < 1200; ++user)
    for (int k = 0; k < 10; ++k)
      text += fmt::format(R"({{"kwf":"u{}","bzu":"i{}","qe":{}}})"
                          "\n",
                          user, random() % 1500, line++);
  test::WriteFile(dir_ / "met.jsonl", text);
  test::WriteFile(dir_ / "items.dat", items);
  const Ended event = Inspect({dir_ / "met.jsonl", "--unit", "event"}, "event.yaml");
  EXPECT_EQ(event.exit_code, 2);
  EXPECT_THAT(event.err, HasSubstr("--unit event: no label is found"));
  const Ended inspected = Inspect({dir_ / "met.jsonl", "--items", dir_ / "items.dat", "--unit",
                                   "user", "--epsilon", "8", "--delta", "1e-5", "--mode", "once"},
                                  "met.yaml");
  ASSERT_EQ(inspected.exit_code, 0) << inspected.err;
  const Ended learnt = Tacitd("met.yaml", {"--until-end"});
  ASSERT_EQ(learnt.exit_code, 0) << learnt.err;
  EXPECT_THAT(learnt.out, HasSubstr("learner next"));
  // A model of clicks cannot learn from them, and says why.
  const Ended clicks =
      Tacitd("met.yaml", {"--check-config", "--set", "learners.0.model={kind: linear}", "--set",
                          "learners.0.mechanism={kind: sums}"});
  EXPECT_EQ(clicks.exit_code, 2);
  EXPECT_THAT(clicks.err, HasSubstr("source.json.label says that records have none"));
}

}  // namespace
}  // namespace tacit
