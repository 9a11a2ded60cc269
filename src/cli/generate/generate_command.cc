#include <fmt/format.h>

#include <atomic>
#include <boost/json.hpp>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/auc.h"
#include "base/text.h"
#include "base/threads/mutex.h"
#include "cli/generate/interactions.h"
#include "cli/generate/log_writer.h"
#include "cli/parts/command.h"
#include "console/atomic_file.h"
#include "console/exit_code.h"
#include "console/number_check.h"
#include "stream/generator/criteo_generator.h"
#include "wiring/plans/ground_truth.h"

namespace tacit::cli {
namespace {

struct GenerateOptions {
  uint32_t days = 24;
  uint64_t rows = 150000;
  uint64_t seed = 1;
  double churn = 0;
  std::string out;
  bool published_names = false, plain = false, json = false;
};

std::string DayName(uint32_t day, const GenerateOptions& options) {
  const std::string_view gz = options.plain ? "" : ".gz";
  if (options.published_names) return fmt::format("day_{}{}", day, gz);
  return fmt::format("day-{:02}.tsv{}", day, gz);
}

// The labels of generated lines: the first character of each.
void AppendLabels(std::string_view lines, std::vector<float>* labels) {
  size_t begin = 0;
  while (begin < lines.size()) {
    labels->push_back(lines[begin] == '1' ? 1.0f : 0.0f);
    begin = lines.find('\n', begin) + 1;
  }
}

// Writes one day and returns the AUC of a model that knows the truth.
Result<double> WriteDay(const stream::CriteoGenerator& generator, const GenerateOptions& options,
                        uint32_t day, std::atomic<uint64_t>* rows_done) {
  const std::filesystem::path path = std::filesystem::path(options.out) / DayName(day, options);
  TACIT_ASSIGN(const auto file, LogWriter::Create(path.string(), options.plain));
  std::string lines;
  std::vector<float> truth, labels;
  for (uint64_t row = 0; row < options.rows; row += kChunkRows) {
    const uint64_t n = std::min(kChunkRows, options.rows - row);
    lines.clear();
    generator.Generate(day, row, n, &lines, &truth);
    AppendLabels(lines, &labels);
    TACIT_RETURN_IF_ERROR(file->Write(lines));
    *rows_done += n;
  }
  TACIT_RETURN_IF_ERROR(file->Close());
  return ExactAuc(truth, labels);
}

// Distributes the days over the machine's cores; shows progress on standard error.
Result<std::vector<double>> WriteDays(const GenerateOptions& options) {
  const stream::CriteoGenerator generator({.days = options.days,
                                           .rows_per_day = options.rows,
                                           .seed = options.seed,
                                           .churn = options.churn});
  std::vector<double> best(options.days);
  std::atomic<uint32_t> next_day = 0;
  std::atomic<uint64_t> rows_done = 0;
  Mutex mutex;
  Status status;
  const auto work = [&] {
    for (uint32_t day = next_day++; day < options.days; day = next_day++) {
      auto auc = WriteDay(generator, options, day, &rows_done);
      const MutexLock lock(mutex);
      if (!auc) {
        status = Fail(std::move(auc.error()));
        next_day = options.days;
        return;
      }
      best[day] = *auc;
      std::fprintf(stderr, "wrote %s; %s of all %s rows are done\n", DayName(day, options).c_str(),
                   WithThousands(rows_done).c_str(),
                   WithThousands(options.days * options.rows).c_str());
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  if (!status) return Fail(std::move(status.error()));
  return best;
}

Result<int> Generate(const GenerateOptions& options) {
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error)
    return Fail(ErrorCode::kIo, fmt::format("cannot create {}: {}", options.out, error.message()));
  TACIT_ASSIGN(const std::vector<double> best, WriteDays(options));
  boost::json::object by_file;
  double sum = 0;
  for (uint32_t day = 0; day < options.days; ++day) {
    by_file[DayName(day, options)] = best[day];
    sum += best[day];
  }
  const boost::json::object truth{{"seed", options.seed},
                                  {"rows_per_day", options.rows},
                                  {"churn", options.churn},
                                  {"best_auc", std::move(by_file)}};
  TACIT_RETURN_IF_ERROR(
      console::WriteAtomically(std::filesystem::path(options.out) / wiring::kGroundTruthFile,
                               boost::json::serialize(truth) + "\n"));
  if (options.json) {
    fmt::print("{}\n", boost::json::serialize(truth));
  } else {
    fmt::print("{} days of {} events in {}; who knows the truth ranks them with AUC {:.4f}\n",
               options.days, WithThousands(options.rows), options.out,
               sum / std::max(1u, options.days));
  }
  return int{console::kExitDone};
}

}  // namespace

void AddGenerate(CLI::App& cli, Action* chosen) {
  auto* command = cli.add_subcommand("generate", "Make a log whose truth is known");
  command->require_subcommand(1);
  auto options = std::make_shared<GenerateOptions>();
  auto* criteo = command->add_subcommand(
      "criteo", "Click log in Criteo's format with the published vocabulary sizes, drifting");
  criteo->add_option("--days", options->days, "Files to write, one a day")
      ->default_val(24)
      ->check(CLI::Range(1, 1000));
  criteo->add_option("--rows", options->rows, "Events a day")
      ->default_val(150000)
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  criteo->add_option("--seed", options->seed, "The same seed gives the same bytes")
      ->default_val(1)
      ->check(console::WholeFrom(0));
  criteo
      ->add_option("--churn", options->churn,
                   "Share of the values that are there for four days only, like campaigns; the "
                   "vocabularies' sizes are then those of all days together")
      ->default_val(0)
      ->check(NumberFrom(0.0, 1.0));
  criteo->add_option("--out,--output", options->out, "Folder for day-00.tsv.gz, ...")->required();
  criteo->add_flag("--published-names", options->published_names,
                   "Name the files day_0.gz, day_1.gz, ..., as Criteo's own 24 days are");
  criteo->add_flag("--plain", options->plain, "Do not compress");
  criteo->add_flag("--json", options->json, "Print JSON");
  criteo->footer(
      "Example:\n  tacit generate criteo --days 24 --rows 150000 --seed 1 --out demo-data/log");
  criteo->callback([options, chosen] { *chosen = [options] { return Generate(*options); }; });
  AddGenerateInteractions(*command, chosen);
}

}  // namespace tacit::cli
