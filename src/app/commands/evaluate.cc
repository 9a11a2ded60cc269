#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <memory>

#include "app/commands/command.h"
#include "app/commands/evaluate_sequence.h"
#include "app/commands/output_file.h"
#include "app/evaluate/experiment.h"
#include "app/evaluate/figure.h"
#include "app/exit_code.h"
#include "app/vocabulary_file.h"

namespace tacit::app {
namespace {

namespace json = boost::json;

struct Options {
  GridOptions grid;
  std::vector<std::string> data, axes;
  uint32_t seeds = 1, jobs = 1, bootstrap = 0;
  uint64_t from = 0, to = 0, train_to = 0;
  size_t train_files = 0;
  std::string results, markdown, svg, reference;
  bool json = false;
};

tl::unexpected<Error> BadUsage(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

Status CheckOptions(const Options& options) {
  if (options.to != 0 && options.to <= options.from)
    return BadUsage(fmt::format("--to {} must lie behind --from {}", options.to, options.from));
  if (options.train_to != 0 && options.train_files != 0)
    return BadUsage("--train-to and --train-files say the same thing; use one of them");
  if (options.train_files > options.data.size())
    return BadUsage(fmt::format("--train-files {}: there are {} files", options.train_files,
                                options.data.size()));
  for (const std::string& file : options.data)
    if (!std::filesystem::exists(file))
      return Fail(ErrorCode::kNotFound, fmt::format("--data {}: no such file", file));
  TACIT_RETURN_IF_ERROR(CheckWritable("--results", options.results));
  TACIT_RETURN_IF_ERROR(CheckWritable("--markdown", options.markdown));
  return CheckWritable("--svg", options.svg);
}

// What is learnt from and what is measured, once the log is known.
Result<ExperimentOptions> MakeExperiment(const Options& options, const EventLog& log,
                                         uint32_t workers) {
  ExperimentOptions experiment{.seeds = options.seeds,
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
    return BadUsage(fmt::format("nothing is left to predict behind the {} records learnt from",
                                experiment.train_to));
  experiment.measure_from = std::max(experiment.measure_from, experiment.train_to);
  if (experiment.measure_to <= experiment.measure_from)
    return BadUsage(fmt::format("--to {} must lie behind the {} records learnt from", options.to,
                                experiment.train_to));
  return experiment;
}

std::string Figure(const std::vector<ReportRow>& rows, const std::string& name) {
  std::vector<FigurePoint> points;
  for (const ReportRow& row : rows) {
    // Without privacy there is no gradient to make smaller for its sake.
    if (!row.refusal.empty() || !std::isfinite(row.epsilon)) continue;
    const ReportRow* reference = ReferenceOf(rows, row, name);
    const double base = reference == nullptr ? row.auc.mean : reference->auc.mean;
    points.push_back({.series = row.mechanism,
                      .label = fmt::format("{}: AUC {:.4f}, {:.4g} times smaller", row.Label(),
                                           row.auc.mean, row.gradient_size_reduction),
                      .epsilon = row.epsilon,
                      .reduction = row.gradient_size_reduction,
                      .difference = row.auc.mean - base,
                      .error = row.auc.std.value_or(0)});
  }
  return DrawFigure(points, {.title = "Utility against gradient size",
                             .y_axis = "AUC, difference to " + ReferenceNames(rows, name)});
}

Status Compare(const Options& options, const EventLog& log, const ExperimentOptions& experiment,
               const Results& results, std::vector<ReportRow>* rows) {
  if (options.bootstrap == 0) return {};
  TACIT_ASSIGN(const std::vector<float> labels, MeasuredLabels(log, experiment));
  return CompareRows(results, labels, options.bootstrap, options.reference, rows);
}

// The table first: what took hours is not lost to a file that cannot be written.
Status Show(const Options& options, const std::vector<ReportRow>& rows, uint64_t dead_letters) {
  if (options.json)
    fmt::print("{}\n", json::serialize(ToJson(rows, options.seeds, dead_letters)));
  else
    fmt::print("{}", TextTable(rows));
  std::fflush(stdout);
  TACIT_RETURN_IF_ERROR(WriteFile(options.markdown, MarkdownTable(rows)));
  if (options.svg.empty()) return {};
  return WriteFile(options.svg, Figure(rows, options.reference));
}

Result<int> Evaluate(const Options& options) {
  TACIT_RETURN_IF_ERROR(CheckOptions(options));
  GridOptions grid = options.grid;
  for (const std::string& text : options.axes) {
    TACIT_ASSIGN(GridAxis axis, ParseGridAxis(text));
    grid.axes.push_back(std::move(axis));
  }
  TACIT_RETURN_IF_ERROR(CheckAxes(grid.axes));
  // The configuration's own log is not read: an experiment names its data.
  const json::array files(options.data.begin(), options.data.end());
  grid.overrides.insert(grid.overrides.begin(),
                        {"source.kind=log", "source.files=" + json::serialize(files)});
  TACIT_ASSIGN(const config::Config base, config::Load(grid.config, grid.overrides));
  const event::FeatureSchema schema = MakeSchema(base.features);
  TACIT_RETURN_IF_ERROR(schema.Validate());
  const event::FeatureTransform transform(schema);
  TACIT_ASSIGN(const auto log, EventLog::Open(base.source, transform, base.memory_total_bytes / 2));
  TACIT_ASSIGN(const ExperimentOptions experiment,
               MakeExperiment(options, *log, base.training.workers));
  TACIT_ASSIGN(std::vector<GridPoint> points, MakeGrid(grid, *log, experiment.train_to));
  for (const std::string& warning : BatchWarnings(points, *log, experiment.train_to))
    fmt::print(stderr, "tacit: warning: {}\n", warning);
  TACIT_ASSIGN(const auto results, Results::Open(options.results, options.bootstrap > 0));
  TACIT_ASSIGN(std::vector<ReportRow> rows,
               RunExperiment(std::move(points), *log, experiment, results.get()));
  // A single learner that is refused is a mistake; among others it is a line of the table.
  if (std::ranges::none_of(rows, [](const ReportRow& row) { return row.refusal.empty(); }))
    return BadUsage(rows[0].refusal);
  Status compared = Compare(options, *log, experiment, *results, &rows);
  TACIT_RETURN_IF_ERROR(Show(options, rows, log->dead_letters()));
  TACIT_RETURN_IF_ERROR(std::move(compared));
  return int{kExitDone};
}

void AddGridOptions(CLI::App& ctr, Options& options) {
  ctr.add_option("--learner", options.grid.learners, "Only these learners, by id");
  ctr.add_option("--set", options.grid.overrides, "Override a key of the configuration");
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

void AddMeasureOptions(CLI::App& ctr, Options& options) {
  ctr.add_option("--from", options.from, "First record measured")
      ->default_val(0)
      ->check(CLI::NonNegativeNumber);
  ctr.add_option("--to", options.to, "Record behind the last measured; 0: the end")
      ->default_val(0)
      ->check(CLI::NonNegativeNumber);
  ctr.add_option("--train-to", options.train_to,
                 "Learn from so many records; the rest is predicted with the model left as it is")
      ->check(CLI::PositiveNumber);
  ctr.add_option("--train-files", options.train_files, "The same, as a number of files")
      ->check(CLI::PositiveNumber);
}

void AddOutputOptions(CLI::App& ctr, Options& options) {
  ctr.add_option("--results", options.results,
                 "Keep each finished run here (JSON lines); what is there is not run again");
  ctr.add_option("--bootstrap", options.bootstrap,
                 "So many resamples of the events: AUC differences with their middle 95 %")
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
  command->require_subcommand(1);
  auto options = std::make_shared<Options>();
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

}  // namespace tacit::app
