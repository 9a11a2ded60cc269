#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "base/words.h"
#include "cli/evaluate/evaluate_config.h"
#include "cli/evaluate/evaluate_sequence.h"
#include "cli/parts/command.h"
#include "console/exit_code.h"
#include "console/number_check.h"
#include "console/output_file.h"
#include "lab/clicks/experiment.h"
#include "lab/clicks/figure.h"
#include "wiring/plans/codec.h"

namespace tacit::cli {
namespace {

namespace json = boost::json;

struct EvaluateClicksOptions {
  lab::GridOptions grid;
  std::vector<std::string> data, axes;
  uint32_t seeds = 1, jobs = 1, bootstrap = 0;
  uint64_t from = 0, to = 0, train_to = 0;
  size_t train_files = 0;
  std::string results, markdown, svg, reference;
  bool json = false;
};

Status CheckOptions(const EvaluateClicksOptions& options) {
  if (options.to != 0 && options.to <= options.from)
    return BadUsage(
        fmt::format("--to {} must be greater than --from {}", options.to, options.from));
  if (options.train_to != 0 && options.train_files != 0)
    return BadUsage("--train-to and --train-files say the same thing; use one of them");
  if (options.train_files > options.data.size())
    return BadUsage(fmt::format("--train-files {}: there {} {}", options.train_files,
                                WordFor(options.data.size(), "is", "are"),
                                Counted(options.data.size(), "file")));
  for (const std::string& file : options.data)
    if (std::error_code error; !std::filesystem::exists(file, error))
      return Fail(ErrorCode::kNotFound,
                  fmt::format("--data {}: {}", file, error ? error.message() : "no such file"));
  TACIT_RETURN_IF_ERROR(console::CheckAppendable("--results", options.results));
  TACIT_RETURN_IF_ERROR(console::CheckWritable("--markdown", options.markdown));
  return console::CheckWritable("--svg", options.svg);
}

// The records to learn from and to measure, once the log is known.
Result<lab::ExperimentOptions> MakeExperiment(const EvaluateClicksOptions& options,
                                              const lab::EventLog& log, uint32_t workers) {
  lab::ExperimentOptions experiment{.seeds = options.seeds,
                                    .jobs = options.jobs,
                                    .workers = options.jobs > 1 ? 1 : workers,
                                    .measure_from = options.from,
                                    .reference = options.reference,
                                    .show_progress = isatty(STDERR_FILENO) == 1};
  if (options.to != 0) experiment.measure_to = options.to;
  if (options.train_to != 0) experiment.train_to = options.train_to;
  if (options.train_files != 0) experiment.train_to = log.file_ends()[options.train_files - 1];
  if (experiment.train_to == std::numeric_limits<uint64_t>::max()) return experiment;
  if (experiment.train_to >= log.records())
    return BadUsage(fmt::format("nothing is left to predict after the {} learnt from",
                                Counted(experiment.train_to, "record")));
  experiment.measure_from = std::max(experiment.measure_from, experiment.train_to);
  if (experiment.measure_to <= experiment.measure_from)
    return BadUsage(fmt::format("--to {} must be greater than the {} learnt from", options.to,
                                Counted(experiment.train_to, "record")));
  return experiment;
}

std::string Figure(const std::vector<lab::ReportRow>& rows, const std::string& name) {
  std::vector<lab::FigurePoint> points;
  for (const lab::ReportRow& row : rows) {
    // A learner without privacy has no noise, so its gradient is not made smaller.
    if (!row.refusal.empty() || !std::isfinite(row.epsilon)) continue;
    const lab::ReportRow* reference = lab::ReferenceOf(rows, row, name);
    const double base = reference == nullptr ? row.auc.mean : reference->auc.mean;
    points.push_back({.series = row.mechanism,
                      .label = fmt::format("{}: AUC {:.4f}, {:.4g} times smaller", row.Label(),
                                           row.auc.mean, row.gradient_size_reduction),
                      .epsilon = row.epsilon,
                      .reduction = row.gradient_size_reduction,
                      .difference = row.auc.mean - base,
                      .error = row.auc.std.value_or(0)});
  }
  return lab::DrawFigure(points,
                         {.title = "Utility against gradient size",
                          .y_axis = "AUC, difference to " + lab::ReferenceNames(rows, name)});
}

Status Compare(const EvaluateClicksOptions& options, const lab::EventLog& log,
               const lab::ExperimentOptions& experiment, const lab::Results& results,
               std::vector<lab::ReportRow>* rows) {
  if (options.bootstrap == 0) return {};
  TACIT_ASSIGN(const std::vector<float> labels, lab::MeasuredLabels(log, experiment));
  return lab::CompareRows(results, labels, options.bootstrap, options.reference, rows);
}

// Prints the table first: hours of work are not lost to a file that cannot be written.
Status Show(const EvaluateClicksOptions& options, const std::vector<lab::ReportRow>& rows,
            uint64_t dead_letters) {
  if (options.json)
    fmt::print("{}\n", json::serialize(lab::ToJson(rows, options.seeds, dead_letters)));
  else
    fmt::print("{}", lab::TextTable(rows));
  std::fflush(stdout);
  TACIT_RETURN_IF_ERROR(console::WriteFile(options.markdown, lab::MarkdownTable(rows)));
  if (options.svg.empty()) return {};
  return console::WriteFile(options.svg, Figure(rows, options.reference));
}

Result<int> Evaluate(const EvaluateClicksOptions& options) {
  TACIT_RETURN_IF_ERROR(CheckOptions(options));
  lab::GridOptions grid = options.grid;
  for (const std::string& text : options.axes) {
    TACIT_ASSIGN(lab::GridAxis axis, lab::ParseGridAxis(text));
    grid.axes.push_back(std::move(axis));
  }
  TACIT_RETURN_IF_ERROR(lab::CheckAxes(grid.axes));
  // The configuration's own log is not read: an experiment names its data.
  const json::array files(options.data.begin(), options.data.end());
  grid.overrides.insert(grid.overrides.begin(),
                        {"source.kind=log", "source.files=" + json::serialize(files)});
  TACIT_ASSIGN(config::Config base, config::Load(grid.config, grid.overrides));
  if (base.source.weighs())
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: its records have weights (source.{}.weight), and an experiment "
                    "counts each alike; `tacit evaluate --config` learns as the daemon does",
                    grid.config, base.source.format_traits().name));
  TACIT_ASSIGN(event::FeatureSchema schema, wiring::PlanReading(&base.source, base.features));
  const event::FeatureTransform transform(std::move(schema));
  TACIT_ASSIGN(const auto log,
               lab::EventLog::Open(base.source, transform, base.memory_total_bytes / 2));
  if (log->dead_letters() > 0)
    fmt::print(stderr, "tacit: warning: {} of {} records could not be read, the first at {}\n",
               WithThousands(log->dead_letters()), WithThousands(log->records()),
               log->first_dead_letter());
  TACIT_ASSIGN(const lab::ExperimentOptions experiment,
               MakeExperiment(options, *log, base.training.workers));
  TACIT_ASSIGN(std::vector<lab::GridPoint> points, lab::MakeGrid(grid, *log, experiment.train_to));
  for (const std::string& warning : lab::BatchWarnings(points, *log, experiment.train_to))
    fmt::print(stderr, "tacit: warning: {}\n", warning);
  TACIT_ASSIGN(const auto results, lab::Results::Open(options.results, options.bootstrap > 0));
  TACIT_ASSIGN(std::vector<lab::ReportRow> rows,
               lab::RunExperiment(std::move(points), *log, experiment, results.get()));
  // If every learner is refused, the command line is wrong; if only some are, they are lines of the
  // table.
  if (std::ranges::none_of(rows, [](const lab::ReportRow& row) { return row.refusal.empty(); }))
    return BadUsage(rows[0].refusal);
  Status compared = Compare(options, *log, experiment, *results, &rows);
  TACIT_RETURN_IF_ERROR(Show(options, rows, log->dead_letters()));
  TACIT_RETURN_IF_ERROR(std::move(compared));
  return int{console::kExitDone};
}

