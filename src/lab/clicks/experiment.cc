#include "lab/clicks/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "lab/runs.h"
#include "wiring/assembly.h"
#include "wiring/plans/vocabulary_file.h"

namespace tacit::lab {
namespace {

constexpr uint64_t kResampleSeed = 0x7461636974;

// A run still to be made.
struct Task {
  const wiring::Assembly* assembly;
  const GridPoint* point;
  uint64_t seed;
  std::string id;
};

RunRecord MakeRecord(const Task& task, const RunResult& result) {
  const auto steps = static_cast<double>(std::max<uint64_t>(1, result.steps));
  return {.id = task.id,
          .learner = task.point->learner,
          .mechanism = std::string(privacy::Name(task.assembly->learners[0].charge.mechanism)),
          .settings = task.point->settings,
          .seed = task.seed,
          .auc = result.Auc(),
          .log_loss = result.LogLoss(),
          .epsilon_spent = result.epsilon_spent,
          .rows_per_step = static_cast<double>(result.rows_written) / steps,
          .row_floats_per_step = static_cast<double>(result.row_floats_written) / steps,
          .steps = result.steps,
          .events = result.events,
          .events_measured = result.labels.size(),
          .seconds = result.seconds};
}

Status MakeRun(const Task& task, const EventLog& log, const ExperimentOptions& options,
               const TellShare& tell, Results* results) {
  const RunOptions run{.learner = 0,
                       .seed_offset = task.seed,
                       .workers = options.workers,
                       .train_to = options.train_to,
                       .measure_from = options.measure_from,
                       .measure_to = options.measure_to,
                       .progress = tell};
  TACIT_ASSIGN(RunResult result, RunLearner(*task.assembly, log, run));
  if (result.labels.empty())
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("no event of the data lies in the measured stretch: it has {} usable "
                    "events{}",
                    log.records() - log.dead_letters(),
                    log.dead_letters() == 0 ? ""
                                            : fmt::format(", {} could not be read: {}",
                                                          Counted(log.dead_letters(), "record"),
                                                          log.first_dead_letter())));
  const RunRecord record = MakeRecord(task, result);
  return results->Add(record, std::move(result.logits));
}

std::string LearnerName(const GridPoint& point) {
  return fmt::format("learner '{}'", point.learner);
}

// Assembles each configuration; null for refused ones, with the reason in the point.
Result<std::vector<std::unique_ptr<wiring::Assembly>>> AssembleAll(std::vector<GridPoint>* points,
                                                                   uint32_t jobs) {
  std::vector<std::unique_ptr<wiring::Assembly>> assemblies(points->size());
  const auto assemble = [&](size_t i, const TellShare&) -> Status {
    GridPoint& point = (*points)[i];
    if (!point.refusal.empty()) return {};
    auto assembly = wiring::Assemble(point.config);
    if (assembly)
      assemblies[i] = std::make_unique<wiring::Assembly>(std::move(*assembly));
    else if (assembly.error().code == ErrorCode::kInvalidArgument)
      point.refusal = assembly.error().message;
    else
      return Fail(std::move(assembly.error()));
    return {};
  };
  TACIT_RETURN_IF_ERROR(MakeRuns({.number = points->size(),
                                  .name = [&](size_t i) { return LearnerName((*points)[i]); },
                                  .make = assemble},
                                 jobs, /*show=*/false));
  return assemblies;
}

Status CheckReference(const std::string& name, const std::vector<GridPoint>& points,
                      const std::vector<std::unique_ptr<wiring::Assembly>>& assemblies) {
  std::vector<std::string_view> known;
  const auto add = [&](std::string_view more) {
    if (std::ranges::find(known, more) == known.end()) known.push_back(more);
  };
  for (const GridPoint& point : points) add(point.learner);
  for (const auto& assembly : assemblies)
    if (assembly != nullptr) add(privacy::Name(assembly->learners[0].charge.mechanism));
  if (name.empty() || std::ranges::find(known, std::string_view(name)) != known.end()) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("--reference {}: no learner or mechanism of this experiment{}; it has {}",
                          name, DidYouMean(name, known), fmt::join(known, ", ")));
}

