#include "cli/command_line.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "console/empty_word.h"
#include "console/exit_code.h"
#include "console/parse_failure.h"

namespace tacit::cli {
namespace {

// Says whether an option of this command or of those below it has this name and takes a value.
bool TakesValue(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options())
    if (option->check_name(name) && option->get_items_expected_max() > 0) return true;
  const auto below = command.get_subcommands(nullptr);
  return std::ranges::any_of(below, [&](const CLI::App* sub) { return TakesValue(*sub, name); });
}

std::optional<int> EndWithEmptyWord(const CLI::App& cli, int argc, const char* const* argv) {
  const std::string why = console::WhyWordIsEmpty(
      argc, argv, [&](const std::string& option) { return TakesValue(cli, option); });
  if (why.empty()) return std::nullopt;
  fmt::print(stderr, "tacit: {}\n", why);
  return console::kExitUsage;
}

}  // namespace

void AddCommands(CLI::App& cli, std::vector<bench::Bench> gpu, Action* chosen) {
  AddGenerate(cli, chosen);
  AddReplay(cli, chosen);
  AddInspect(cli, chosen);
  AddQuery(cli, chosen);
  AddWeights(cli, chosen);
  AddLedger(cli, chosen);
  AddCheckpoint(cli, chosen);
  AddFeed(cli, chosen);
  AddUser(cli, chosen);
  AddVersions(cli, chosen);
  AddWorkers(cli, chosen);
  AddToken(cli, chosen);
  AddStore(cli, chosen);
  AddPrivacy(cli, chosen);
  AddEvaluate(cli, chosen);
  AddAudit(cli, chosen);
  AddBench(cli, std::move(gpu), chosen);
}

std::optional<int> ReadWords(CLI::App& cli, int argc, const char* const* argv) {
  if (const auto code = EndWithEmptyWord(cli, argc, argv)) return code;
  if (argc > 1 && std::string_view(argv[1]) == "help") {
    fmt::print("{}", cli.help());
    return int{console::kExitDone};
  }
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return console::EndParse(cli, error, "tacit");
  }
  return std::nullopt;
}

}  // namespace tacit::cli