void AddGridOptions(CLI::App& ctr, EvaluateClicksOptions& options) {
  ctr.add_option("--learner", options.grid.learners, "Only these learners, by id");
  ctr.add_option("--set", options.grid.overrides, "Override a key of the configuration")
      ->allow_extra_args(false);
  ctr.add_option(
      "--grid", options.axes,
      "KEY=VALUE,VALUE,...: a key of the learners and the values it takes; repeat it for "
      "the cross product. participation.epochs sets sampling_rate and steps_per_period "
      "for the batch and the log's largest period");
  ctr.add_option("--seeds", options.seeds, "Runs per point, each with its own initial values")
      ->default_val(1)
      ->check(CLI::Range(1, 1000));
  ctr.add_option("--jobs", options.jobs, "Runs at a time, each on one thread if above 1")
      ->default_val(1)
      ->check(CLI::Range(1, 256));
}

void AddMeasureOptions(CLI::App& ctr, EvaluateClicksOptions& options) {
  ctr.add_option("--from", options.from, "First record measured")
      ->default_val(0)
      ->check(console::WholeFrom(0));
  ctr.add_option("--to", options.to, "Record after the last measured; 0: the end")
      ->default_val(0)
      ->check(console::WholeFrom(0));
  ctr.add_option(
         "--train-to", options.train_to,
         "Number of records to learn from; the rest is predicted with the model as it is then")
      ->check(console::WholeFrom(1), "POSITIVE");
  ctr.add_option("--train-files", options.train_files, "The same, as a number of files")
      ->check(console::WholeFrom(1), "POSITIVE");
}

