// tacit's commands: their JSON is what scripts rely on.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <map>

#include "privacy/gaussian.h"
#include "support/files_below.h"
#include "support/json.h"
#include "support/small_run.h"

namespace tacit {
namespace {

namespace json = boost::json;
using test::Ended;
using test::Json;
using test::TempDir;
using testing::HasSubstr;

TEST(CommandsTest, GenerateWritesTheSameBytesForTheSameSeed) {
  TempDir dir;
  for (const char* out : {"a", "b"})
    Json(test::Run({TACIT, "generate", "criteo", "--days", "3", "--rows", "2000", "--seed", "5",
                    "--out", dir / out, "--json"}));
  const json::object other =
      Json(test::Run({TACIT, "generate", "criteo", "--days", "3", "--rows", "2000", "--seed", "6",
                      "--out", dir / "c", "--plain", "--json"}));
  for (const char* day : {"day-00.tsv.gz", "day-01.tsv.gz", "day-02.tsv.gz"}) {
    const std::string bytes = test::ReadFile(dir / "a" + "/" + day);
    EXPECT_GT(bytes.size(), 10000u);
    EXPECT_EQ(bytes, test::ReadFile(dir / "b" + "/" + day));
  }
  EXPECT_EQ(other.at("best_auc").as_object().size(), 3u);
  EXPECT_TRUE(std::filesystem::exists(dir / "c" + "/day-02.tsv"));
}

// The answer to --version: the first line is the version alone, the commit is one of the source's.
TEST(CommandsTest, VersionTellsCommitAndFeatures) {
  const auto git = [](const std::vector<std::string>& words) {
    std::vector<std::string> command{"/usr/bin/env", "git", "-C", TACIT_SOURCE_DIR};
    command.insert(command.end(), words.begin(), words.end());
    return test::Run(command).exit_code == 0;
  };
  const std::string daemon = test::Run({TACITD, "--version"}).out;
  EXPECT_EQ(test::Run({TACIT, "--version"}).out, daemon);
  EXPECT_THAT(daemon, testing::MatchesRegex("tacit [0-9.]+\ncommit: (.|\n)*"));
  const size_t at = daemon.find("\ncommit: ") + 9;
  const std::string commit = daemon.substr(at, daemon.find_first_of(",\n", at) - at);
  // The tree may have gone on since it was built.
  if (git({"rev-parse", "HEAD"}))
    EXPECT_TRUE(git({"merge-base", "--is-ancestor", commit, "HEAD"})) << commit;
  else
    EXPECT_EQ(commit, "not known");
  for (const char* feature : {"cuda", "+tls (OpenSSL 3.", "+kafka (librdkafka 2.", "+zstd (1.",
                              "built by: GNU 12.", "x86-64-v3", "\nkernels here: AVX"})
    EXPECT_THAT(daemon, HasSubstr(feature));
}

TEST(CommandsTest, GeneratedInteractionsComeWithTheirCatalogue) {
  TempDir dir;
  const auto generate = [&](const std::string& out, const char* seed) {
    return Json(
        test::Run({TACIT, "generate", "interactions", "--days", "2", "--rows", "3000", "--users",
                   "200", "--items", "150", "--seed", seed, "--output", dir / out, "--json"}));
  };
  const json::object summary = generate("a", "5");
  generate("b", "5");
  for (const char* file : {"day-00.jsonl.gz", "day-01.jsonl.gz", "items.dat"}) {
    const std::string bytes = test::ReadFile(dir / "a" + "/" + file);
    EXPECT_GT(bytes.size(), 4000u);
    EXPECT_EQ(bytes, test::ReadFile(dir / "b" + "/" + file));
  }
  EXPECT_EQ(summary.at("best_auc").as_object().size(), 2u);
  EXPECT_GT(summary.at("best_hit10").to_number<double>(),
            1.5 * summary.at("popular_hit10").to_number<double>());
  EXPECT_EQ(json::parse(test::ReadFile(dir / "a" + "/ground-truth.json")), json::value(summary));

  // One file, as it is named.
  const json::object one = generate("c/shop.jsonl", "5");
  EXPECT_EQ(one.at("catalogue").as_string(), dir / "c/items.dat");
  const std::string lines = test::ReadFile(dir / "c/shop.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 6000);
  EXPECT_EQ(test::ReadFile(dir / "c/items.dat"), test::ReadFile(dir / "a" + "/items.dat"));
}

TEST(CommandsTest, PrivacyEpsilonAndCalibrateAreInverse) {
  const json::object noise =
      Json(test::Run({TACIT, "privacy", "calibrate", "--accountant", "gaussian", "--epsilon", "3",
                      "--steps", "4", "--delta", "1e-6", "--json"}));
  const json::object epsilon =
      Json(test::Run({TACIT, "privacy", "epsilon", "--accountant", "gaussian", "--noise-multiplier",
                      fmt::format("{:.17g}", noise.at("noise_multiplier").as_double()), "--steps",
                      "4", "--delta", "1e-6", "--json"}));
  EXPECT_NEAR(epsilon.at("epsilon").to_number<double>(), 3, 1e-9);
  EXPECT_LE(epsilon.at("epsilon").to_number<double>(), 3);
}

// JSON has no number for it, and readers refuse the word.
TEST(CommandsTest, AnEpsilonWithoutEndIsNullInJson) {
  for (const std::vector<std::string>& hopeless :
       {std::vector<std::string>{"--noise-multiplier", "1e-200"},
        std::vector<std::string>{"--accountant", "gdp", "--noise-multiplier", "1e-5", "--steps",
                                 "1000000"}}) {
    std::vector<std::string> asked = {TACIT, "privacy", "epsilon", "--delta", "1e-6", "--json"};
    asked.insert(asked.end(), hopeless.begin(), hopeless.end());
    EXPECT_TRUE(Json(test::Run(asked)).at("epsilon").is_null());
    asked.erase(std::ranges::find(asked, "--json"));
    EXPECT_THAT(test::Run(asked).out, HasSubstr("epsilon inf at delta"));
  }
}

// An upper bound is 0 only where nothing is lost; where arithmetic has no bound, a reason stands in
// its place and no number.
TEST(CommandsTest, EpsilonOfEventsIsNeverBelowTheTruth) {
  TempDir dir;
  const auto ask = [&](const char* events, const char* delta) {
    test::WriteFile(dir / "events", events);
    return test::Run(
        {TACIT, "privacy", "epsilon", "--events", dir / "events", "--delta", delta, "--json"});
  };
  struct Row {
    const char *events, *delta;
    double truth;
  };
  for (const Row& row : {
           Row{R"({"type":"pure_dp","epsilon":1.0,"count":3})", "1e-7", 2.99999974},
           {R"({"type":"pure_dp","epsilon":3.0,"count":100})", "1e-8", 299.999999},
           {R"({"type":"laplace","epsilon":1.0})", "1e-7", 0.9999998},
           {R"({"type":"pure_dp","epsilon":1e-9})", "1e-6", 0},
       }) {
    const json::object said = Json(ask(row.events, row.delta));
    const double upper = said.at("epsilon").to_number<double>();
    EXPECT_GE(upper, row.truth * (1 - 1e-8)) << row.events;
    EXPECT_LE(upper, row.truth * (1 + 1e-6)) << row.events;
    EXPECT_LE(said.at("epsilon_lower").to_number<double>(), upper) << row.events;
  }
  const Ended none = ask(R"({"type":"pure_dp","epsilon":1e8,"count":2})", "1e-6");
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("promises nothing"));
}

// JSON's readers keep one of two equal keys, and which one they keep would decide what is promised.
TEST(CommandsTest, AnEventWhoseKeyStandsTwiceIsRefused) {
  TempDir dir;
  const std::string usual = R"({"type":"pure_dp","epsilon":1,"count":3})";
  for (const auto& [key, event] : std::map<std::string, std::string>{
           {"epsilon", R"({"type":"pure_dp","epsilon":3,"count":3,"epsilon" : 1})"},
           {"count", R"({"count":300,"type":"pure_dp","epsilon":1,"\u0063ount":3})"},
           {"type", R"({"type":"laplace","type":"pure_dp","epsilon":1})"}}) {
    test::WriteFile(dir / "events", fmt::format("{}\n{}\n", usual, event));
    const Ended refused = test::Run(
        {TACIT, "privacy", "epsilon", "--events", dir / "events", "--delta", "1e-6", "--json"});
    EXPECT_EQ(refused.exit_code, 2) << event;
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err,
                HasSubstr(fmt::format("{}:2: \"{}\" is there twice", dir / "events", key)));
  }
}

// Paper 001's steps, with labels in the clear: its figure is printed as what it is.
TEST(CommandsTest, KnownCoinsCostWhatTheyCost) {
  const std::vector<std::string> asked = {
      TACIT,  "privacy", "epsilon", "--noise-multiplier", "1", "--sampling-rate", "1e-3", "--steps",
      "3000", "--delta", "1e-5",    "--known-coins"};
  std::vector<std::string> as_json = asked;
  as_json.push_back("--json");
  const json::object epsilon = Json(test::Run(as_json));
  EXPECT_NEAR(epsilon.at("epsilon").to_number<double>(), 13.2, 0.05);
  EXPECT_LT(epsilon.at("epsilon_clt_estimate").to_number<double>(), 0.3);
  EXPECT_THAT(test::Run(asked).out, HasSubstr("ESTIMATE and no bound"));
  std::vector<std::string> exact = asked;
  exact.insert(exact.end(), {"--accountant", "gdp"});
  EXPECT_EQ(test::Run(exact).exit_code, 2);
}

TEST(CommandsTest, WrongUsageExitsWithTwoAndSaysWhatIsMissing) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {},
           {"nonsense"},
           {"privacy", "epsilon"},
           {"query", "score", "--learner", "ctr"},
           {"query", "score", "--url", "http://127.0.0.1:1", "--learner", "ctr", "--tsv", "x",
            "--count", "-1"},
           {"evaluate", "ctr", "--config", "x", "--data", "x", "--from", "5", "--to", "4"},
           {"evaluate", "ctr", "--config", "x", "--data", "x", "--from", "-1"},
           {"bench", "stepp"}}) {
    std::vector<std::string> command{TACIT};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Ended ended = test::Run(command);
    EXPECT_EQ(ended.exit_code, 2) << testing::PrintToString(arguments);
    EXPECT_FALSE(ended.err.empty() && ended.out.empty());
  }
}

