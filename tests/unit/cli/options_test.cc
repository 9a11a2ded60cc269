// Options: which numbers and words they refuse, and what they say.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "support/process.h"
#include "support/temp_dir.h"

namespace tacit {
namespace {

using test::Ended;
using testing::HasSubstr;

// The options of every command that takes a whole number of at least 1, at least 0, or a number
// above 0, by the words that follow the program's name.
struct Numbered {
  std::vector<std::string> words;
  std::string option, allowed;
};

const std::string kFromOne = "a whole number of at least 1",
                  kFromZero = "a whole number of at least 0", kAboveZero = "a number above 0";

std::vector<Numbered> AllNumbered() {
  const std::vector<std::string> score = {TACIT,   "query", "score",     "--url", "unix:/nowhere",
                                          "--row", "x",     "--learner", "ctr"};
  const std::vector<std::string> ctr = {TACIT, "evaluate", "ctr", "--config", "x", "--data", "y"};
  return {{score, "--count", kFromOne},
          {score, "--first", kFromZero},
          {ctr, "--from", kFromZero},
          {ctr, "--to", kFromZero},
          {ctr, "--train-to", kFromOne},
          {ctr, "--train-files", kFromOne},
          {{TACIT, "weights", "--url", "unix:/nowhere", "--learner", "x"}, "--top", kFromOne},
          {{TACIT, "checkpoint", "prune", "--path", "x"}, "--keep", kFromOne},
          {{TACIT, "generate", "criteo", "--output", "x"}, "--seed", kFromZero},
          {{TACIT, "generate", "interactions", "--output", "x"}, "--seed", kFromZero},
          {{TACIT, "replay", "--config", "x", "y"}, "--speed", kAboveZero},
          {{TACITD, "--config", "x"}, "--past-halt", kFromOne}};
}

// Some of those that take numbers between two others, one of each command.
std::vector<Numbered> SomeBounded() {
  return {
      {{TACIT, "inspect", "x"}, "--private", "a number from 0.001 to 1000"},
      {{TACIT, "inspect", "x"}, "--delta", "a number from 1e-300 to 0.999"},
      {{TACIT, "generate", "criteo", "--output", "x"}, "--churn", "a number from 0 to 1"},
      {{TACIT, "ledger", "forecast", "--store", "x"}, "--epsilon", "a number from 1e-06 to 1e+06"}};
}

// All that take whole numbers between two others, which no exponent writes.
std::vector<Numbered> AllWholeBounded() {
  const std::vector<std::string> inspect = {TACIT, "inspect", "x"},
                                 audit = {TACIT, "audit", "--config", "x"};
  return {{inspect, "--rows", "a whole number from 1 to 1000000000"},
          {inspect, "--wait", "a whole number from 1 to 600"},
          {inspect, "--user-records", "a whole number from 1 to 4096"},
          {audit, "--runs", "a whole number from 200 to 1000000000"},
          {audit, "--canaries", "a whole number from 200 to 10000000"},
          {audit, "--records", "a whole number from 1000 to 10000000000"},
          {{TACIT, "privacy", "epsilon"}, "--steps", "a whole number from 1 to 1000000000000000"},
          {{TACIT, "privacy", "plan", "--config", "x"},
           "--events-per-day",
           "a whole number from 1 to 1000000000000000"}};
}

TEST(OptionsTest, ABadNumberIsToldWithTheOptionAndWhatIsAllowed) {
  for (const Numbered& numbered : AllNumbered()) {
    std::vector<std::string> bad = {"-1", "abc", "1x", std::string(400, '9') + "x"};
    if (numbered.allowed != kAboveZero) bad.insert(bad.end(), {"1.5", "1e3", "nan"});
    if (numbered.allowed != kFromZero) bad.emplace_back("0");
    if (numbered.allowed == kAboveZero) bad.insert(bad.end(), {"nan", "inf", "1e999", "-0.0"});
    for (const std::string& value : bad) {
      std::vector<std::string> command = numbered.words;
      command.push_back(numbered.option + "=" + value);
      const Ended ended = test::Run(command);
      EXPECT_EQ(ended.exit_code, 2) << numbered.option << " " << value;
      EXPECT_THAT(ended.err, HasSubstr(numbered.option + ": ")) << value;
      EXPECT_THAT(ended.err, HasSubstr(" is not " + numbered.allowed + "\n")) << value;
      EXPECT_LT(ended.err.size(), 200u) << ended.err;
    }
  }
}

TEST(OptionsTest, WhatIsNoNumberIsWithinNoBounds) {
  std::vector<Numbered> bounded = SomeBounded(), whole = AllWholeBounded();
  std::ranges::move(whole, std::back_inserter(bounded));
  for (const Numbered& numbered : bounded) {
    std::vector<std::string> bad = {"nan", "-nan", "inf", "-1", "1e30", "abc", "1x"};
    if (numbered.allowed.starts_with("a whole")) bad.insert(bad.end(), {"1e3", "1000.5", "0"});
    for (const std::string& value : bad) {
      std::vector<std::string> command = numbered.words;
      command.push_back(numbered.option + "=" + value);
      const Ended ended = test::Run(command);
      EXPECT_EQ(ended.exit_code, 2) << numbered.option << " " << value;
      EXPECT_THAT(ended.err, testing::StartsWith("tacit: " + numbered.option + ": '" + value +
                                                 "' is not " + numbered.allowed + "\n"));
    }
  }
}

// A script's "$STORE" that is not set leaves an empty word.
TEST(OptionsTest, AnEmptyWordIsRefusedByItsPlace) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"ledger", "verify", "", "--json"},
        {"query", "score", "", "--json"},
        {"checkpoint", "list", "", "--json"},
        {"checkpoint", "list", "--path=", "--json"},
        {"ledger", "verify", "--json", ""}}) {
    std::vector<std::string> command = {TACIT};
    command.insert(command.end(), words.begin(), words.end());
    const Ended ended = test::Run(command);
    EXPECT_EQ(ended.exit_code, 2) << words[0];
    const size_t place = words[2] == "--json" ? 4 : 3;
    EXPECT_EQ(ended.err, fmt::format("tacit: word {} of the command line, '{}', has no value: give "
                                     "one, or leave it out\n",
                                     place, words[place - 1]));
    EXPECT_EQ(ended.out, "");
  }
}

