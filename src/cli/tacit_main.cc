// tacit: the command-line tool. Each command has a file of its own in this folder.
#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "console/exit_code.h"
#include "wiring/assembly.h"
#include "wiring/code_version.h"
#include "wiring/file_plan.h"

int main(int argc, char** argv) {
  CLI::App cli("tacit: logs, questions, ledgers and experiments around tacitd.");
  cli.require_subcommand(1);
  cli.set_version_flag("--version", tacit::wiring::CodeVersion());
  cli.footer("tacit COMMAND --help shows a command's options and examples.\n");
  tacit::cli::Action action;
  tacit::cli::AddGenerate(cli, &action);
  tacit::cli::AddReplay(cli, &action);
  tacit::cli::AddQuery(cli, &action);
  tacit::cli::AddWeights(cli, &action);
  tacit::cli::AddLedger(cli, &action);
  tacit::cli::AddCheckpoint(cli, &action);
  tacit::cli::AddStore(cli, &action);
  tacit::cli::AddPrivacy(cli, &action);
  tacit::cli::AddEvaluate(cli, &action);
  tacit::cli::AddBench(cli, &action);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? tacit::console::kExitDone : tacit::console::kExitUsage;
  }
  tacit::wiring::RaiseFileLimit();
  const auto code = action();
  return code ? *code : tacit::console::Report("tacit", code.error());
}