// A file with half of an answer must not be taken for the whole of it.
TEST(CommandsTest, AnswersThatCannotBePrintedAreNoSuccess) {
  TempDir dir;
  const test::SmallRun run;
  const std::string config = run.WriteConfig(dir);
  test::WriteSmallLog(dir, 2, 500, 1);
  ASSERT_EQ(test::Run({TACITD, "--config", config, "--until-end"}).exit_code, 0);
  const std::string store = dir / "store", tacit = TACIT;
  for (const std::string& command :
       {tacit + " --help", tacit + " help", tacit + " ledger show --store " + store,
        tacit + " ledger export --store " + store,
        tacit + " privacy plan --json --config " + config,
        tacit + " inspect " + (dir / "day-0.tsv"), TACITD " --check-config --config " + config})
    for (const std::string where : {" >/dev/full", " >&-"}) {
      const Ended ended = test::Run({"/bin/sh", "-c", command + where});
      EXPECT_EQ(ended.exit_code, 1) << command << where << ended.err;
      EXPECT_THAT(ended.err, HasSubstr("what was printed is not complete: ")) << command << where;
    }
  // The status remains if no message can be given.
  EXPECT_EQ(test::Run({"/bin/sh", "-c", tacit + " ledgre 2>/dev/full"}).exit_code, 1);
}