// A configuration identifies a vocabulary by its file's name, but a run depends on the rows, so the
// points' identity gets those.
Status NameVocabularies(std::vector<GridPoint>* points) {
  for (GridPoint& point : *points) {
    if (!point.refusal.empty()) continue;
    const config::Mechanism& mechanism = point.config.learners[0].mechanism;
    const config::Vocabulary& vocabulary = mechanism.vocabulary;
    if (!mechanism.has_vocabulary() || vocabulary.source != config::Vocabulary::Source::kFile)
      continue;
    TACIT_ASSIGN(
        const std::vector<uint64_t> rows,
        wiring::ReadVocabularyFile(vocabulary.file, point.config.features, vocabulary.keep));
    Sha256 digest;
    for (const uint64_t row : rows) digest.Update(fmt::format("{} ", row));
    point.canonical += fmt::format("vocabulary {}\n", ToHex(digest.Finish()));
  }
  return {};
}

}  // namespace

Result<std::vector<ReportRow>> RunExperiment(std::vector<GridPoint> points, const EventLog& log,
                                             const ExperimentOptions& options, Results* results) {
  TACIT_ASSIGN(const auto assemblies, AssembleAll(&points, options.jobs));
  TACIT_RETURN_IF_ERROR(CheckReference(options.reference, points, assemblies));
  TACIT_RETURN_IF_ERROR(NameVocabularies(&points));
  const auto id_of = [&](size_t i, uint64_t seed) {
    return RunId(points[i], log.identity(), options.train_to, options.measure_from,
                 options.measure_to, seed);
  };
  std::vector<Task> tasks;
  for (uint64_t seed = 0; seed < options.seeds; ++seed) {
    for (size_t i = 0; i < points.size(); ++i) {
      if (assemblies[i] == nullptr) continue;
      Task task{assemblies[i].get(), &points[i], seed, id_of(i, seed)};
      if (!results->Find(task.id)) tasks.push_back(std::move(task));
    }
  }
  TACIT_RETURN_IF_ERROR(MakeRuns({.number = tasks.size(),
                                  .name = [&](size_t i) { return LearnerName(*tasks[i].point); },
                                  .make =
                                      [&](size_t i, const TellShare& tell) {
                                        return MakeRun(tasks[i], log, options, tell, results);
                                      }},
                                 options.jobs, options.show_progress));
  std::vector<ReportRow> rows;
  for (size_t i = 0; i < points.size(); ++i) {
    if (assemblies[i] == nullptr) {
      rows.push_back(MakeRefusedRow(points[i]));
      continue;
    }
    std::vector<RunRecord> records;
    for (uint64_t seed = 0; seed < options.seeds; ++seed)
      records.push_back(*results->Find(id_of(i, seed)));
    rows.push_back(MakeRow(points[i], records, assemblies[i]->transform->row_space().floats()));
  }
  return rows;
}

Result<std::vector<float>> MeasuredLabels(const EventLog& log, const ExperimentOptions& options) {
  std::vector<float> labels;
  const auto take = [&](const event::RawRecords&, const event::Batch& batch) -> Result<bool> {
    labels.insert(labels.end(), batch.label.begin(), batch.label.end());
    return true;
  };
  const uint64_t end = std::min(options.measure_to, log.records());
  TACIT_RETURN_IF_ERROR(log.ForEach(std::min(options.measure_from, end), end, take));
  return labels;
}

Status CompareRows(const Results& results, const std::vector<float>& labels, uint32_t resamples,
                   const std::string& reference, std::vector<ReportRow>* rows) {
  PairedBootstrap bootstrap(labels, resamples, kResampleSeed);
  // For each row, the AUC in each resample, averaged over seeds.
  std::map<const ReportRow*, std::vector<double>> aucs;
  for (const ReportRow& row : *rows) {
    if (!row.refusal.empty()) continue;
    std::vector<double>& mean = aucs[&row];
    mean.resize(resamples);
    for (const std::string& run : row.runs) {
      TACIT_ASSIGN(const std::vector<float> logits, results.Predictions(run));
      const std::vector<double> auc = bootstrap.Aucs(logits);
      for (uint32_t r = 0; r < resamples; ++r)
        mean[r] += auc[r] / static_cast<double>(row.runs.size());
    }
  }
  for (ReportRow& row : *rows) {
    if (!row.refusal.empty()) continue;
    const ReportRow* other = ReferenceOf(*rows, row, reference);
    if (other == nullptr) continue;
    std::vector<double> difference = aucs[&row];
    for (uint32_t r = 0; r < resamples; ++r) difference[r] -= aucs[other][r];
    row.difference = {.reference = other->Label(),
                      .auc = MiddleOf(row.auc.mean - other->auc.mean, std::move(difference))};
  }
  return {};
}

}  // namespace tacit::lab
