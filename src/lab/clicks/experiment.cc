#include "lab/clicks/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "wiring/assembly.h"
#include "wiring/vocabulary_file.h"

namespace tacit::lab {
namespace {

constexpr uint64_t kResampleSeed = 0x7461636974;

// Calls `task` for 0 .. n - 1 on `threads` threads; after the first failure, no further calls
// begin.
Status ForEachParallel(size_t n, uint32_t threads, const std::function<Status(size_t)>& task) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  Status failed;
  const auto work = [&] {
    for (size_t i; (i = next++) < n;) {
      Status status = task(i);
      if (status) continue;
      std::lock_guard lock(mutex);
      if (failed) failed = std::move(status);
      next = n;
    }
  };
  std::vector<std::thread> others;
  for (uint32_t t = 1; t < std::min<size_t>(threads, n); ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return failed;
}

std::string DurationText(double seconds) {
  const auto minutes = static_cast<uint64_t>(seconds / 60);
  if (minutes >= 60) return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
  return minutes > 0 ? fmt::format("{} min", minutes) : fmt::format("{:.0f} s", seconds);
}

// Draws one line on standard error twice a second, on its own thread.
class RunsLine {
 public:
  RunsLine(size_t runs, uint64_t records_per_run, bool show)
      : runs_(runs), records_per_run_(records_per_run) {
    if (show && runs > 0) drawer_ = std::thread([this] { Draw(); });
  }
  ~RunsLine() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    if (!drawer_.joinable()) return;
    drawer_.join();
    std::fprintf(stderr, "\r\033[K");
  }
  std::atomic<uint64_t>* records() { return &records_; }
  void RunDone() { ++done_; }

 private:
  void Draw() {
    const SystemClock clock;
    const auto start = clock.Now();
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(500), [this] { return over_; })) {
      const double seconds = Seconds(clock.Now() - start);
      const double share = static_cast<double>(records_) /
                           static_cast<double>(std::max<uint64_t>(1, runs_ * records_per_run_));
      const std::string left =
          share > 0 ? DurationText(seconds / share * std::max(0.0, 1 - share)) : "?";
      std::fprintf(stderr, "\r\033[K%zu of %zu runs done, %s events, %s left", done_.load(), runs_,
                   WithThousands(records_).c_str(), left.c_str());
      std::fflush(stderr);
    }
  }

  const size_t runs_;
  const uint64_t records_per_run_;
  std::atomic<uint64_t> records_ = 0;
  std::atomic<size_t> done_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread drawer_;
};

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
               RunsLine* line, Results* results) {
  RunOptions run{.learner = 0,
                 .seed_offset = task.seed,
                 .workers = options.workers,
                 .train_to = options.train_to,
                 .measure_from = options.measure_from,
                 .measure_to = options.measure_to,
                 .progress = line->records()};
  auto result = RunLearner(*task.assembly, log, run);
  if (!result)
    return Fail(
        std::move(result.error()).Context(fmt::format("learner '{}'", task.point->learner)));
  if (result->labels.empty())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("no event of the data lies in the measured stretch: it has {} usable "
                            "events",
                            log.records() - log.dead_letters()));
  const RunRecord record = MakeRecord(task, *result);
  TACIT_RETURN_IF_ERROR(results->Add(record, std::move(result->logits)));
  line->RunDone();
  return {};
}

// Assembles each configuration; null for refused ones, with the reason in the point.
Result<std::vector<std::unique_ptr<wiring::Assembly>>> AssembleAll(std::vector<GridPoint>* points,
                                                                   uint32_t jobs) {
  std::vector<std::unique_ptr<wiring::Assembly>> assemblies(points->size());
  TACIT_RETURN_IF_ERROR(ForEachParallel(points->size(), jobs, [&](size_t i) -> Status {
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
  }));
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
  uint32_t passes = 1;
  for (uint64_t seed = 0; seed < options.seeds; ++seed) {
    for (size_t i = 0; i < points.size(); ++i) {
      if (assemblies[i] == nullptr) continue;
      Task task{assemblies[i].get(), &points[i], seed, id_of(i, seed)};
      passes = points[i].config.source.passes;
      if (!results->Find(task.id)) tasks.push_back(std::move(task));
    }
  }
  {
    const uint64_t learnt = std::min(options.train_to, log.records());
    RunsLine line(tasks.size(), passes * learnt + log.records() - learnt, options.show_progress);
    TACIT_RETURN_IF_ERROR(ForEachParallel(tasks.size(), options.jobs, [&](size_t i) {
      return MakeRun(tasks[i], log, options, &line, results);
    }));
  }
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
