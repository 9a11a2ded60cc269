// tacit: the command-line tool. Each command is a file of commands/.
#include <CLI/CLI.hpp>

#include "app/assembly.h"
#include "app/commands/command.h"
#include "app/exit_code.h"

int main(int argc, char** argv) {
  CLI::App cli("tacit: logs, questions, ledgers and experiments around tacitd.");
  cli.require_subcommand(1);
  cli.set_version_flag("--version", tacit::app::CodeVersion());
  cli.footer("tacit COMMAND --help shows a command's options and examples.\n");
  tacit::app::Action action;
  tacit::app::AddGenerate(cli, &action);
  tacit::app::AddReplay(cli, &action);
  tacit::app::AddQuery(cli, &action);
  tacit::app::AddLedger(cli, &action);
  tacit::app::AddPrivacy(cli, &action);
  tacit::app::AddEvaluate(cli, &action);
  tacit::app::AddBench(cli, &action);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? tacit::app::kExitDone : tacit::app::kExitUsage;
  }
  const auto code = action();
  return code ? *code : tacit::app::Report("tacit", code.error());
}