// Closed streams leave their numbers to the next files that are opened: those of the store.
TEST(CommandsTest, NothingIsPrintedIntoTheStore) {
  TempDir dir;
  const test::SmallRun run;
  const std::string config = run.WriteConfig(dir);
  test::WriteSmallLog(dir, 2, 500, 1);
  const Ended ended =
      test::Run({"/bin/sh", "-c", TACITD " --until-end --config " + config + " <&- >&- 2>&-"});
  EXPECT_EQ(ended.exit_code, 1) << "the table of days is lost";
  EXPECT_EQ(std::filesystem::file_size(dir / "store/LOCK"), 0u)
      << test::ReadFile(dir / "store/LOCK");
  EXPECT_EQ(test::Run({TACIT, "ledger", "verify", "--store", dir / "store"}).exit_code, 0);
}

// A folder where a file is asked for, an unset variable of a script, a name that is misspelt.
TEST(CommandsTest, PathsThatCannotBeAreNamed) {
  TempDir dir;
  const std::string folder = dir.path(), missing = dir / "missing";
  const std::string config = test::SmallRun().WriteConfig(dir);
  test::WriteSmallLog(dir, 1, 100, 1);
  // The system refuses to look at it, as at what this user may not see.
  const std::string odd = dir / std::string(300, 'x');
  const std::string empty = dir / "empty";
  std::filesystem::create_directory(empty);
  for (const auto& [arguments, says] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"ledger", "verify", "--file", folder},
            folder + ": cannot be read: is a directory, not a file"},
           {{"ledger", "show", "--store", ""}, "there is no store at"},
           {{"ledger", "show", "--store", odd}, "there is no store at " + odd},
           {{"evaluate", "ctr", "--config", config, "--data", odd}, odd + ": File name too long"},
           {{"store", "verify", "--store", ""}, "there is no store at"},
           {{"ledger", "recover", "--store", missing}, "there is no store at " + missing},
           {{"store", "verify", "--store", empty}, "there is no store at " + empty},
           {{"ledger", "recover", "--store", empty}, "there is no store at " + empty},
           {{"query", "score", "--url", "http://127.0.0.1:1", "--learner", "x", "--request",
             "@" + folder},
            "cannot read " + folder},
           {{"checkpoint", "list", "--path", missing}, "there is no folder " + missing},
           {{"checkpoint", "prune", "--path", missing, "--keep", "1"},
            "there is no folder " + missing}}) {
    std::vector<std::string> command{TACIT};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Ended ended = test::Run(command);
    EXPECT_GT(ended.exit_code, 0) << testing::PrintToString(arguments);
    EXPECT_THAT(ended.err, HasSubstr("tacit: ")) << testing::PrintToString(arguments);
    EXPECT_THAT(ended.err, HasSubstr(says)) << testing::PrintToString(arguments);
    EXPECT_FALSE(std::filesystem::exists(missing));
  }
  const Ended daemon =
      test::Run({TACITD, "--config", config, "--until-end", "--set", "store.witness=" + odd});
  EXPECT_EQ(daemon.exit_code, 2);
  EXPECT_THAT(daemon.err, HasSubstr(odd + ": File name too long"));
}

