// Mistakes on the command line: each is answered in words of our own.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/process.h"

namespace tacit {
namespace {

using test::Ended;
using testing::HasSubstr;

struct Mistake {
  std::vector<std::string> words;
  std::string answer;  // part of it
};

// Parts of sentences that CLI11 writes.
constexpr const char* kParsersWords[] = {"subcommand is required",
                                         "is required",
                                         "not expected",
                                         "Run with --help",
                                         " excludes ",
                                         " requires ",
                                         "Could not convert",
                                         "missing",
                                         " not in {",
                                         "At Most",
                                         "Should be",
                                         "Exactly 1"};

void ExpectAnswers(const std::string& program, const std::string& name,
                   const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    std::vector<std::string> command = {program};
    command.insert(command.end(), mistake.words.begin(), mistake.words.end());
    const Ended ended = test::Run(command);
    const std::string line = fmt::format("{} {}", name, fmt::join(mistake.words, " "));
    EXPECT_EQ(ended.exit_code, 2) << line;
    EXPECT_THAT(ended.err, HasSubstr(mistake.answer)) << line;
    EXPECT_THAT(ended.err, testing::StartsWith(name + ": ")) << line;
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
    EXPECT_EQ(ended.out, "") << line;
    for (const char* words : kParsersWords)
      EXPECT_THAT(ended.err, testing::Not(HasSubstr(words))) << line;
  }
}

TEST(MistakesTest, AToolAnswersInItsOwnWords) {
  const std::vector<Mistake> mistakes = {
      {{}, "tacit needs one of its commands: generate, replay, inspect"},
      {{"inspct", "x"},
       "'inspct' is no command of tacit (did you mean 'inspect'?); tacit --help lists them"},
      {{"frobnicate"}, "'frobnicate' is no command of tacit; tacit --help lists them"},
      {{"--json", "inspect", "x"},
       "tacit has no option --json; tacit --help lists its commands and options"},
      {{"--verison"}, "tacit has no option --verison (did you mean '--version'?)"},
      {{"workers", "key"}, "tacit workers key needs file"},
      {{"checkpoint"}, "tacit checkpoint needs one of its commands: create, list, pack"},
      {{"checkpoint", "lst"}, "'lst' is no command of tacit checkpoint (did you mean 'list'?)"},
      {{"checkpoint", "list"}, "tacit checkpoint list takes one of --path and --url"},
      {{"checkpoint", "list", "--path", "x", "--url", "y"},
       "tacit checkpoint list takes only one of --path and --url"},
      {{"checkpoint", "list", "--pth", "x"},
       "tacit checkpoint list has no option --pth (did you mean '--path'?)"},
      {{"checkpoint", "list", "x", "--path", "y"},
       "'x' is one word too many; tacit checkpoint list --help"},
      {{"checkpoint", "list", "--path"}, "--path needs a value"},
      {{"checkpoint", "list", "--path", "x", "--path", "y"},
       "--path is there more than once, and takes one value"},
      {{"checkpoint", "create", "--url", "x", "--kind", "half"},
       "--kind: 'half' is none of full and release"},
      {{"checkpoint", "create"}, "tacit checkpoint create needs --url (The daemon"},
      {{"checkpoint", "restore", "x"},
       "tacit checkpoint restore needs --config (The configuration"},
      {{"checkpoint", "restore", "--config", "x"},
       "tacit checkpoint restore needs folder (A full checkpoint"},
      {{"checkpoint", "restore", "a", "b", "--config", "x"},
       "tacit checkpoint restore takes one folder, and more are there"},
      {{"checkpoint", "pack", "x"}, "tacit checkpoint pack needs --output (The file to write)"},
      {{"checkpoint", "pack", "x", "--outptu", "y"},
       "no option --outptu (did you mean '--output'?)"},
      {{"checkpoint", "prune", "--path", "x"}, "tacit checkpoint prune needs --keep ("},
      {{"checkpoint", "prune", "--path", "x", "--keep=-3"},
       "--keep: '-3' is not a whole number of at least 1"},
      {{"checkpoint", "list", "--json=maybe", "--path", "x"}, "--json takes no value"},
      {{"query"}, "tacit query needs one of its commands: "},
      {{"query", "scor", "--url", "x"},
       "'scor' is no command of tacit query (did you mean 'score'?)"},
      {{"query", "score", "--ulr", "x"},
       "tacit query score has no option --ulr (did you mean '--url'?)"},
      {{"query", "score", "--confg=x", "--url", "y"}, "tacit query score has no option --confg"},
      {{"evaluate"}, "tacit evaluate needs --config, or a subcommand"},
      {{"evaluate", "--hed-out", "3"},
       "tacit evaluate has no option --hed-out (did you mean '--held-out'?)"},
      {{"evaluate", "--config", "x", "--held-out", "0"},
       "--held-out: '0' is neither a number of files nor a share of the records as 20%"},
      {{"evaluate", "--config", "x", "--held-out", "120%"}, "--held-out: '120%' is neither"},
      {{"evaluate", "--config", "x", "--held-out", "-1"}, "--held-out"},
      {{"evaluate", "--config", "x", "--held-out", "nan%"}, "--held-out: 'nan%' is neither"},
      {{"evaluate", "--config", "x", "--held-out", "1e1%"}, "--held-out: '1e1%' is neither"},
      {{"evaluate", "--config", "x", "--held-out", ""}, "--held-out: '' is neither"},
      {{"evaluate", "crt", "--config", "x"},
       "'crt' is no command of tacit evaluate (did you mean 'ctr'?)"},
      {{"evaluate", "--config", "x", "ctr"}, "tacit evaluate ctr needs --config ("},
      {{"evaluate", "ctr", "--data", "x"}, "tacit evaluate ctr needs --config ("},
      {{"ledger", "show"},
       "tacit ledger show takes one of --store, --checkpoint, --file and --url"},
      {{"ledger", "shwo", "--store", "x"},
       "'shwo' is no command of tacit ledger (did you mean 'show'?)"},
      {{"ledger", "show", "--store", "x", "y"}, "'y' is one word too many"},
      {{"ledger", "forecast", "--store", "x", "--epsilon", "lots"},
       "--epsilon: 'lots' is not a number from"},
      {{"store", "verify"}, "tacit store verify needs --store (Store directory)"},
      {{"store", "reshrad", "--config", "x"},
       "'reshrad' is no command of tacit store (did you mean 'reshard'?)"},
      {{"store", "migrate", "--config", "x", "--drry-run"},
       "no option --drry-run (did you mean '--dry-run'?)"},
      {{"privacy", "epsilon"}, "tacit privacy epsilon needs --"},
      {{"privacy", "plan"}, "tacit privacy plan needs --config ("},
      {{"privacy", "epsilon", "--steps", "many"}, "--steps: 'many' is not a whole number"},
      {{"inspect"}, "name log files, or a topic with --topic NAME"},
      {{"inspect", "x", "--privat", "3"}, "no option --privat (did you mean '--private'?)"},
      {{"inspect", "x", "--delta", "7"}, "--delta: '7' is not a number from"},
      {{"generate"}, "tacit generate needs one of its commands: "},
      {{"generate", "criteo"}, "tacit generate criteo needs --out ("},
      {{"generate", "criteo", "--out", "x", "--sead", "3"},
       "no option --sead (did you mean '--seed'?)"},
      {{"replay", "x"}, "tacit replay needs --config ("},
      {{"replay", "--config", "x", "y", "--speed", "fast"},
       "--speed: 'fast' is not a number above 0"},
      {{"audit"}, "tacit audit needs --config, or --scores"},
      {{"audit", "--config", "x", "--kind", "leaks"}, "--kind: 'leaks' is none of "},
      {{"weights", "--url", "x", "--learner"}, "--learner needs a value"},
      {{"weights", "--url", "x", "--tpo", "3", "--learner", "y"},
       "no option --tpo (did you mean '--top'?)"},
      {{"versions"}, "tacit versions needs"},
      {{"token", "--nmae", "x"}, "tacit token has no option --nmae"},
      {{"user", "forgt", "x"}, "'forgt' is no command of tacit user (did you mean 'forget'?)"},
      {{"bench", "stpe"}, "stpe"},
  };
  ExpectAnswers(TACIT, "tacit", mistakes);
}

TEST(MistakesTest, TheDaemonAnswersInItsOwnWords) {
  const std::vector<Mistake> mistakes = {
      {{}, "tacitd needs --config (Configuration file (YAML))"},
      {{"--confg", "x"}, "tacitd has no option --confg (did you mean '--config'?)"},
      {{"config.yaml"}, "'config.yaml' is one word too many"},
      {{"--config"}, "--config needs a value"},
      {{"--config", "x", "--chek-config"},
       "tacitd has no option --chek-config (did you mean '--check-config'?)"},
      {{"--config", "x", "--serve-only"}, "--serve-only goes only with --checkpoint"},
      {{"--config", "x", "--checkpoint", "y"},
       "--checkpoint goes only with --serve-only or --replica"},
      {{"--config", "x", "--replica", "--standby"}, "do not go together"},
      {{"--describe", "everything"}, "--describe: 'everything' is none of "},
      {{"--config", "x", "--yaml"}, "--yaml goes only with --describe"},
      {{"--config", "x", "--until-end=perhaps"}, "--until-end takes no value"},
  };
  ExpectAnswers(TACITD, "tacitd", mistakes);
}

}  // namespace
}  // namespace tacit