// A daemon that was to check its configuration took the flag for the empty option's value, and
// learnt.
TEST(OptionsTest, ADaemonRefusesAnEmptyWordByItsPlace) {
  const std::vector<std::vector<std::string>> lines = {
      {"--past-cut=", "--check-config"}, {"--set=", "--check-config"}, {"", "--check-config"}};
  for (const std::vector<std::string>& words : lines) {
    std::vector<std::string> command = {TACITD, "--config", "missing"};
    command.insert(command.end(), words.begin(), words.end());
    const Ended ended = test::Run(command);
    EXPECT_EQ(ended.exit_code, 2) << words[0];
    EXPECT_EQ(ended.err, fmt::format("tacitd: word 3 of the command line, '{}', has no value: give "
                                     "one, or leave it out\n",
                                     words[0]));
  }
  EXPECT_THAT(test::Run({TACITD, "--config", "missing", "--set", "", "--check-config"}).err,
              HasSubstr("missing: cannot be read"));
}

TEST(OptionsTest, ACutIsPassedInFilesAlone) {
  const test::TempDir dir;
  test::WriteFile(dir / "c.yaml", R"(
source: {kind: generator, generator: {days: 1, rows_per_day: 10}}
store: {path: store, witness: none}
learners:
  - id: ctr
    model: {kind: pctr, hidden: [4]}
    mechanism: {kind: dp-sgd}
    participation: {mode: once, batch: 4}
    privacy: {unit: event, epsilon: 8, delta: 1.0e-6}
    optimizer: {kind: sgd, learning_rate: 0.1}
schema:
  features: [FEATURES]
)");
  std::string features;
  for (int i = 1; i <= 13; ++i) features += fmt::format("{{name: I{}, kind: dense}}, ", i);
  for (int i = 1; i <= 26; ++i)
    features += fmt::format("{{name: C{}, kind: categorical, buckets: 16}}, ", i);
  std::string config = test::ReadFile(dir / "c.yaml");
  config.replace(config.find("FEATURES"), 8, features);
  config.replace(config.find("path: store"), 11, "path: " + (dir / "store"));
  test::WriteFile(dir / "c.yaml", config);
  const Ended ended =
      test::Run({TACITD, "--config", dir / "c.yaml", "--until-end", "--past-cut", "day.gz"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("--past-cut day.gz: the configuration's source has no files"));
  EXPECT_FALSE(std::filesystem::exists(dir / "store"));
}

TEST(OptionsTest, AGoodNumberIsTaken) {
  for (const Numbered& numbered : AllNumbered()) {
    std::vector<std::string> good = {"1", "7", "0x10"};
    if (numbered.allowed == kAboveZero) good.insert(good.end(), {"0.25", "1e3"});
    if (numbered.allowed == kFromZero) good.emplace_back("0");
    for (const std::string& value : good) {
      std::vector<std::string> command = numbered.words;
      command.push_back(numbered.option + "=" + value);
      command.emplace_back("--help");  // options are looked at, and nothing is done
      EXPECT_EQ(test::Run(command).exit_code, 0) << numbered.option << " " << value;
    }
  }
  for (const Numbered& numbered : AllWholeBounded()) {
    // The least and the most that is allowed.
    const std::string& allowed = numbered.allowed;
    const size_t from = allowed.find("from ") + 5, to = allowed.find(" to ");
    for (const std::string& value : {allowed.substr(from, to - from), allowed.substr(to + 4)}) {
      std::vector<std::string> command = numbered.words;
      command.push_back(numbered.option + "=" + value);
      command.emplace_back("--help");
      EXPECT_EQ(test::Run(command).exit_code, 0) << numbered.option << " " << value;
    }
  }
}

}  // namespace
}  // namespace tacit