// Status 3 is for stores that refuse.
TEST(CommandsTest, AWordThatIsNoCommandIsNamedAndHelpIsOne) {
  const Ended unknown = test::Run({TACIT, "ledgre", "show"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_EQ(unknown.err,
            "tacit: 'ledgre' is no command of tacit (did you mean 'ledger'?); tacit --help lists "
            "them\n");
  const Ended help = test::Run({TACIT, "help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("ledger"));
}

// A key and its value are one word: what follows is not a key, too.
TEST(CommandsTest, SetTakesOneWordAndNotTheFilesBehindIt) {
  const Ended ended = test::Run(
      {TACIT, "replay", "--config", "none.yaml", "--set", "kafka.client.id=x", "day-00.tsv"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("none.yaml"));
}

TEST(CommandsTest, WhereNoDaemonAnswersIsSaid) {
  TempDir dir;
  const std::string url = "unix:" + (dir / "nobody");
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"ledger", "show", "--url", url},
           {"ledger", "verify", "--url", url},
           {"query", "score", "--url", url, "--learner", "ctr", "--request", "{}"}}) {
    std::vector<std::string> command{TACIT};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Ended ended = test::Run(command);
    EXPECT_EQ(ended.exit_code, 1) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("no daemon answers at " + url));
  }
}

TEST(CommandsTest, ARequestMayLieInAFile) {
  TempDir dir;
  const std::string url = "unix:" + (dir / "nobody");
  const auto ask = [&](const std::string& file) {
    return test::Run({TACIT, "query", "score", "--url", url, "--learner", "ctr", "--request",
                      "@" + (dir / file)});
  };
  const Ended missing = ask("missing.json");
  EXPECT_EQ(missing.exit_code, 2) << missing.err;
  EXPECT_THAT(missing.err, HasSubstr("cannot read " + (dir / "missing.json")));
  test::WriteFile(dir / "empty.json", "");
  EXPECT_THAT(ask("empty.json").err, HasSubstr("is empty"));
  test::WriteFile(dir / "request.json", "{}");
  EXPECT_THAT(ask("request.json").err, HasSubstr("no daemon answers at " + url));
}

TEST(CommandsTest, EveryCommandHasHelpWithAnExample) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"generate", "criteo"},
                                             {"generate", "interactions"},
                                             {"query", "recommend"},
                                             {"query", "score"},
                                             {"ledger", "show"},
                                             {"ledger", "verify"},
                                             {"privacy", "epsilon"},
                                             {"privacy", "calibrate"},
                                             {"privacy", "plan"},
                                             {"evaluate", "ctr"},
                                             {"audit"},
                                             {"bench"}}) {
    std::vector<std::string> command{TACIT};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.push_back("--help");
    const Ended ended = test::Run(command);
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_THAT(ended.out, HasSubstr("Example")) << testing::PrintToString(arguments);
    EXPECT_THAT(ended.out, HasSubstr("--json"));
  }
}

