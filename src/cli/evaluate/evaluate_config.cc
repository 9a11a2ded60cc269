#include "cli/evaluate/evaluate_config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "console/exit_code.h"
#include "console/number_check.h"
#include "console/stop_signals.h"
#include "lab/configured_run.h"
#include "lab/passing_folder.h"

namespace tacit::cli {
namespace {

namespace fs = std::filesystem;

struct EvaluateConfigOptions {
  std::string config, store;
  std::vector<std::string> overrides;
  size_t held_out = 0;
  bool json = false;
};

Result<int> Evaluate(const EvaluateConfigOptions& options) {
  std::error_code error;
  if (!options.store.empty() && fs::exists(options.store, error))
    return BadUsage(
        fmt::format("--store {}: exists already; a run begins with a new store", options.store));
  TACIT_ASSIGN(config::Config config, config::Load(options.config, options.overrides));
  console::StopSignals signals;
  TACIT_ASSIGN(const lab::PassingFolder folder, lab::PassingFolder::Make());
  lab::ConfiguredRunOptions run_options;
  run_options.store = options.store.empty() ? folder.path() + "/store" : options.store;
  run_options.held_out = options.held_out;
  run_options.show_progress = isatty(STDERR_FILENO) == 1;
  run_options.stop = [&] { return signals.WaitFor(std::chrono::milliseconds(0)); };
  TACIT_ASSIGN(const lab::ConfiguredRun run, lab::RunConfigured(std::move(config), run_options));
  if (options.json)
    fmt::print("{}\n", boost::json::serialize(lab::ToJson(run)));
  else
    fmt::print("{}", run.tables);
  if (run.records_dead > 0)
    fmt::print(stderr, "tacit: {} of {} records could not be learnt from\n",
               WithThousands(run.records_dead), WithThousands(run.records));
  if (run.stopped) fmt::print(stderr, "tacit: stopped before the end of the files\n");
  return int{run.stopped ? console::kExitFailed : console::kExitDone};
}

}  // namespace

void AddEvaluateConfig(CLI::App& evaluate, Action* chosen) {
  auto options = std::make_shared<EvaluateConfigOptions>();
  auto* config = evaluate.add_option(
      "--config", options->config,
      "Run this configuration of tacitd over its files: learners, noise, commits and ledger are "
      "the daemon's, and so is the table");
  evaluate.add_option("--set", options->overrides, "Override a key of the configuration")
      ->allow_extra_args(false)
      ->needs(config);
  evaluate
      .add_option("--held-out", options->held_out,
                  "The last files, this many: predicted by what was learnt before them, and not "
                  "learnt from")
      ->needs(config)
      ->check(console::WholeFrom(1), "POSITIVE");
  evaluate
      .add_option("--store", options->store,
                  "Keep the run's store in this new folder, to be queried or served; default: a "
                  "folder in TMPDIR that is removed")
      ->needs(config);
  evaluate.add_flag("--json", options->json, "Print JSON")->needs(config);
  evaluate.footer(
      "Examples:\n  tacit evaluate --config config/recommend.yaml --held-out 2\n  tacit evaluate "
      "ctr --help");
  evaluate.callback([&evaluate, config, options, chosen] {
    if (!evaluate.get_subcommands().empty()) {
      if (config->count() > 0)
        throw CLI::ValidationError("--config", "goes behind the subcommand's name, or alone");
      return;
    }
    if (config->count() == 0) throw CLI::RequiredError("--config, or a subcommand");
    *chosen = [options] { return Evaluate(*options); };
  });
}

}  // namespace tacit::cli
