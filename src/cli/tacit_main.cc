// tacit: the command-line tool. Each command has a file of its own in this folder.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "console/exit_code.h"
#include "console/output_file.h"
#include "console/standard_streams.h"
#include "console/version_text.h"
#include "cuda/bench/gpu_bench.h"
#include "wiring/assembly.h"
#include "wiring/code_version.h"
#include "wiring/file_plan.h"

namespace {

// Ends `tacit help`, and a first word that is no command, which CLI11 would only answer with "A
// subcommand is required".
std::optional<int> EndWithoutCommand(const CLI::App& cli, std::string_view word) {
  if (word.empty() || word.starts_with("-")) return std::nullopt;
  std::vector<std::string> names;
  for (const CLI::App* command : cli.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::ranges::find(names, word) != names.end()) return std::nullopt;
  if (word == "help") {
    fmt::print("{}", cli.help());
    return tacit::console::kExitDone;
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  fmt::print(stderr, "tacit: '{}' is no command{}; tacit --help lists them\n", word,
             tacit::DidYouMean(word, views));
  return tacit::console::kExitUsage;
}

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
  tacit::cli::AddGenerate(cli, &action);
  tacit::cli::AddReplay(cli, &action);
  tacit::cli::AddInspect(cli, &action);
  tacit::cli::AddQuery(cli, &action);
  tacit::cli::AddWeights(cli, &action);
  tacit::cli::AddLedger(cli, &action);
  tacit::cli::AddCheckpoint(cli, &action);
  tacit::cli::AddFeed(cli, &action);
  tacit::cli::AddUser(cli, &action);
  tacit::cli::AddVersions(cli, &action);
  tacit::cli::AddToken(cli, &action);
  tacit::cli::AddStore(cli, &action);
  tacit::cli::AddPrivacy(cli, &action);
  tacit::cli::AddEvaluate(cli, &action);
  tacit::cli::AddAudit(cli, &action);
  tacit::cli::AddBench(cli, tacit::cuda::GpuBenches(), &action);
  if (const auto code = EndWithoutCommand(cli, argc > 1 ? argv[1] : "")) return *code;
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? tacit::console::kExitDone : tacit::console::kExitUsage;
  }
  tacit::wiring::RaiseFileLimit();
  const auto code = action();
  return code ? *code : tacit::console::Report("tacit", code.error());
}

}  // namespace

int main(int argc, char** argv) {
  tacit::console::HoldStandardStreams();
  return tacit::console::RunWithOutput("tacit", [&] { return Run(argc, argv); });
}
