#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>

#include "app/assembly.h"
#include "app/commands/command.h"
#include "app/exit_code.h"
#include "app/progressive_run.h"
#include "base/text.h"

namespace tacit::app {
namespace {

namespace json = boost::json;

struct Options {
  std::string config;
  std::vector<std::string> data, overrides;
  uint32_t seeds = 1;
  uint64_t from = 0, to = 0;
  bool json = false;
};

struct Moments {
  double mean = 0, std = 0;  // sample deviation; 0 for a single seed

  explicit Moments(const std::vector<double>& values) {
    mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    if (values.size() > 1) std = std::sqrt(squares / static_cast<double>(values.size() - 1));
  }
  json::object Json() const { return {{"mean", mean}, {"std", std}}; }
};

// One learner over all seeds, as a row of the result.
Result<json::object> EvaluateLearner(const Assembly& assembly, size_t index,
                                     const Options& options) {
  const LearnerPlan& plan = assembly.learners[index];
  std::vector<double> auc, loss, rate;
  uint64_t events = 0, measured = 0, dead = 0, rows_written = 0, steps = 0;
  for (uint32_t seed = 0; seed < options.seeds; ++seed) {
    ProgressiveOptions run{
        .learner = index,
        .seed_offset = seed,
        .files = options.data,
        .measure_from = options.from,
        .measure_to = options.to == 0 ? std::numeric_limits<uint64_t>::max() : options.to,
        .progress = {}};
    if (isatty(STDERR_FILENO) == 1)
      run.progress = [&, seed](uint64_t n) {
        std::fprintf(stderr, "\r\033[K%s seed %u of %u: %s events", plan.options.id.c_str(),
                     seed + 1, options.seeds, WithThousands(n).c_str());
      };
    TACIT_ASSIGN(const ProgressiveResult result, RunProgressive(assembly, run));
    if (run.progress) std::fprintf(stderr, "\r\033[K");
    if (result.labels.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("no event of the data lies in the measured stretch: it has {} "
                              "usable events",
                              result.events));
    auc.push_back(result.Auc());
    loss.push_back(result.LogLoss());
    rate.push_back(static_cast<double>(result.events) / result.seconds);
    events = result.events;
    measured = result.labels.size();
    dead = result.dead_letters;
    rows_written = result.rows_written;
    steps = result.steps;
  }
  const bool is_private = std::isfinite(plan.promise.epsilon);
  return json::object{
      {"learner", plan.options.id},
      {"mechanism", privacy::Name(plan.charge.mechanism)},
      {"epsilon", is_private ? json::value(plan.promise.epsilon) : json::value(nullptr)},
      {"delta", plan.promise.delta},
      {"seeds", options.seeds},
      {"auc", Moments(auc).Json()},
      {"log_loss", Moments(loss).Json()},
      {"events", events},
      {"events_measured", measured},
      {"dead_letters", dead},
      {"rows_written_per_step",
       static_cast<double>(rows_written) / static_cast<double>(std::max<uint64_t>(1, steps))},
      {"events_per_second", Moments(rate).mean}};
}

void PrintTable(const json::array& rows) {
  fmt::print("{:<16} {:<12} {:>8} {:>18} {:>18} {:>10} {:>12}\n", "learner", "mechanism", "epsilon",
             "AUC", "log loss", "measured", "events/s");
  for (const json::value& value : rows) {
    const json::object& row = value.as_object();
    const auto moments = [&](const char* key) {
      const json::object& m = row.at(key).as_object();
      return fmt::format("{:.4f} ± {:.4f}", m.at("mean").as_double(), m.at("std").as_double());
    };
    const json::value& epsilon = row.at("epsilon");
    fmt::print(
        "{:<16} {:<12} {:>8} {:>18} {:>18} {:>10} {:>12}\n",
        std::string_view(row.at("learner").as_string()),
        std::string_view(row.at("mechanism").as_string()),
        epsilon.is_null() ? "-" : fmt::format("{:g}", epsilon.to_number<double>()), moments("auc"),
        moments("log_loss"), WithThousands(row.at("events_measured").to_number<uint64_t>()),
        WithThousands(static_cast<uint64_t>(row.at("events_per_second").to_number<double>())));
  }
}

Status CheckFiles(const std::vector<std::string>& files) {
  for (const std::string& file : files)
    if (!std::filesystem::exists(file))
      return Fail(ErrorCode::kNotFound, fmt::format("--data {}: no such file", file));
  return {};
}

Result<int> Evaluate(const Options& options) {
  if (options.to != 0 && options.to <= options.from)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--to {} must lie behind --from {}", options.to, options.from));
  TACIT_RETURN_IF_ERROR(CheckFiles(options.data));
  // The configuration's own log is not read: an experiment names its data.
  boost::json::array files(options.data.begin(), options.data.end());
  std::vector<std::string> overrides{"source.kind=log", "source.files=" + json::serialize(files)};
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  TACIT_ASSIGN(config::Config config, config::Load(options.config, overrides));
  TACIT_ASSIGN(const Assembly assembly, Assemble(std::move(config)));
  json::array rows;
  for (size_t i = 0; i < assembly.learners.size(); ++i) {
    TACIT_ASSIGN(json::object row, EvaluateLearner(assembly, i, options));
    rows.push_back(std::move(row));
  }
  if (options.json) {
    fmt::print("{}\n", json::serialize(json::object{{"rows", std::move(rows)}}));
  } else {
    PrintTable(rows);
  }
  return int{kExitDone};
}

}  // namespace

void AddEvaluate(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("evaluate", "Offline experiments");
  command->require_subcommand(1);
  auto options = std::make_shared<Options>();
  auto* ctr = command->add_subcommand(
      "ctr", "Progressive validation of click models: predict every event, then learn from it");
  ctr->add_option("--config", options->config, "Schema and learners; each learner is a row")
      ->required();
  ctr->add_option("--data", options->data, "Log files in order")->required();
  ctr->add_option("--from", options->from, "First event measured")
      ->default_val(0)
      ->check(CLI::NonNegativeNumber);
  ctr->add_option("--to", options->to, "Event behind the last measured; 0: the end")
      ->default_val(0)
      ->check(CLI::NonNegativeNumber);
  ctr->add_option("--seeds", options->seeds, "Runs per learner, each with its own initial values")
      ->default_val(1)
      ->check(CLI::Range(1, 1000));
  ctr->add_option("--set", options->overrides, "Override a key of the configuration");
  ctr->add_flag("--json", options->json, "Print JSON");
  ctr->footer(
      "Example:\n  tacit evaluate ctr --config config/criteo.yaml --data criteo.tsv.gz --from "
      "60000 --to 80000 --seeds 3");
  ctr->callback([options, chosen] { *chosen = [options] { return Evaluate(*options); }; });
}

}  // namespace tacit::app
