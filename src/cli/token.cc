#include "http/token.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/parts/command.h"
#include "console/exit_code.h"
#include "console/output_file.h"
#include "http/caller_table.h"

namespace tacit::cli {
namespace {

struct TokenOptions {
  std::string role, name, user, output;
};

Result<int> NewTokenOf(const TokenOptions& options) {
  const std::string token = http::NewToken();
  const std::string name = options.name.empty() ? options.role : options.name;
  const std::string line =
      http::CallerLine(options.role, name, http::DigestOfToken(token), options.user);
  // The daemon's own reader says what is wrong with a name or a user.
  const auto read = http::CallerTable::Parse(line, "the caller", {0, 0, 0});
  if (!read) return Fail(read.error());
  if (!options.output.empty()) {
    TACIT_RETURN_IF_ERROR(console::WriteNewSecret(options.output, token + "\n"));
    fmt::print(stderr, "tacit: the token is in {}\n", options.output);
  } else {
    fmt::print(stderr, "tacit: the token, which nobody can show again: {}\n", token);
  }
  fmt::print("{}\n", line);
  return int{console::kExitDone};
}

}  // namespace

void AddToken(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("token", "Tokens of callers, for serve.callers");
  command->require_subcommand(1);
  const auto options = std::make_shared<TokenOptions>();
  auto* fresh = command->add_subcommand("new", "Makes a token, and prints its line");
  fresh->add_option("--role", options->role, "What the caller may ask: query, user or operator")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"query", "user", "operator"}));
  fresh->add_option("--name", options->name, "The caller's name in answers (default: the role)");
  fresh->add_option("--user", options->user,
                    "For role user: the user's id, as records have it; the token is for that "
                    "user's own recommendations, history and statement");
  fresh->add_option("--output", options->output,
                    "A new file for the token, with mode 0600, which TACIT_TOKEN_FILE may name");
  fresh->footer(
      "The line goes to standard output, to be added to the file of serve.callers; it holds the\n"
      "token's digest alone. The token goes to standard error, or to --output.\n"
      "Examples:\n"
      "  tacit token new --role operator --name night --output night.token >> callers\n"
      "  tacit token new --role user --user anna --name a-phone >> callers");
  fresh->callback([options, chosen] { *chosen = [options] { return NewTokenOf(*options); }; });
}

}  // namespace tacit::cli