// Its figures are of right answers: dp_accounting 0.6.0 bounds this one from above by 1.86106 at a
// lattice of 1e-5, and by 1.86200 at its usual one of 1e-4.
TEST(CommandsTest, BenchAccountantTimesRightAnswers) {
  const json::object result = Json(test::Run({TACIT, "bench", "accountant", "--quick", "--json"}));
  std::map<std::string, json::object> rows;
  for (const json::value& row : result.at("rows").as_array()) {
    EXPECT_EQ(row.at("unit"), "ms");
    EXPECT_GT(row.at("value").to_number<double>(), 0);
    rows[std::string(row.at("name").as_string())] = row.as_object();
  }
  const json::object& one = rows["pld-q.001-T1e5"];
  EXPECT_LE(one.at("epsilon_lower").to_number<double>(), 1.86106);
  EXPECT_GE(one.at("epsilon").to_number<double>(), 1.8605);
  for (const char* name : {"pld-hundred-settings", "pld-one-more-step", "calibrate-ml-1m",
                           "ledger-sampled", "ledger-verify"})
    EXPECT_TRUE(rows.contains(name)) << name;
}

TEST(CommandsTest, EvaluateMeasuresWhatItIsAskedFor) {
  TempDir dir;
  test::WriteSmallLog(dir, 2, 3000, 4);
  test::SmallRun run;
  const json::object result = Json(test::Run(
      {TACIT, "evaluate", "ctr", "--config", run.WriteConfig(dir), "--data", dir / "day-0.tsv",
       "--data", dir / "day-1.tsv", "--from", "4000", "--seeds", "2", "--json"}));
  const json::object& row = result.at("rows").at(0).as_object();
  EXPECT_EQ(row.at("mechanism"), "adafest");
  EXPECT_EQ(row.at("events"), 6000);
  EXPECT_EQ(row.at("events_measured"), 2000);
  EXPECT_EQ(row.at("seeds"), 2);
  const double auc = row.at("auc").at("mean").to_number<double>();
  EXPECT_GT(auc, 0.3);
  EXPECT_LT(auc, 0.9);
  EXPECT_FALSE(std::filesystem::exists(dir / "store")) << "an experiment leaves no store";
}