void AddOutputOptions(CLI::App& ctr, EvaluateClicksOptions& options) {
  ctr.add_option("--results", options.results,
                 "Keep each finished run here (JSON lines); what is there is not run again");
  ctr.add_option("--bootstrap", options.bootstrap,
                 "Number of resamples of the events: AUC differences with their middle 95 %")
      ->check(CLI::Range(20, 1'000'000));
  ctr.add_option("--reference", options.reference,
                 "Learner or mechanism that differences are to; default: dp-sgd with embeddings, "
                 "else the best");
  ctr.add_option("--markdown", options.markdown, "Write the table to this file");
  ctr.add_option("--svg", options.svg, "Write utility against gradient size to this file");
  ctr.add_flag("--json", options.json, "Print JSON");
}

}  // namespace

void AddEvaluate(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("evaluate", "Offline experiments");
  command->require_subcommand(0, 1);
  AddEvaluateConfig(*command, chosen);
  auto options = std::make_shared<EvaluateClicksOptions>();
  auto* ctr = command->add_subcommand(
      "ctr", "Progressive validation of click models: predict every event, then learn from it");
  ctr->add_option("--config", options->grid.config, "Schema and learners; each learner is a row")
      ->required();
  ctr->add_option("--data", options->data, "Log files in order")->required();
  AddMeasureOptions(*ctr, *options);
  AddGridOptions(*ctr, *options);
  AddOutputOptions(*ctr, *options);
  ctr->footer(
      "Examples:\n  tacit evaluate ctr --config config/criteo.yaml --data criteo.tsv.gz --from "
      "60000 --to 80000 --seeds 3\n  tacit evaluate ctr --config config/sparse.yaml --data "
      "day-*.tsv.gz --train-files 18 --grid privacy.epsilon=1,3,8 --grid "
      "mechanism.threshold=5,10,inf --jobs 2 --results runs.jsonl --bootstrap 1000 --svg "
      "figure.svg");
  ctr->callback([options, chosen] { *chosen = [options] { return Evaluate(*options); }; });
  AddEvaluateSequence(*command, chosen);
}

}  // namespace tacit::cli
