// tacitd: the daemon. Options and wiring only; the work is in daemon.cc.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/assembly.h"
#include "app/budget_check.h"
#include "app/daemon.h"
#include "app/exit_code.h"
#include "app/noise_plan.h"
#include "app/privacy_plan.h"
#include "base/log.h"
#include "base/text.h"

namespace {

constexpr char kExamples[] = R"(
Examples:
  tacitd --config config/demo.yaml --check-config     what would run, and what it promises
  tacitd --config config/demo.yaml                    train and serve until SIGTERM
  tacitd --config config/demo.yaml --until-end        train to the end of the log, print a table
  tacitd --config config/demo.yaml --standby          wait until the daemon on this store has ended
  tacitd --config config/demo.yaml --serve-only --checkpoint demo-data/store
  tacitd --config config/demo.yaml --set store.path=/tmp/other
Exit codes: 0 done (stopped by SIGTERM too), 1 failed (stopped before the end that --until-end asked
for too), 2 bad usage or config, 3 store refused, 4 budget exhausted)";

std::string InTheOpen(const std::string& place) {
  return place + ": a secret in the open; {file: PATH} or {credential: NAME} keeps it elsewhere";
}

// What --check-config prints: the whole configuration and what it comes to.
void PrintPlan(const tacit::app::Assembly& assembly) {
  fmt::print("{}\n# In numbers\n", tacit::config::Dump(assembly.config));
  for (const auto& plan : assembly.learners) {
    const auto& space = plan.options.model.space;
    const std::string size = plan.recommends()
                                 ? tacit::app::Counted(assembly.items->items(), "item")
                                 : fmt::format("{} in {}", tacit::app::Counted(space.rows(), "row"),
                                               tacit::app::Counted(space.tables().size(), "table"));
    fmt::print("# learner {}: epsilon {} at delta {} per {}; {}\n#   a step: {}\n", plan.options.id,
               plan.promise.epsilon, plan.promise.delta, tacit::privacy::Name(plan.promise.unit),
               size, tacit::app::ChargeText(plan.charge));
    if (plan.opening_charge)
      fmt::print("#   a period first, its histogram: {}\n",
                 tacit::app::ChargeText(*plan.opening_charge));
    fmt::print("#   rows a step: {}\n", tacit::app::RowsText(plan));
  }
  for (const std::string& problem : tacit::app::FirstStepsRefused(assembly))
    fmt::print("# WARNING: {}\n", problem);
  for (const std::string& place : tacit::config::SecretsInTheOpen(assembly.config))
    fmt::print("# WARNING: {}\n", InTheOpen(place));
  const auto& m = assembly.memory;
  constexpr double kMiB = 1 << 20;
  fmt::print(
      "# memory (MiB): row cache {:.0f} a learner, store {:.0f}, queues {:.0f}, model {:.0f}, "
      "unfolded commits {:.0f}\n",
      m.row_cache_bytes / kMiB, m.store_bytes / kMiB, m.queue_bytes / kMiB, m.model_bytes / kMiB,
      m.overlay_bytes / kMiB);
}

struct CommandLine {
  std::string config, checkpoint;
  std::vector<std::string> overrides;
  bool check = false, until_end = false, standby = false, serve_only = false;
  bool accept_missing_witness = false;
};

tacit::Result<int> Run(const CommandLine& line) {
  TACIT_ASSIGN(tacit::config::Config config, tacit::config::Load(line.config, line.overrides));
  tacit::InitLogging(
      config.log.format == "json" ? tacit::LogFormat::kJson : tacit::LogFormat::kText,
      config.log.level);
  auto assembled = tacit::app::Assemble(std::move(config));
  if (!assembled) return tacit::Fail(std::move(assembled.error()).Context(line.config));
  const tacit::app::Assembly& assembly = *assembled;
  if (line.check) {
    PrintPlan(assembly);
    return int{tacit::app::kExitDone};
  }
  for (const std::string& place : tacit::config::SecretsInTheOpen(assembly.config))
    spdlog::warn("{}", InTheOpen(place));
  if (line.serve_only) return tacit::app::ServeCheckpoint(assembly, line.checkpoint);
  return tacit::app::RunDaemon(assembly, {.until_end = line.until_end,
                                          .standby = line.standby,
                                          .accept_missing_witness = line.accept_missing_witness});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App cli("tacitd learns from an interaction stream with differential privacy and serves it.");
  cli.footer(kExamples);
  CommandLine line;
  cli.add_option("--config", line.config, "Configuration file (YAML)")->required();
  cli.add_option("--set", line.overrides, "Override a key: store.path=/x (repeatable)");
  cli.add_flag("--check-config", line.check, "Print the configuration and its plan, then exit");
  auto* until_end =
      cli.add_flag("--until-end", line.until_end,
                   "Exit when the source has ended (a topic: all that is there has been "
                   "read) and all is committed");
  auto* standby = cli.add_flag("--standby", line.standby,
                               "While another daemon has the store, wait; then take over");
  cli.add_flag("--accept-missing-witness", line.accept_missing_witness,
               "Open a store whose witness file is lost, once; only if no newer copy of it exists");
  auto* directory = cli.add_option("--checkpoint", line.checkpoint, "Directory to serve from");
  auto* serve_only =
      cli.add_flag("--serve-only", line.serve_only, "Serve a checkpoint, train nothing")
          ->needs(directory)
          ->excludes(until_end)
          ->excludes(standby);
  directory->needs(serve_only);  // alone it would be ignored, and the stream learnt from
  cli.set_version_flag("--version", tacit::app::CodeVersion());
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli.exit(error) == 0 ? tacit::app::kExitDone : tacit::app::kExitUsage;
  }
  const auto code = Run(line);
  return code ? *code : tacit::app::Report("tacitd", code.error());
}