TEST(CommandsTest, ATamperedLedgerIsFound) {
  TempDir dir;
  test::WriteSmallLog(dir, 1, 1000, 4);
  test::SmallRun run;
  ASSERT_EQ(test::Run({TACITD, "--config", run.WriteConfig(dir), "--until-end"}).exit_code, 0);
  const Ended good = test::Run({TACIT, "ledger", "verify", "--store", dir / "store", "--json"});
  EXPECT_EQ(Json(good).at("valid"), true);
  // One byte of every file of the store in turn, at a place in its middle: verify either refuses or
  // finds the ledger unharmed; it never reports another head.
  const std::string head(Json(good).at("head").as_string());
  for (const std::filesystem::path& entry : test::FilesBelow(dir / "store")) {
    if (std::filesystem::file_size(entry) == 0) continue;
    const std::string bytes = test::ReadFile(entry);
    std::string bad = bytes;
    bad[bytes.size() / 2] = static_cast<char>(bad[bytes.size() / 2] ^ 1);
    test::WriteFile(entry, bad);
    const Ended ended = test::Run({TACIT, "ledger", "verify", "--store", dir / "store", "--json"});
    EXPECT_EQ(ended.signal, 0) << entry;
    if (ended.exit_code == 0) {
      EXPECT_THAT(ended.out, HasSubstr(head)) << entry;
    }
    test::WriteFile(entry, bytes);
  }
}

// Right noise proves less than is charged and ends with 0, in the table's form; what cannot be
// audited is refused by name, and a learner that is not there is an error.
TEST(CommandsTest, AuditHoldsALearnerToItsCharge) {
  const TempDir dir;
  test::SmallRun run;
  const std::string config = run.WriteConfig(dir), state = dir / "audit.jsonl";
  const std::vector<std::string> command = {TACIT,          "audit",   "--config", config,
                                            "--runs",       "400",     "--state",  state,
                                            "--confidence", "0.999999"};
  const Ended table = test::Run(command);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("mu proved"));
  EXPECT_THAT(table.out, HasSubstr("with a confidence of 100 %"));
  std::vector<std::string> again = command;
  again.push_back("--json");
  const auto answer = test::Json(test::Run(again));
  EXPECT_EQ(answer.at("confidence").to_number<double>(), 0.999999);
  const auto& row = answer.at("rows").at(0);
  EXPECT_EQ(row.at("exceeds"), false);
  EXPECT_GT(row.at("mu").at("proved").to_number<double>(), 0);
  EXPECT_LT(row.at("mu").at("proved").to_number<double>(),
            row.at("mu").at("charged").to_number<double>());
  again.insert(again.end(), {"--learner", "nobody"});
  const Ended nobody = test::Run(again);
  EXPECT_EQ(nobody.exit_code, 2);
  EXPECT_THAT(nobody.err, HasSubstr("there is no learner 'nobody'"));
  const Ended another =
      test::Run({TACIT, "audit", "--config", config, "--runs", "600", "--state", state});
  EXPECT_EQ(another.exit_code, 3);
  EXPECT_THAT(another.err, HasSubstr("--state"));
}

// The audits that train a learner on a part of its own log: one table for all kinds, and nothing is
// trained again where the scores are kept.
TEST(CommandsTest, AuditTrainsOnAPartOfTheLogAndTellsWhatItsLossesSay) {
  const TempDir dir;
  test::WriteSmallLog(dir, 2, 1500, 4);
  const std::string config = test::SmallRun().WriteConfig(dir), state = dir / "audit.jsonl";
  const std::vector<std::string> command = {
      TACIT,        "audit", "--config", config, "--kind",     "membership", "--kind", "one-run",
      "--canaries", "300",   "--state",  state,  "--epsilons", "none,1",     "--json"};
  const Ended ended = test::Run(command);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const auto answer = test::Json(ended);
  ASSERT_EQ(answer.at("rows").as_array().size(), 4u);
  EXPECT_TRUE(answer.at("rows").at(0).at("epsilon").at("charged").is_null());
  const auto& row = answer.at("rows").at(3);
  EXPECT_EQ(row.at("kind"), "one-run");
  EXPECT_NEAR(row.at("epsilon").at("charged").to_number<double>(), 1, 0.01);
  EXPECT_EQ(row.at("losses").at("members").to_number<uint64_t>() +
                row.at("losses").at("others").to_number<uint64_t>(),
            300u);
  EXPECT_LT(row.at("auc").at("allowed").to_number<double>(), 0.7);
  EXPECT_EQ(test::Run(command).out, ended.out);
  std::vector<std::string> wrong = command;
  wrong.back() = "--epsilons=none,much";
  EXPECT_EQ(test::Run(wrong).exit_code, 2);
}

}  // namespace
}  // namespace tacit
