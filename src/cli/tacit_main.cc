// tacit: the command-line tool. Each command has a file of its own in this folder.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>

#include "cli/command_line.h"
#include "console/exit_code.h"
#include "console/output_file.h"
#include "console/shortage.h"
#include "console/standard_streams.h"
#include "console/version_text.h"
#include "cuda/bench/gpu_bench.h"
#include "wiring/plans/code_version.h"
#include "wiring/plans/file_plan.h"

namespace {

int Run(int argc, char** argv) {
  tacit::console::KeepOthersOut();  // from histories and keys, where a command writes to a store
  // Standard output is for answers alone: with --json it is one document.
  spdlog::set_default_logger(spdlog::stderr_logger_mt("tacit"));
  CLI::App cli("tacit: logs, questions, ledgers and experiments around tacitd.");
  cli.require_subcommand(1);
  cli.set_version_flag("--version", [] {
    return tacit::console::VersionText(tacit::wiring::CodeVersion(), tacit::console::ThisBuild());
  });
  cli.footer("tacit COMMAND --help shows a command's options and examples.\n");
  tacit::cli::Action action;
  tacit::cli::AddCommands(cli, tacit::cuda::GpuBenches(), &action);
  if (const auto code = tacit::cli::ReadWords(cli, argc, argv)) return *code;
  tacit::wiring::RaiseFileLimit();
  const auto code = action();
  return code ? *code : tacit::console::Report("tacit", code.error());
}

}  // namespace

int main(int argc, char** argv) {
  tacit::console::EndOnShortage();
  tacit::console::HoldStandardStreams();
  return tacit::console::RunWithOutput("tacit", [&] { return Run(argc, argv); });
}
