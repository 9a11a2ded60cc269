#include "cli/evaluate/evaluate_config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/text.h"
#include "console/exit_code.h"
#include "console/stop_signals.h"
#include "lab/configured_run.h"
#include "lab/passing_folder.h"

namespace tacit::cli {
namespace {

namespace fs = std::filesystem;

struct EvaluateConfigOptions {
  std::string config, store;
  std::vector<std::string> overrides;
  std::optional<std::string> held_out;
  bool without_privacy = false, json = false;
};

// "2" or "20%".
Result<lab::HeldOut> HeldOutOf(const std::string& text) {
  lab::HeldOut held_out;
  std::string_view number = text;
  const bool percent = number.ends_with('%');
  if (percent) number.remove_suffix(1);
  const char* const end = number.data() + number.size();
  const auto read =
      percent ? std::from_chars(number.data(), end, held_out.percent, std::chars_format::fixed)
              : std::from_chars(number.data(), end, held_out.files);
  const bool allowed =
      percent ? held_out.percent > 0 && held_out.percent < 100 : held_out.files > 0;
  if (read.ec != std::errc() || read.ptr != end || !allowed)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--held-out: '{}' is neither a number of files nor a share of the "
                            "records as 20%",
                            Printable(text)));
  return held_out;
}

Result<int> Evaluate(const EvaluateConfigOptions& options) {
  lab::HeldOut held_out;
  if (options.held_out) {
    TACIT_ASSIGN(held_out, HeldOutOf(*options.held_out));
  }
  std::error_code error;
  if (!options.store.empty() && fs::exists(options.store, error))
    return BadUsage(
        fmt::format("--store {}: exists already; a run begins with a new store", options.store));
  TACIT_ASSIGN(config::Config config, config::Load(options.config, options.overrides));
  console::StopSignals signals;
  TACIT_ASSIGN(const lab::PassingFolder folder, lab::PassingFolder::Make());
  lab::ConfiguredRunOptions run_options;
  run_options.store = options.store.empty() ? folder.path() + "/store" : options.store;
  run_options.held_out = held_out;
  run_options.without_privacy = options.without_privacy;
  run_options.show_progress = isatty(STDERR_FILENO) == 1;
  run_options.stop = [&] { return signals.WaitFor(std::chrono::milliseconds(0)); };
  TACIT_ASSIGN(const lab::ConfiguredRun run, lab::RunConfigured(std::move(config), run_options));
  if (options.json)
    fmt::print("{}\n", boost::json::serialize(lab::ToJson(run)));
  else
    fmt::print("{}", run.tables);
  if (run.records_dead > 0)
    fmt::print(stderr, "tacit: {} of {} could not be learnt from\n",
               WithThousands(run.records_dead), Counted(run.records, "record"));
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
      .add_option_function<std::string>(
          "--held-out", [options](const std::string& text) { options->held_out = text; },
          "N: the last N files, or N%: the last N per cent of all records, which are "
          "predicted by what was learnt before them, and not learnt from")
      ->needs(config);
  evaluate
      .add_option("--store", options->store,
                  "Keep the run's store in this new folder, to be queried or served; default: a "
                  "folder in TMPDIR that is removed")
      ->needs(config);
  evaluate
      .add_flag("--without-privacy", options->without_privacy,
                "Learn a second time without noise, with the periods, constants and rows of each "
                "epsilon, and set the figures side by side; that model is not kept")
      ->needs(config);
  evaluate.add_flag("--json", options->json, "Print JSON")->needs(config);
  evaluate.footer(
      "Examples:\n  tacit evaluate --config config/recommend.yaml --held-out 2\n  tacit evaluate "
      "--config tacitd.yaml --held-out 20%\n  tacit evaluate ctr --help");
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
